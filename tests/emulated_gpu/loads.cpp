// Loads, stores and atomics of PTX. See handlers.h.
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "emulated_gpu/handlers.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/values.h"

namespace sluice::emulated_gpu {
namespace {

using Name = std::vector<std::string_view>;

std::byte* place(Warp& w, const Instruction& i, Space space, int lane, uint64_t address,
                 size_t n_bytes) {
  if (space == Space::param) {
    const LaunchOf& launch = w.block.grid.launch;
    const uint64_t first = reinterpret_cast<uint64_t>(launch.params.data());
    if (address < first || address + n_bytes > first + launch.params.size()) {
      fault(w, i, "a parameter that is none");
    }
    return reinterpret_cast<std::byte*>(address);
  }
  if (space == Space::generic && (address & kWindows)) {
    space = address & kSharedWindow ? Space::shared : Space::local;
    address &= ~kWindows;
  }
  if (space == Space::shared) return w.block.shared(w, i, address, n_bytes);
  if (space == Space::local) {
    const auto n = static_cast<uint64_t>(w.kernel->local_bytes);
    if (address + n_bytes > n) fault(w, i, "local memory at " + std::to_string(address));
    return w.local.data() + static_cast<uint64_t>(lane) * n + address;
  }
  if (address % n_bytes != 0) {
    fault(w, i,
          "lane " + std::to_string(lane) + ": the address is not a multiple of " +
              std::to_string(n_bytes));
  }
  if (!is_known(address, n_bytes)) {
    // What is const or a parameter of this launch may be read by its generic address.
    const LaunchOf& launch = w.block.grid.launch;
    const uint64_t first = reinterpret_cast<uint64_t>(launch.params.data());
    if (address >= first && address + n_bytes <= first + launch.params.size()) {
      return reinterpret_cast<std::byte*>(address);
    }
    fault(w, i,
          "lane " + std::to_string(lane) + ": " + std::to_string(n_bytes) + " bytes at " +
              place_of(address));
  }
  return reinterpret_cast<std::byte*>(address);
}

struct Addresses {
  const uint32_t* words = nullptr;
  const uint64_t* wides = nullptr;
  uint64_t offset;
  Addresses(Warp& w, const Operand& o, int64_t offset_) : offset(static_cast<uint64_t>(offset_)) {
    if (o.bank == Bank::wide) {
      wides = w.wides(o);
    } else {
      words = w.words(o);
    }
  }
  uint64_t operator[](int lane) const {
    return wides ? wides[lane] + offset
                 : static_cast<uint32_t>(words[lane] + static_cast<uint32_t>(offset));
  }
};

// Words that host and card, or blocks, pass each other: whole, and in order.
template <typename T>
T read_word(const std::byte* from) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  return std::bit_cast<T>(__atomic_load_n(reinterpret_cast<const Bits*>(from), __ATOMIC_ACQUIRE));
}
template <typename T>
void write_word(std::byte* to, T value) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  __atomic_store_n(reinterpret_cast<Bits*>(to), std::bit_cast<Bits>(value), __ATOMIC_RELEASE);
}

template <typename T>
void load(Warp& w, const Instruction& i, Mask lanes) {
  const int n = i.n_values;
  const Addresses at(w, w.operand(i, n), i.offset);
  each(lanes, [&](int l) {
    const std::byte* const from =
        place(w, i, i.space, l, at[l], sizeof(T) * static_cast<size_t>(n));
    for (int k = 0; k < n; ++k)
      put(w, w.operand(i, k), l, read_word<T>(from + static_cast<size_t>(k) * sizeof(T)));
  });
}

template <typename T>
void store(Warp& w, const Instruction& i, Mask lanes) {
  const int n = i.n_values;
  const Addresses at(w, w.operand(i, 0), i.offset);
  each(lanes, [&](int l) {
    std::byte* const to = place(w, i, i.space, l, at[l], sizeof(T) * static_cast<size_t>(n));
    for (int k = 0; k < n; ++k) {
      write_word<T>(to + static_cast<size_t>(k) * sizeof(T), Lanes<T>(w, w.operand(i, 1 + k))[l]);
    }
  });
}

enum Change { add, least, most, all_of, any_of, either, exchange, swap, increase, decrease };

// d, [a], b (, c). red has no result, and its address first. n_values: how.
template <typename T, bool has_result>
void change(Warp& w, const Instruction& i, Mask lanes) {
  const int first = has_result ? 1 : 0;
  const Addresses at(w, w.operand(i, first), i.offset);
  const Lanes<T> b(w, w.operand(i, first + 1));
  const auto how = static_cast<Change>(i.n_values);
  each(lanes, [&](int l) {
    std::byte* const to = place(w, i, i.space, l, at[l], sizeof(T));
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    auto* const word = reinterpret_cast<Bits*>(to);
    Bits before = __atomic_load_n(word, __ATOMIC_RELAXED), after;
    do {
      const T old = std::bit_cast<T>(before), x = b[l];
      T out = x;
      switch (how) {
        case add:
          if constexpr (std::is_integral_v<T>) {
            out = static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) +
                                 static_cast<std::make_unsigned_t<T>>(x));
          } else {
            out = old + x;
          }
          break;
        case least:
          out = std::min(old, x);
          break;
        case most:
          out = std::max(old, x);
          break;
        case exchange:
          break;
        case increase:
          out = old >= x ? T{0} : static_cast<T>(old + T{1});
          break;
        case decrease:
          out = old == T{0} || old > x ? x : static_cast<T>(old - T{1});
          break;
        case swap:
          out = old == x ? Lanes<T>(w, w.operand(i, first + 2))[l] : old;
          break;
        default:
          if constexpr (std::is_integral_v<T>) {
            out = how == all_of   ? static_cast<T>(old & x)
                  : how == any_of ? static_cast<T>(old | x)
                                  : static_cast<T>(old ^ x);
          }
      }
      after = std::bit_cast<Bits>(out);
    } while (!__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    if (has_result) put(w, w.operand(i, 0), l, std::bit_cast<T>(before));
  });
}

template <bool has_result>
Handler change_handler(const Name& name, Instruction& i) {
  constexpr std::string_view kNames[] = {"add", "min",  "max", "and", "or",
                                         "xor", "exch", "cas", "inc", "dec"};
  const auto* found = std::end(kNames);
  for (const std::string_view part : name) {
    if (const auto* f = std::find(std::begin(kNames), std::end(kNames), part);
        f != std::end(kNames))
      found = f;
  }
  if (found == std::end(kNames)) return nullptr;
  i.n_values = static_cast<uint8_t>(found - kNames);
  const std::string_view type = name.back();
  if (type == "u32" || type == "b32") return change<uint32_t, has_result>;
  if (type == "s32") return change<int32_t, has_result>;
  if (type == "u64" || type == "b64") return change<uint64_t, has_result>;
  if (type == "s64") return change<int64_t, has_result>;
  if (type == "f32") return change<float, has_result>;
  return nullptr;
}

// Between the ways to say where shared or local memory is. imm 1: to the generic address.
void convert_address(Warp& w, const Instruction& i, Mask lanes) {
  const Lanes<uint64_t> a(w, w.operand(i, 1));
  const uint64_t window = i.space == Space::shared  ? kSharedWindow
                          : i.space == Space::local ? kLocalWindow
                                                    : 0;
  each(lanes, [&](int l) {
    uint64_t out = a[l];
    if (window != 0) out = i.imm ? out | window : out & ~kWindows;
    put(w, w.operand(i, 0), l, out);
  });
}

template <bool loads>
Handler of_type(std::string_view type) {
  if (type == "u32" || type == "b32") return loads ? Handler(load<uint32_t>) : store<uint32_t>;
  if (type == "s32") return loads ? Handler(load<int32_t>) : store<int32_t>;
  if (type == "u64" || type == "b64") return loads ? Handler(load<uint64_t>) : store<uint64_t>;
  if (type == "s64") return loads ? Handler(load<int64_t>) : store<int64_t>;
  if (type == "f32") return loads ? Handler(load<float>) : store<float>;
  if (type == "u16" || type == "b16") return loads ? Handler(load<uint16_t>) : store<uint16_t>;
  if (type == "s16") return loads ? Handler(load<int16_t>) : store<int16_t>;
  if (type == "u8" || type == "b8") return loads ? Handler(load<uint8_t>) : store<uint8_t>;
  if (type == "s8") return loads ? Handler(load<int8_t>) : store<int8_t>;
  return nullptr;
}

Space space_of(const Name& name) {
  for (const std::string_view part : name) {
    if (part == "global" || part == "const") return Space::global;
    if (part.starts_with("shared")) return Space::shared;
    if (part == "local") return Space::local;
    if (part.starts_with("param")) return Space::param;
  }
  return Space::generic;
}

}  // namespace

Handler memory_handler(const Name& name, Instruction& i) {
  const std::string_view op = name[0];
  if (op == "st" && name[1] == "async") return nullptr;
  if (op == "ld" || op == "st" || op == "atom" || op == "red" || op == "cvta")
    i.space = space_of(name);
  if (op == "ld") return of_type<true>(name.back());
  if (op == "st") return of_type<false>(name.back());
  if (op == "atom") return change_handler<true>(name, i);
  if (op == "red") return change_handler<false>(name, i);
  if (op == "cvta") {
    i.imm = name[1] == "to" ? 0 : 1;
    return convert_address;
  }
  return nullptr;
}

}  // namespace sluice::emulated_gpu
