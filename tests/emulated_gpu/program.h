// Kernels as nvcc's PTX has them, decoded: what parse.cpp makes and warp.cpp runs. Registers of a
// warp are arrays of 32 lanes; predicates are masks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sluice::emulated_gpu {

constexpr int kLanes = 32;
constexpr uint32_t kAllLanes = 0xffffffffu;
using Mask = uint32_t;

class Warp;
struct Instruction;
using Handler = void (*)(Warp&, const Instruction&, Mask lanes);

// Where a value stands: 32-bit registers (of 16 bits too), 64-bit ones, or predicates.
enum class Bank : uint8_t { none, word, wide, predicate };

// A register, or below zero a constant: of the bank's constants the one at ~index.
struct Operand {
  Bank bank = Bank::none;
  bool is_negated = false;  // of predicates
  int index = 0;
};

enum class Kind : uint8_t { plain, branch, exit, warp_wide, block_barrier, warp_barrier };
enum class Space : uint8_t { generic, global, shared, local, param };

struct Instruction {
  Handler run = nullptr;
  Kind kind = Kind::plain;
  Space space = Space::generic;
  uint8_t n_values = 1;  // of a vector
  bool guard_is_negated = false;
  int guard = -1;      // predicate
  int target = -1;     // of a branch
  int64_t imm = 0;     // what the handler wants
  int64_t offset = 0;  // of the last address
  int line = 0;        // in the text
  uint32_t first = 0;  // of its operands, results first
  std::string_view text;
};

struct Param {
  std::string name;
  int offset = 0, n_bytes = 0;
};

struct Kernel {
  std::string name;
  std::vector<Param> params;
  int param_bytes = 0;
  size_t static_bytes = 0;  // of shared memory
  int shared_bytes = 0;     // up to where the dynamic part begins
  int local_bytes = 0;
  int max_threads = 1024;
  int n_words = 0, n_wides = 0, n_predicates = 0;
  std::vector<Instruction> code;
  std::vector<Operand> operands;
  std::vector<uint32_t> word_constants;  // 32 of each
  std::vector<uint64_t> wide_constants;
};

// Registers that every kernel has: what it is told of its place.
enum class Special : uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  smid,
  cluster_ctarank,
  cluster_nctarank,
  count
};
constexpr int kParamRegister = 0;  // wide: where the parameters are

enum class Where : uint8_t { global, shared, dynamic, local, param };
struct Symbol {
  Where where;
  uint64_t at;
};

// A text of PTX: its kernels by name, decoded when they are first asked for. Throws
// std::runtime_error, with line and text, for what it does not know.
class Module {
 public:
  explicit Module(std::string text);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  const Kernel* find(const std::string& name);
  std::vector<std::string> names() const;

 private:
  friend class Parser;
  std::string text_;
  std::mutex mutex_;
  std::map<std::string, size_t> places_;
  std::map<std::string, Kernel> kernels_;
  std::unordered_map<std::string, Symbol> symbols_;
  std::vector<std::unique_ptr<uint64_t[]>> globals_;
};

// Finds what runs an instruction; `types` are the parts of its name behind the first. Sets what
// else of it follows from the name. Null: unknown.
Handler handler_of(const std::vector<std::string_view>& name, Instruction& instruction);

}  // namespace sluice::emulated_gpu
