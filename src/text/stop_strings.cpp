// See stop_strings.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/stop_strings.h"

#include <algorithm>
#include <utility>

#include "text/thinking.h"

namespace sluice::text {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& s) { return s.empty(); });
}

// Of several in one piece the one that ends first counts, as if the text had come byte by byte; of
// those that end there, the longest.
std::string StopStrings::push(std::string_view piece) {
  if (hit_) return "";
  held_ += piece;
  std::pair first{std::string::npos, std::string::npos};  // end and begin
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    if (const size_t begin = held_.find(stop); begin != std::string::npos) {
      first = std::min(first, std::pair(begin + stop.size(), begin));
    } else {
      keep = std::max(keep, partial_match(held_, stop));
    }
  }
  hit_ = first.first != std::string::npos;
  if (hit_) found_ = held_.substr(first.second, first.first - first.second);
  std::string shown = held_.substr(0, hit_ ? first.second : held_.size() - keep);
  held_.erase(0, hit_ ? held_.size() : shown.size());
  return shown;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace sluice::text
