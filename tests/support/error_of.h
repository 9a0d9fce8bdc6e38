// The Error that a call throws, for tests of messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace sluice::test {

// The text of the Error that `action` throws, which must have this code and be one line.
template <typename Action>
std::string error_of(Errc code, const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "expected an Error, but nothing was thrown";
  return "";
}

}  // namespace sluice::test
