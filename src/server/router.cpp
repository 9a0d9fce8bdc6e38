// See router.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/router.h"

#include "base/error.h"
#include "server/api_error.h"

namespace sluice::server {
namespace {

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  return path.size() > pattern.size() && path.starts_with(pattern);
}

}  // namespace

const Route& Router::find(std::string_view method, std::string_view path) const {
  std::string others;
  const Route* open_ended = nullptr;
  for (const Route& route : routes_) {
    if (!matches(route.path, path)) continue;
    const bool is_exact = !route.path.ends_with('*');
    if (route.method != method) {
      if (is_exact) others += (others.empty() ? "" : ", ") + route.method;
    } else if (is_exact) {
      return route;
    } else if (!open_ended) {
      open_ended = &route;
    }
  }
  if (!others.empty()) throw ApiError(405, cat("this path takes ", others));
  if (open_ended) return *open_ended;
  constexpr size_t kShown = 60;
  throw ApiError(404, cat("there is nothing at ", path.size() <= kShown ? path : "this path",
                          "; docs/serve.md lists what there is"));
}

}  // namespace sluice::server
