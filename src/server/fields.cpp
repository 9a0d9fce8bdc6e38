// See fields.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/fields.h"

#include <cmath>

#include "base/error.h"
#include "server/api_error.h"

namespace sluice::server {

std::string describe(const Json& value) {
  constexpr size_t kShown = 40;
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return text.size() <= kShown ? cat("the text ", dump(value))
                                 : cat("a text of ", text.size(), " bytes");
  }
  if (value.is_array()) return cat("a list of ", value.size());
  if (value.is_object()) return cat("an object with ", value.size(), " fields");
  return cat(value.is_number() ? "the number " : "", dump(value));
}

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object()) {
    throw bad_request(path_, cat(path_, " is ", describe(object), "; expected an object"));
  }
}

const Json* Fields::find(const std::string& name) const {
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::string Fields::path(const std::string& name) const {
  return path_.empty() ? name : path_ + "." + name;
}

void Fields::fail(const std::string& name, const std::string& expected) const {
  const Json* found = find(name);
  throw bad_request(path(name), cat("'", path(name), "' is ", found ? describe(*found) : "missing",
                                    "; expected ", expected));
}

std::optional<bool> Fields::boolean(const std::string& name) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_boolean()) fail(name, "true or false");
  return value->get<bool>();
}

std::optional<double> Fields::number(const std::string& name) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_number()) fail(name, "a number");
  return value->get<double>();
}

std::optional<int> Fields::integer(const std::string& name, int min, int max) const {
  const std::optional<double> value = number(name);
  if (!value) return std::nullopt;
  if (*value != std::floor(*value) || *value < min || *value > max) {
    fail(name, cat("a whole number from ", min, " to ", max));
  }
  return static_cast<int>(*value);
}

std::optional<std::string> Fields::string(const std::string& name) const {
  const Json* value = find(name);
  if (!value) return std::nullopt;
  if (!value->is_string()) fail(name, "a text");
  return value->get<std::string>();
}

std::string Fields::required_string(const std::string& name) const {
  std::optional<std::string> value = string(name);
  if (!value) fail(name, "a text");
  return *std::move(value);
}

const Json* Fields::object(const std::string& name) const {
  const Json* value = find(name);
  if (value && !value->is_object()) fail(name, "an object");
  return value;
}

const Json* Fields::array(const std::string& name) const {
  const Json* value = find(name);
  if (value && !value->is_array()) fail(name, "a list");
  return value;
}

std::vector<std::string> Fields::strings(const std::string& name) const {
  const Json* value = find(name);
  if (!value) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) fail(name, "a text or a list of texts");
  std::vector<std::string> all;
  for (const Json& item : *value) {
    if (!item.is_string()) {
      const std::string at = cat(path(name), "[", all.size(), "]");
      throw bad_request(at, cat("'", at, "' is ", describe(item), "; expected a text"));
    }
    all.push_back(item.get<std::string>());
  }
  return all;
}

std::vector<int32_t> Fields::integers(const std::string& name) const {
  const Json* value = array(name);
  std::vector<int32_t> all;
  if (!value) return all;
  for (const Json& item : *value) {
    const bool is_id = item.is_number_integer() && item >= 0 && item <= INT32_MAX;
    if (!is_id) {
      const std::string at = cat(path(name), "[", all.size(), "]");
      throw bad_request(at, cat("'", at, "' is ", describe(item), "; expected a token id"));
    }
    all.push_back(item.get<int32_t>());
  }
  return all;
}

}  // namespace sluice::server
