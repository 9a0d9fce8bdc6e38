// libFuzzer entry for the GGUF parser: any bytes parse or throw Error, and whatever parsed can be
// read through to the last byte and value.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "gguf/parse.h"

namespace sluice::gguf {
namespace {

// Where the sums end, so that no compiler leaves the reading out.
volatile uint64_t sink = 0;

uint64_t touch(bool value) { return value ? 1 : 0; }
uint64_t touch(const std::string& text) {
  uint64_t sum = text.size();
  for (const char c : text) sum += static_cast<unsigned char>(c);
  return sum;
}
template <typename T>
uint64_t touch(T value) {
  return value == T{} ? 0 : 1;
}

void touch_value(const Value& value) {
  std::visit(
      [](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (kIsVector<T>) {
          for (const typename T::value_type& element : v) sink = sink + touch(element);
        } else {
          sink = sink + touch(v);
        }
      },
      value);
  sink = sink + describe_type(value).size();
}

// Every getter on every key: a wrong type must be an Error as well.
void touch_getters(const Metadata& metadata, const std::string& key) {
  const auto attempt = [](const auto& get) {
    try {
      get();
    } catch (const Error& error) {
      CHECK(error.code() == Errc::bad_file);
    }
  };
  attempt([&] { sink = sink + touch(metadata.get_int(key)); });
  attempt([&] { sink = sink + touch(metadata.get_float(key)); });
  attempt([&] { sink = sink + touch(metadata.get_bool(key)); });
  attempt([&] { sink = sink + touch(metadata.get_string(key)); });
  attempt([&] { sink = sink + metadata.get_ints(key).size(); });
  attempt([&] { sink = sink + metadata.get_int_per_layer(key, 3).size(); });
}

void touch_file(const ParsedFile& file, std::span<const std::byte> bytes) {
  for (const auto& [key, value] : file.metadata.entries()) {
    CHECK(file.metadata.find(key) == &value);
    touch_value(value);
    touch_getters(file.metadata, key);
  }
  for (const TensorInfo& tensor : file.tensors) {
    CHECK(tensor.offset % file.alignment == 0 && tensor.offset >= file.data_start);
    CHECK(tensor.offset <= bytes.size() && tensor.n_bytes <= bytes.size() - tensor.offset);
    for (const std::byte b : bytes.subspan(tensor.offset, tensor.n_bytes)) {
      sink = sink + static_cast<uint64_t>(b);
    }
  }
}

}  // namespace
}  // namespace sluice::gguf

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    sluice::gguf::touch_file(sluice::gguf::parse(bytes, "fuzz.gguf"), bytes);
  } catch (const sluice::Error& error) {
    CHECK(error.code() == sluice::Errc::bad_file);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
  }
  return 0;
}
