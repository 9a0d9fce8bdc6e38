// See writer.h.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/writer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "gguf/in_quotes.h"

namespace sluice::gguf {
namespace {

// Room enough, and far from where rounding up to the alignment could overflow.
constexpr uint64_t kMaxDataBytes = uint64_t{1} << 62;

template <typename... Args>
[[noreturn]] void fail(const std::string& path, const Args&... args) {
  throw Error(Errc::bad_file, cat(path, ": ", args...));
}

template <typename T>
void put(std::string& out, T value) {
  static_assert(std::is_arithmetic_v<T>);
  static_assert(sizeof(bool) == 1);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void put(std::string& out, const std::string& text) {
  put(out, uint64_t{text.size()});
  out += text;
}

void put_value(std::string& out, const Value& value) {
  put(out, static_cast<uint32_t>(type_of(value)));
  if (is_array(value)) {
    put(out, static_cast<uint32_t>(element_type_of(value)));
    put(out, uint64_t{n_elems_of(value)});
  }
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (kIsVector<T>) {
          for (const typename T::value_type& element : v) put(out, element);
        } else {
          put(out, v);
        }
      },
      value);
}

}  // namespace

Writer::Writer(std::string path, uint32_t version)
    : file_(std::move(path)), metadata_(file_.path()), version_(version) {
  CHECK(version >= kMinVersion && version <= kVersion);
}

void Writer::add_tensor(std::string name, const quant::TypeInfo& type, std::vector<int64_t> shape) {
  CHECK(alignment_ == 0);
  TensorInfo tensor{std::move(name), std::move(shape), &type};
  check_tensor_name(file_.path(), tensor.name);
  tensor.n_bytes = checked_tensor_bytes(file_.path(), tensor);
  tensors_.push_back(std::move(tensor));
}

void Writer::place_tensors() {
  uint64_t offset = 0;
  for (TensorInfo& tensor : tensors_) {
    if (tensor.n_bytes > kMaxDataBytes - offset) {
      fail(file_.path(), "tensor ", in_quotes(tensor.name), " of ", tensor.n_bytes,
           " bytes makes the file too long; expected at most ", kMaxDataBytes, " bytes of data");
    }
    tensor.offset = offset;
    offset = round_up(offset + tensor.n_bytes, alignment_);
  }
}

std::string Writer::header() const {
  std::string out(kMagic);
  put(out, version_);
  put(out, uint64_t{tensors_.size()});
  put(out, uint64_t{metadata_.entries().size()});
  for (const auto& [key, value] : metadata_.entries()) {
    check_key(file_.path(), key);
    put(out, key);
    put_value(out, value);
  }
  for (const TensorInfo& tensor : tensors_) {
    put(out, tensor.name);
    put(out, static_cast<uint32_t>(tensor.shape.size()));
    for (const int64_t dim : tensor.shape) put(out, dim);
    put(out, tensor.type->id);
    put(out, tensor.offset);
  }
  return out;
}

void Writer::begin() {
  CHECK(alignment_ == 0);
  check_unique_names(file_.path(), tensors_);
  alignment_ = alignment_of(metadata_);
  place_tensors();
  const std::string head = header();
  file_.append(std::as_bytes(std::span(head)));
  pad();
  for (TensorInfo& tensor : tensors_) tensor.offset += file_.bytes_written();
}

void Writer::leave_full_tensors() {
  while (current_ < tensors_.size() && current_written_ == tensors_[current_].n_bytes) {
    pad();
    ++current_;
    current_written_ = 0;
  }
}

void Writer::write(std::span<const std::byte> data) {
  CHECK(alignment_ != 0);
  for (leave_full_tensors(); !data.empty(); leave_full_tensors()) {
    if (current_ == tensors_.size()) {
      fail(file_.path(), data.size(), " bytes came after the last of ", tensors_.size(),
           " tensors was full; expected no more");
    }
    const uint64_t n =
        std::min<uint64_t>(data.size(), tensors_[current_].n_bytes - current_written_);
    file_.append(data.first(n));
    data = data.subspan(n);
    current_written_ += n;
  }
}

void Writer::finish() {
  CHECK(alignment_ != 0);
  leave_full_tensors();
  if (current_ < tensors_.size()) {
    const TensorInfo& tensor = tensors_[current_];
    fail(file_.path(), "tensor ", in_quotes(tensor.name), " got ", current_written_,
         " bytes; expected ", tensor.n_bytes);
  }
  file_.commit();
}

}  // namespace sluice::gguf
