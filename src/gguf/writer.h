// Writes a GGUF file front to back: keys and tensors are declared first, then the tensors' data
// streams through, so that a model larger than memory can be written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "gguf/layout.h"
#include "gguf/metadata.h"
#include "gguf/tensor_info.h"

namespace sluice::gguf {

// In this order: metadata() and add_tensor(), begin(), write() as often as needed, finish(). Until
// finish() the file is <path>.partial, and without it the destructor removes that. A full disk, an
// invalid declaration or a wrong amount of data throws Errc::bad_file; calls out of order are
// stopped by CHECK.
class Writer {
 public:
  explicit Writer(std::string path, uint32_t version = kVersion);

  // general.alignment is obeyed when it is set. What is set after begin() is not written.
  Metadata& metadata() { return metadata_; }

  // shape: ne0 first. Data follows in the order of these calls.
  void add_tensor(std::string name, const quant::TypeInfo& type, std::vector<int64_t> shape);
  void add_tensor(std::string name, quant::Type type, std::vector<int64_t> shape) {
    add_tensor(std::move(name), quant::type_info(type), std::move(shape));
  }

  void begin();
  // The next bytes of the tensors' data; pieces may end anywhere, also across tensors. Padding
  // between tensors is not part of it.
  void write(std::span<const std::byte> data);
  void finish();

  // With the absolute offsets once begin() was called.
  std::span<const TensorInfo> tensors() const { return tensors_; }

 private:
  // Offsets relative to the data's start, which the header's length does not move.
  void place_tensors();
  std::string header() const;
  void pad() {
    file_.append_zeros(round_up(file_.bytes_written(), alignment_) - file_.bytes_written());
  }
  // Pads and goes on, as long as the current tensor has all of its bytes (some need none).
  void leave_full_tensors();

  OutputFile file_;
  Metadata metadata_;
  uint32_t version_;
  uint64_t alignment_ = 0;  // 0 until begin()
  std::vector<TensorInfo> tensors_;
  size_t current_ = 0;            // the tensor that is being written
  uint64_t current_written_ = 0;  // its bytes so far
};

}  // namespace sluice::gguf
