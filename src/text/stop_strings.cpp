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

std::string StopStrings::push(std::string_view piece) {
  if (hit_) return "";
  held_ += piece;
  size_t end = std::string::npos;
  size_t keep = 0;
  for (const std::string& stop : stops_) {
    end = std::min(end, held_.find(stop));
    keep = std::max(keep, partial_match(held_, stop));
  }
  if (end != std::string::npos) {
    hit_ = true;
    std::string shown = held_.substr(0, end);
    held_.clear();
    return shown;
  }
  std::string shown = held_.substr(0, held_.size() - keep);
  held_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::finish() { return std::exchange(held_, {}); }

}  // namespace sluice::text
