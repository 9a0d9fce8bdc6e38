// See api_keys.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/api_keys.h"

#include <algorithm>

#include "server/api_error.h"

namespace sluice::server {
namespace {

constexpr std::string_view kBearer = "Bearer ";

// Looks at every byte of `given`, whatever it finds. Volatile, or the compiler might stop early.
bool equals(std::string_view given, std::string_view known) {
  volatile unsigned char differ = given.size() == known.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i) {
    const char other = known.empty() ? '\0' : known[i % known.size()];
    differ = static_cast<unsigned char>(differ | static_cast<unsigned char>(given[i] ^ other));
  }
  return differ == 0;
}

}  // namespace

ApiKeys::ApiKeys(std::vector<std::string> keys) : keys_(std::move(keys)) {
  std::erase_if(keys_, [](const std::string& key) { return key.empty(); });
}

bool ApiKeys::knows(std::string_view key) const {
  bool found = false;
  for (const std::string& known : keys_) found |= equals(key, known);
  return found;
}

void ApiKeys::check(const HttpRequest& request) const {
  if (keys_.empty()) return;
  const std::string_view bearer = request.header("authorization");
  const bool has_bearer = bearer.starts_with(kBearer);
  const std::string_view key =
      has_bearer ? bearer.substr(kBearer.size()) : request.header("x-api-key");
  if (key.empty()) {
    throw ApiError(401, "this server needs an API key; send it as 'Authorization: Bearer KEY'", "",
                   "missing_api_key");
  }
  if (!knows(key))
    throw ApiError(401, "the API key is not one of this server's", "", "invalid_api_key");
}

std::vector<std::string> keys_of(std::string_view text) {
  std::vector<std::string> keys;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    if (!line.empty() && line.front() != '#') keys.emplace_back(line);
  }
  return keys;
}

}  // namespace sluice::server
