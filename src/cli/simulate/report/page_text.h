// The page without its document. Its definition is written by cmake/embed_report.cmake.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace sluice::cli::report {

extern const std::string_view kPageText;

}  // namespace sluice::cli::report
