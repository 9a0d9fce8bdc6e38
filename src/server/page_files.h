// The files of the page, as cmake/embed_page.cmake writes them into page_files.cpp of the build
// folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "server/page.h"

namespace sluice::server {

struct PageFile {
  std::string_view path;  // "/index.html"
  Asset asset;
};

std::span<const PageFile> page_files();

}  // namespace sluice::server
