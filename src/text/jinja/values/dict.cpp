// Dict of value.h.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "text/jinja/values/value.h"

namespace sluice::text::jinja {
namespace {

bool is_nan(Value value) { return value.is(Kind::number) && std::isnan(value.as_number()); }

bool same_key(Value a, Value b) {
  if (a.is_string() || b.is_string()) {
    return a.is_string() && b.is_string() && a.as_string() == b.as_string();
  }
  if (a.is_numeric() && b.is_numeric()) return compare_numbers(a, b) == 0;
  return a.is(Kind::none) && b.is(Kind::none);
}

}  // namespace

bool Dict::can_be_key(Value value) {
  return value.is_string() || value.is(Kind::none) || (value.is_numeric() && !is_nan(value));
}

bool Dict::KeyLess::operator()(Value a, Value b) const {
  if (a.is_string() && b.is_string()) return a.as_string() < b.as_string();
  if (a.is_numeric() && b.is_numeric()) return compare_numbers(a, b) < 0;
  const auto rank = [](Value key) { return key.is_string() ? 2 : key.is_numeric() ? 1 : 0; };
  return rank(a) < rank(b);
}

std::optional<size_t> Dict::position(Value key) const {
  if (!can_be_key(key)) return std::nullopt;
  if (!index_.empty()) {
    const auto found = index_.find(key);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (same_key(entries_[i].key, key)) return i;
  }
  return std::nullopt;
}

const Value* Dict::find(Value key) const {
  const std::optional<size_t> i = position(key);
  return i ? &entries_[*i].value : nullptr;
}

void Dict::set(Value key, Value value) {
  CHECK(can_be_key(key));
  if (const std::optional<size_t> i = position(key)) {
    entries_[*i].value = value;
    return;
  }
  entries_.push_back({key, value});
  if (!index_.empty()) {
    index_.emplace(key, entries_.size() - 1);
  } else if (entries_.size() > kSearchedLinearly) {
    rebuild_index();
  }
}

bool Dict::erase(Value key) {
  const std::optional<size_t> i = position(key);
  if (!i) return false;
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(*i));
  rebuild_index();
  return true;
}

void Dict::rebuild_index() {
  index_.clear();
  if (entries_.size() <= kSearchedLinearly) return;
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].key, i);
}

}  // namespace sluice::text::jinja
