// See resume_record.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/resume_record.h"

#include <sstream>

#include "base/error.h"

namespace sluice::hub {
namespace {

constexpr std::string_view kFirstLine = "sluice partial file 1";

}  // namespace

std::string ResumeRecord::to_text() const {
  std::string ranges;
  for (const Range& r : landed.ranges()) ranges += cat(" ", r.begin, "-", r.end);
  return cat(kFirstLine, "\nbytes ", n_bytes, "\nsha256 ", sha256.empty() ? "-" : sha256,
             "\nsynced ", n_synced, "\nboot ", boot.empty() ? "-" : boot, "\nlanded", ranges,
             "\nend\n");
}

std::optional<ResumeRecord> ResumeRecord::parse(std::string_view text) {
  std::istringstream in{std::string(text)};
  std::string line;
  if (!std::getline(in, line) || line != kFirstLine) return std::nullopt;
  ResumeRecord record;
  const auto expect = [&](const char* word) {
    std::string found;
    return static_cast<bool>(in >> found) && found == word;
  };
  if (!expect("bytes") || !(in >> record.n_bytes) || !expect("sha256") || !(in >> record.sha256) ||
      !expect("synced") || !(in >> record.n_synced) || !expect("boot") || !(in >> record.boot) ||
      !expect("landed")) {
    return std::nullopt;
  }
  if (record.sha256 == "-") record.sha256.clear();
  if (record.boot == "-") record.boot.clear();
  for (std::string word; in >> word;) {
    if (word == "end") return record;
    std::istringstream range(word);
    Range r;
    char dash = 0;
    if (!(range >> r.begin >> dash >> r.end) || dash != '-' || r.begin >= r.end ||
        r.end > record.n_bytes) {
      return std::nullopt;
    }
    record.landed.add(r);
  }
  return std::nullopt;  // cut off
}

RangeSet ResumeRecord::reliable(std::string_view boot_now) const {
  RangeSet out = landed;
  const bool is_same_boot = !boot_now.empty() && boot == boot_now;
  if (!boot.empty() && !is_same_boot) out.cut(n_synced);
  return out;
}

}  // namespace sluice::hub
