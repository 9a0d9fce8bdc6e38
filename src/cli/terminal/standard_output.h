// Whether anybody could take what the program printed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::cli {

// Writes out what is buffered. Throws Errc::bad_request with the system's reason (a full disk, a
// pipe without a reader) where that fails, or where an earlier write has failed.
void require_output();

}  // namespace sluice::cli
