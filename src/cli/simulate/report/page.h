// The page of `sluice simulate --report`: one HTML file that needs nothing beside it. Its parts
// (page.html, page.css, script/*.js) become part of the program when it is built.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli::report {

// `json`: the document whose fields script/document.js names. Any valid JSON text in UTF-8 is safe,
// whatever its strings hold.
std::string page(std::string_view json);

}  // namespace sluice::cli::report
