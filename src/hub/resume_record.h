// What is known about a file that is half here, as the small text beside it says it: which file it
// is, and which of its bytes are on the disk. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hub/ranges.h"

namespace sluice::hub {

struct ResumeRecord {
  uint64_t n_bytes = 0;  // of the whole file
  std::string sha256;    // of the whole file; empty: not known
  // Bytes that the system has taken. It may lose them where the machine stops without warning, but
  // not where the program does.
  RangeSet landed;
  uint64_t n_synced = 0;  // so many from the beginning are on the disk in any case
  std::string boot;  // while which start of the machine they landed; empty: all are on the disk

  std::string to_text() const;
  // Nothing for a text that is none of these, or contradicts itself.
  static std::optional<ResumeRecord> parse(std::string_view text);

  // The bytes that can be relied on now. `boot_now`: of the machine; empty: not known.
  RangeSet reliable(std::string_view boot_now) const;
};

}  // namespace sluice::hub
