// See metadata.h.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/metadata.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "gguf/in_quotes.h"

namespace sluice::gguf {
namespace {

template <typename T>
constexpr bool kIsIntVector = false;
template <typename T>
constexpr bool kIsIntVector<std::vector<T>> = std::is_integral_v<T>;

}  // namespace

void Metadata::set(std::string_view key, Value value) {
  if (const auto found = index_.find(key); found != index_.end()) {
    entries_[found->second].value = std::move(value);
    return;
  }
  index_.emplace(key, entries_.size());
  entries_.push_back({std::string(key), std::move(value)});
}

const Value* Metadata::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

const Value& Metadata::require(std::string_view key, std::string_view expected) const {
  const Value* value = find(key);
  if (value == nullptr) {
    throw Error(Errc::bad_file,
                cat(origin_, ": key ", in_quotes(key), " is missing; expected ", expected));
  }
  return *value;
}

void Metadata::fail_type(std::string_view key, const Value& found,
                         std::string_view expected) const {
  throw Error(Errc::bad_file, cat(origin_, ": key ", in_quotes(key), " is of type ",
                                  describe_type(found), "; expected ", expected));
}

template <typename T>
int64_t Metadata::in_range(std::string_view key, T value, IntRange range) const {
  // std::cmp_less and streams want neither bool nor char types.
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  const auto wide = static_cast<Wide>(value);
  if (std::cmp_less(wide, range.min) || std::cmp_greater(wide, range.max)) {
    throw Error(Errc::bad_file, cat(origin_, ": key ", in_quotes(key), " is ", wide,
                                    "; expected an integer from ", range.min, " to ", range.max));
  }
  return static_cast<int64_t>(wide);
}

int64_t Metadata::get_int(std::string_view key, IntRange range) const {
  constexpr std::string_view kExpected = "an integer";
  const Value& value = require(key, kExpected);
  return std::visit(
      [&](const auto& v) -> int64_t {
        if constexpr (std::is_integral_v<std::decay_t<decltype(v)>>) {
          return in_range(key, v, range);
        } else {
          fail_type(key, value, kExpected);
        }
      },
      value);
}

int64_t Metadata::get_int_or(std::string_view key, int64_t fallback, IntRange range) const {
  return contains(key) ? get_int(key, range) : fallback;
}

float Metadata::get_float(std::string_view key) const {
  constexpr std::string_view kExpected = "a number";
  const Value& value = require(key, kExpected);
  return std::visit(
      [&](const auto& v) -> float {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
          // Compared as a double: a finite double beyond float's range must not be converted.
          const auto wide = static_cast<double>(v);
          if (!(std::abs(wide) <= std::numeric_limits<float>::max())) {
            throw Error(Errc::bad_file, cat(origin_, ": key ", in_quotes(key), " is ", wide,
                                            "; expected a finite 32-bit number"));
          }
          return static_cast<float>(v);
        } else {
          fail_type(key, value, kExpected);
        }
      },
      value);
}

float Metadata::get_float_or(std::string_view key, float fallback) const {
  return contains(key) ? get_float(key) : fallback;
}

template <typename T>
const T& Metadata::get_exactly(std::string_view key, std::string_view expected) const {
  const Value& value = require(key, expected);
  const T* found = std::get_if<T>(&value);
  if (found == nullptr) fail_type(key, value, expected);
  return *found;
}

bool Metadata::get_bool(std::string_view key) const { return get_exactly<bool>(key, "a bool"); }

bool Metadata::get_bool_or(std::string_view key, bool fallback) const {
  return contains(key) ? get_bool(key) : fallback;
}

const std::string& Metadata::get_string(std::string_view key) const {
  return get_exactly<std::string>(key, "a string");
}

std::string Metadata::get_string_or(std::string_view key, std::string_view fallback) const {
  return contains(key) ? get_string(key) : std::string(fallback);
}

std::vector<int64_t> Metadata::get_ints(std::string_view key, IntRange range) const {
  constexpr std::string_view kExpected = "an integer or an array of integers";
  const Value& value = require(key, kExpected);
  return std::visit(
      [&](const auto& v) -> std::vector<int64_t> {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_integral_v<T>) {
          return {in_range(key, v, range)};
        } else if constexpr (kIsIntVector<T>) {
          std::vector<int64_t> out;
          out.reserve(v.size());
          for (const typename T::value_type x : v) out.push_back(in_range(key, x, range));
          return out;
        } else {
          fail_type(key, value, kExpected);
        }
      },
      value);
}

std::vector<int64_t> Metadata::get_int_per_layer(std::string_view key, int64_t n_layers,
                                                 IntRange range) const {
  CHECK(n_layers >= 0);
  const auto n = static_cast<size_t>(n_layers);
  std::vector<int64_t> values = get_ints(key, range);
  const Value& value = *find(key);
  if (!is_array(value)) return std::vector<int64_t>(n, values[0]);
  if (values.size() != n) fail_type(key, value, cat("one value, or ", n, ", one for each layer"));
  return values;
}

const std::vector<std::string>& Metadata::get_strings(std::string_view key) const {
  return get_exactly<std::vector<std::string>>(key, "an array of string");
}

const std::vector<float>& Metadata::get_floats(std::string_view key) const {
  return get_exactly<std::vector<float>>(key, "an array of f32");
}

}  // namespace sluice::gguf
