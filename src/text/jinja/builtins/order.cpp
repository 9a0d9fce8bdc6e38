// See order.h. All compare by a key: the element or an attribute of it, by default without
// regard to case.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/builtins/order.h"

#include <algorithm>

#include "text/jinja/builtins/arguments.h"
#include "text/jinja/values/access.h"
#include "text/jinja/values/operators.h"
#include "text/jinja/values/unicode.h"

namespace sluice::text::jinja {
namespace {

struct Keyed {
  Value key, item;
};

class KeyMaker {
 public:
  KeyMaker(Runtime& runtime, Value attribute, bool case_sensitive,
           std::optional<Value> missing = std::nullopt)
      : runtime_(runtime),
        attribute_(attribute),
        case_sensitive_(case_sensitive),
        missing_(missing) {}

  Value of(Value item) const { return folded(attribute_of(item)); }

  Value attribute_of(Value item) const {
    if (attribute_.is(Kind::none)) return item;
    const std::string_view path = attribute_.is_string() ? attribute_.as_string() : "";
    if (path.find(',') == std::string_view::npos) return part_of(item, attribute_);
    List& parts = runtime_.make_list();  // "a,b": by a, then by b
    for (size_t begin = 0; begin <= path.size();) {
      const size_t end = std::min(path.find(',', begin), path.size());
      const Value part = Value::string(path.substr(begin, end - begin));
      runtime_.append(parts, folded(part_of(item, part)));
      begin = end + 1;
    }
    return Value::list(parts);
  }

  std::vector<Keyed> keyed(const List& list) const {
    runtime_.charge(list.items.size() * sizeof(Keyed));
    std::vector<Keyed> all;
    all.reserve(list.items.size());
    for (const Value item : list.items) {
      runtime_.step();
      all.push_back({of(item), item});
    }
    return all;
  }

 private:
  Value part_of(Value item, Value path) const { return get_path(runtime_, item, path, missing_); }
  Value folded(Value value) const {
    if (case_sensitive_ || !value.is_string()) return value;
    runtime_.work(value.as_string().size());
    return runtime_.make_string(to_lower(value.as_string()));
  }

  Runtime& runtime_;
  const Value attribute_;
  const bool case_sensitive_;
  const std::optional<Value> missing_;
};

// Equal ones keep their order, also when it is reversed.
void sort_by_key(Runtime& runtime, std::vector<Keyed>& all, bool reverse) {
  std::ranges::stable_sort(all, [&](const Keyed& a, const Keyed& b) {
    return reverse ? order(runtime, b.key, a.key) < 0 : order(runtime, a.key, b.key) < 0;
  });
}

Value list_of(Runtime& runtime, const std::vector<Keyed>& all) {
  List& list = runtime.make_list();
  for (const Keyed& one : all) runtime.append(list, one.item);
  return Value::list(list);
}

Value find_extreme(Runtime& runtime, Value self, const Arguments& arguments,
                   std::string_view filter, bool largest) {
  ArgumentReader reader(runtime, filter, arguments);
  const bool case_sensitive = reader.next_boolean_or("case_sensitive", false);
  const Value attribute = reader.next_or("attribute", Value::none());
  reader.done();
  const KeyMaker keys(runtime, attribute, case_sensitive);
  std::optional<Keyed> best;
  for (const Value item : get_elements(runtime, self, filter).items) {
    const Keyed next{keys.of(item), item};
    const bool better = !best || (largest ? order(runtime, next.key, best->key) > 0
                                          : order(runtime, next.key, best->key) < 0);
    if (better) best = next;
  }
  return best ? best->item : Value::undefined(Absent::element, {});
}

}  // namespace

Value sort(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'sort'", arguments);
  const bool reverse = reader.next_boolean_or("reverse", false);
  const bool case_sensitive = reader.next_boolean_or("case_sensitive", false);
  const Value attribute = reader.next_or("attribute", Value::none());
  reader.done();
  std::vector<Keyed> all = KeyMaker(runtime, attribute, case_sensitive)
                               .keyed(get_elements(runtime, self, "filter 'sort'"));
  sort_by_key(runtime, all, reverse);
  return list_of(runtime, all);
}

Value sort_dict(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'dictsort'", arguments);
  const bool case_sensitive = reader.next_boolean_or("case_sensitive", false);
  const std::string_view by = reader.next_text_or("by", "key");
  const bool reverse = reader.next_boolean_or("reverse", false);
  reader.done();
  if (by != "key" && by != "value") reader.fail("'by' must be 'key' or 'value'");
  if (!self.is(Kind::dict)) runtime.fail_kind("filter 'dictsort': the value", "a dictionary", self);
  List& pairs = runtime.make_list();
  for (const auto& [key, value] : self.as_dict().entries()) {
    runtime.append(pairs, Value::tuple(runtime.make_list({key, value})));
  }
  const KeyMaker keys(runtime, Value::integer(by == "key" ? 0 : 1), case_sensitive);
  std::vector<Keyed> all = keys.keyed(pairs);
  sort_by_key(runtime, all, reverse);
  return list_of(runtime, all);
}

Value unique(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'unique'", arguments);
  const bool case_sensitive = reader.next_boolean_or("case_sensitive", false);
  const Value attribute = reader.next_or("attribute", Value::none());
  reader.done();
  const KeyMaker keys(runtime, attribute, case_sensitive);
  Dict& seen = runtime.make_dict();
  List& list = runtime.make_list();
  for (const Value item : get_elements(runtime, self, "filter 'unique'").items) {
    const size_t n_before = seen.size();
    runtime.set(seen, keys.of(item), Value::none());
    if (seen.size() > n_before) runtime.append(list, item);
  }
  return Value::list(list);
}

Value group_by(Runtime& runtime, Value self, const Arguments& arguments) {
  ArgumentReader reader(runtime, "filter 'groupby'", arguments);
  const Value attribute = reader.next("attribute");
  const std::optional<Value> missing = reader.next_if_given("default");
  const bool case_sensitive = reader.next_boolean_or("case_sensitive", false);
  reader.done();
  const KeyMaker keys(runtime, attribute, case_sensitive, missing);
  std::vector<Keyed> all = keys.keyed(get_elements(runtime, self, "filter 'groupby'"));
  sort_by_key(runtime, all, false);
  List& groups = runtime.make_list();
  for (size_t i = 0; i < all.size();) {
    List& members = runtime.make_list();
    const size_t begin = i;
    do {
      runtime.append(members, all[i++].item);
    } while (i < all.size() && equal(runtime, all[i].key, all[begin].key));
    List& group = runtime.make_list({keys.attribute_of(members.items[0]), Value::list(members)});
    group.is_group = true;
    runtime.append(groups, Value::tuple(group));
  }
  return Value::list(groups);
}

Value find_min(Runtime& runtime, Value self, const Arguments& arguments) {
  return find_extreme(runtime, self, arguments, "filter 'min'", false);
}

Value find_max(Runtime& runtime, Value self, const Arguments& arguments) {
  return find_extreme(runtime, self, arguments, "filter 'max'", true);
}

}  // namespace sluice::text::jinja
