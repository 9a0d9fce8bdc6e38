// The web page, as bytes in the program: what stands at a path, and the policy that a browser must
// be told with it. web/ is its source, cmake/page.cmake brings it here. Without node there is one
// page, which says how to have it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace sluice::server {

// One file of the page. All views last as long as the program.
struct Asset {
  std::string_view content_type;
  std::string_view bytes;
  std::string_view gzip;  // the same, compressed; empty where that is not smaller
  std::string_view etag;  // with its quotes
};

// What a GET of `path` (no query) answers; "/" is the page itself. Nothing for a path that is not
// the page's.
std::optional<Asset> page_asset(std::string_view path);

// The Content-Security-Policy to send with each asset: scripts, styles, fonts and requests of this
// server alone.
std::string_view page_csp();

}  // namespace sluice::server
