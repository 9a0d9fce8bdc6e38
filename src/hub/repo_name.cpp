// See repo_name.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/repo_name.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::hub {
namespace {

constexpr size_t kMaxNameBytes = 96;
constexpr size_t kMaxPathBytes = 400;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes && std::ranges::all_of(text, is_word) &&
         text[0] != '.' && text[0] != '-' && text.find("..") == std::string_view::npos;
}

// Without the prefix; the same text where there is none.
std::string_view without_prefix(std::string_view text) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (text.starts_with(scheme)) text.remove_prefix(scheme.size());
  }
  if (text.starts_with(kHubPrefix)) return text.substr(kHubPrefix.size());
  const bool is_host = text.starts_with(kHubHost) && text.substr(kHubHost.size()).starts_with('/');
  return is_host ? text.substr(kHubHost.size() + 1) : text;
}

// What a page's address has between the repository and a file.
std::string_view without_view(std::string_view rest) {
  for (const std::string_view view : {"resolve/main/", "blob/main/", "tree/main/", "tree/main"}) {
    if (rest.starts_with(view)) return rest.substr(view.size());
  }
  return rest;
}

[[noreturn]] void refuse(std::string_view text) {
  throw Error(Errc::bad_request,
              cat("'", text.substr(0, 120), "' names no repository; expected user/repo or ",
                  "user/repo:quant, such as Qwen/Qwen3-30B-A3B-GGUF:Q4_K_M"));
}

}  // namespace

std::string RepoName::text() const {
  if (!file.empty()) return cat(id(), "/", file);
  return quant.empty() ? id() : cat(id(), ":", quant);
}

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPathBytes) return false;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    const bool has_control = std::ranges::any_of(
        part, [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127 || c == '\\'; });
    if (part.empty() || part[0] == '.' || has_control) return false;
    at = end + 1;
  }
  return true;
}

RepoName parse_repo_name(std::string_view text) {
  std::string_view rest = without_prefix(text);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos) refuse(text);
  RepoName name;
  name.user = rest.substr(0, slash);
  rest.remove_prefix(slash + 1);
  const size_t end = std::min(rest.find_first_of(":/"), rest.size());
  name.repo = rest.substr(0, end);
  rest.remove_prefix(end);
  if (!is_name(name.user) || !is_name(name.repo)) refuse(text);
  if (rest.starts_with('/')) {
    name.file = without_view(rest.substr(1));
    if (!name.file.empty() && !is_safe_path(name.file)) refuse(text);
  } else if (rest.starts_with(':')) {
    name.quant = rest.substr(1);
    if (!is_name(name.quant)) refuse(text);
  }
  return name;
}

std::optional<RepoName> parse_hub_name(std::string_view text) {
  const std::string_view rest = without_prefix(text);
  if (rest == text || text.ends_with(cat("://", rest))) return std::nullopt;
  return parse_repo_name(text);
}

}  // namespace sluice::hub
