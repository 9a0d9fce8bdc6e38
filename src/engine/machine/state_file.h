// Small files that the engine keeps from one run to the next. None of them is worth failing for:
// what cannot be read is a warning and a start without it, and what is written is whole or not
// there at all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace sluice::engine {

// Hands all bytes of the file to `parse`. Where there is no file, nothing happens. Where it cannot
// be read, is larger than max_bytes, or parse throws an Error, `warning` becomes one line that says
// what was found.
void read_state_file(const std::string& path, uint64_t max_bytes,
                     const std::function<void(std::span<const std::byte>)>& parse,
                     std::string* warning);

// Replaces the file as a whole, and makes the folders above it (mode 0700) where they are missing.
// Several processes may do so at the same time; the last one's content stays. Throws Errc::bad_file
// for a full disk and the like; the older file is then as it was.
void write_state_file(const std::string& path, std::span<const std::byte> bytes);

}  // namespace sluice::engine
