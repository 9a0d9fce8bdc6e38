// Finds a file of the page by its path. There are about ten: a walk over all is as quick as a
// table.
// SPDX-License-Identifier: Apache-2.0
#include "server/page.h"

#include "server/page_files.h"

namespace sluice::server {

std::optional<Asset> page_asset(std::string_view path) {
  if (path == "/") path = "/index.html";
  for (const PageFile& file : page_files()) {
    if (file.path == path) return file.asset;
  }
  return std::nullopt;
}

}  // namespace sluice::server
