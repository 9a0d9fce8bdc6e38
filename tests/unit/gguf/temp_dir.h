// A folder for one test's files (support/temp_dir.h), and what an error about a file says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "support/temp_dir.h"

namespace sluice::gguf::test {

using sluice::test::read_file;
using sluice::test::TempDir;
using sluice::test::write_file;

// The text of the sluice::Error that `action` throws; the test fails when it throws none, one of
// another code, or a text of several lines.
template <typename Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_file) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an Error, but nothing was thrown";
  return "";
}

// For EXPECT_PRED2 and its printing of both arguments.
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace sluice::gguf::test
