// Reads the fields of a request: those that are missing or null are left as they are, unknown ones
// are nobody's business, and a wrong one is named with what was found and what was expected.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "server/json.h"

namespace sluice::server {

class Fields {
 public:
  // `object` must outlive it and be an object, else ApiError. `path` stands before the names of
  // fields in errors: "messages[2]".
  explicit Fields(const Json& object, std::string path = "");

  // Null where the field is missing or null.
  const Json* find(const std::string& name) const;
  std::string path(const std::string& name) const;
  [[noreturn]] void fail(const std::string& name, const std::string& expected) const;

  std::optional<bool> boolean(const std::string& name) const;
  std::optional<double> number(const std::string& name) const;
  std::optional<int> integer(const std::string& name, int min = std::numeric_limits<int>::min(),
                             int max = std::numeric_limits<int>::max()) const;
  std::optional<std::string> string(const std::string& name) const;
  std::string required_string(const std::string& name) const;
  const Json* object(const std::string& name) const;
  const Json* array(const std::string& name) const;
  // A text, or several.
  std::vector<std::string> strings(const std::string& name) const;
  std::vector<int32_t> integers(const std::string& name) const;

 private:
  const Json& object_;
  std::string path_;
};

// For errors: "the number 3", "a text of 12 bytes", "a list of 2".
std::string describe(const Json& value);

}  // namespace sluice::server
