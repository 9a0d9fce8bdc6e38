// The key-value part of a GGUF file, in the file's order, and getters that widen numbers and say in
// their errors which file and key were wrong. Knows no model: which keys exist is not its matter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gguf/value.h"

namespace sluice::gguf {

// Both ends belong to it.
struct IntRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};

// A getter throws Errc::bad_file for a value of the wrong type or range; the plain ones also for a
// missing key. An integer may be stored with any width and sign, or as a bool (0 or 1).
class Metadata {
 public:
  struct Entry {
    std::string key;
    Value value;
  };

  // `origin` is the file's path, for error texts.
  explicit Metadata(std::string origin = "metadata") : origin_(std::move(origin)) {}

  const std::string& origin() const { return origin_; }
  std::span<const Entry> entries() const { return entries_; }

  // A new key goes to the end; a known one keeps its place.
  void set(std::string_view key, Value value);
  const Value* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }

  int64_t get_int(std::string_view key, IntRange range = {}) const;
  int64_t get_int_or(std::string_view key, int64_t fallback, IntRange range = {}) const;

  // From f32, f64 or an integer; must be finite as a float.
  float get_float(std::string_view key) const;
  float get_float_or(std::string_view key, float fallback) const;

  bool get_bool(std::string_view key) const;
  bool get_bool_or(std::string_view key, bool fallback) const;

  const std::string& get_string(std::string_view key) const;
  std::string get_string_or(std::string_view key, std::string_view fallback) const;

  // One element for a scalar.
  std::vector<int64_t> get_ints(std::string_view key, IntRange range = {}) const;
  // n_layers copies of a scalar; an array must have n_layers elements.
  std::vector<int64_t> get_int_per_layer(std::string_view key, int64_t n_layers,
                                         IntRange range = {}) const;

  // Arrays of exactly this type, without a copy.
  const std::vector<std::string>& get_strings(std::string_view key) const;
  const std::vector<float>& get_floats(std::string_view key) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>()(key); }
  };

  template <typename T>
  const T& get_exactly(std::string_view key, std::string_view expected) const;
  template <typename T>
  int64_t in_range(std::string_view key, T value, IntRange range) const;
  const Value& require(std::string_view key, std::string_view expected) const;
  [[noreturn]] void fail_type(std::string_view key, const Value& found,
                              std::string_view expected) const;

  std::string origin_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> index_;  // key -> entries_
};

}  // namespace sluice::gguf
