// See progress_bar.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/units.h"

namespace sluice::cli {

ProgressBar::ProgressBar(std::string label, std::string unit)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      visible_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_(start_) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

std::string ProgressBar::amount(uint64_t n) const {
  return unit_.empty() ? format_bytes(n) : cat(n, " ", unit_);
}

void ProgressBar::update(uint64_t done, uint64_t total) {
  constexpr int kWidth = 30;
  constexpr auto kInterval = std::chrono::milliseconds(100);
  const auto now = Clock::now();
  if (!visible_ || total == 0 || (now - last_ < kInterval && done < total)) return;
  last_ = now;
  drawn_ = true;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const double seconds = std::max(1e-3, std::chrono::duration<double>(now - start_).count());
  const int filled = static_cast<int>(share * kWidth);
  const std::string bar = std::string(static_cast<size_t>(filled), '#') +
                          std::string(static_cast<size_t>(kWidth - filled), '.');
  std::fprintf(stderr, "\r%s [%s] %3.0f %%  %s of %s  %s/s\x1b[K", label_.c_str(), bar.c_str(),
               share * 100.0, amount(done).c_str(), amount(total).c_str(),
               amount(static_cast<uint64_t>(static_cast<double>(done) / seconds)).c_str());
  std::fflush(stderr);
}

}  // namespace sluice::cli
