// Comparisons of operators.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "text/jinja/values/operators.h"

namespace sluice::text::jinja {
namespace {

bool equal_dicts(Runtime& runtime, const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  return std::ranges::all_of(a.entries(), [&](const Dict::Entry& entry) {
    const Value* other = b.find(entry.key);
    return other != nullptr && equal(runtime, entry.value, *other);
  });
}

std::partial_ordering order_lists(Runtime& runtime, const List& a, const List& b) {
  const size_t n = std::min(a.items.size(), b.items.size());
  for (size_t i = 0; i < n; ++i) {
    if (!equal(runtime, a.items[i], b.items[i])) return order(runtime, a.items[i], b.items[i]);
  }
  return a.items.size() <=> b.items.size();
}

}  // namespace

bool equal(Runtime& runtime, Value a, Value b) {
  const Runtime::Level level(runtime);
  runtime.step();
  if (a.is_numeric() && b.is_numeric()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  if (a.is_string()) {
    runtime.work(std::min(a.as_string().size(), b.as_string().size()));
    return a.as_string() == b.as_string();
  }
  if (a.same_as(b)) return true;
  if (a.is_sequence()) {
    const std::vector<Value>&x = a.as_list().items, &y = b.as_list().items;
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [&](Value i, Value j) { return equal(runtime, i, j); });
  }
  return a.is(Kind::dict) && equal_dicts(runtime, a.as_dict(), b.as_dict());
}

std::partial_ordering order(Runtime& runtime, Value a, Value b) {
  const Runtime::Level level(runtime);
  runtime.step();
  if (a.is_numeric() && b.is_numeric()) return compare_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    runtime.work(std::min(a.as_string().size(), b.as_string().size()));
    return a.as_string() <=> b.as_string();  // UTF-8 keeps the order of characters
  }
  if (a.is_sequence() && a.kind() == b.kind()) {
    return order_lists(runtime, a.as_list(), b.as_list());
  }
  if (a.is_undefined()) runtime.fail_undefined(a);
  if (b.is_undefined()) runtime.fail_undefined(b);
  runtime.fail(cat("there is no order between ", kind_name(a), " and ", kind_name(b)));
}

bool contains(Runtime& runtime, Value container, Value item) {
  switch (container.kind()) {
    case Kind::undefined:
      return false;
    case Kind::string:
      if (!item.is_string()) runtime.fail_kind("what is looked for in a string", "a string", item);
      runtime.work(container.as_string().size() + item.as_string().size());
      return find_text(container.as_string(), item.as_string()) != std::string_view::npos;
    case Kind::list:
    case Kind::tuple:
      return std::ranges::any_of(container.as_list().items,
                                 [&](Value other) { return equal(runtime, item, other); });
    case Kind::dict:
      if (item.is(Kind::list) || item.is(Kind::dict)) {
        runtime.fail_kind("what is looked for in a dictionary", "a possible key", item);
      }
      if (item.is_string()) runtime.work(item.as_string().size());
      return container.as_dict().find(item) != nullptr;
    default:
      runtime.fail_kind("the right side of 'in'", "a list, dictionary or string", container);
  }
}

bool compare(Runtime& runtime, CompareOp op, Value a, Value b) {
  switch (op) {
    case CompareOp::eq:
      return equal(runtime, a, b);
    case CompareOp::ne:
      return !equal(runtime, a, b);
    case CompareOp::lt:
      return order(runtime, a, b) < 0;
    case CompareOp::le:
      return order(runtime, a, b) <= 0;
    case CompareOp::gt:
      return order(runtime, a, b) > 0;
    case CompareOp::ge:
      return order(runtime, a, b) >= 0;
    case CompareOp::in:
      return contains(runtime, b, a);
    case CompareOp::not_in:
      return !contains(runtime, b, a);
  }
  return false;
}

size_t find_text(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (part.empty()) return from;
  if (part.size() > text.size() - from) return std::string_view::npos;
  // string_view::find may compare every byte of `part` at every byte of `text`.
  const void* found = memmem(text.data() + from, text.size() - from, part.data(), part.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace sluice::text::jinja
