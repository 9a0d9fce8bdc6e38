// See progress_bar.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/units.h"
#include "cli/terminal/style.h"

namespace sluice::cli {
namespace {

constexpr size_t kWidth = 30;
constexpr size_t kLeastWidth = 5;
constexpr auto kInterval = std::chrono::milliseconds(100);

// Bytes, unless there is a unit.
std::string amount(uint64_t n, const std::string& unit) {
  return unit.empty() ? format_bytes(n) : cat(n, " ", unit);
}

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::ceil(seconds));
  if (whole < 120) return cat(whole, " s");
  if (whole < 120 * 60) return cat(whole / 60, " min");
  return cat(whole / 3600, " h ", whole / 60 % 60, " min");
}

}  // namespace

std::string progress_line(const WorkDone& p, const std::string& unit, size_t n_columns) {
  const double share = std::min(1.0, static_cast<double>(p.done) / static_cast<double>(p.total));
  std::string line =
      cat(static_cast<int>(share * 100.0), " %  ",
          unit.empty() ? format_bytes(p.done) : cat(p.done), " of ", amount(p.total, unit));
  if (p.done > p.before) {
    const double rate = static_cast<double>(p.done - p.before) / std::max(1e-3, p.seconds);
    const auto n_left = static_cast<double>(p.total - std::min(p.done, p.total));
    line += cat("  ", amount(static_cast<uint64_t>(rate), unit), "/s  ", duration(n_left / rate),
                " left");
  }
  const size_t n_around = line.size() + std::string_view("[] ").size();
  const size_t width = n_columns > n_around ? std::min(kWidth, n_columns - n_around) : 0;
  if (width < kLeastWidth) return line.substr(0, n_columns);
  const auto filled = static_cast<size_t>(share * static_cast<double>(width));
  return cat("[", std::string(filled, '#'), std::string(width - filled, '.'), "] ", line);
}

ProgressBar::ProgressBar(std::string label, std::string unit)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      visible_(isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      last_(start_) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void ProgressBar::show(uint64_t total) {
  if (visible_ && total > 0) draw(0, total);
}

void ProgressBar::update(uint64_t done, uint64_t total) {
  if (!visible_ || total == 0) return;
  const bool is_end = drawn_ && done == total;
  if (Clock::now() - last_ >= kInterval || is_end) draw(done, total);
}

void ProgressBar::draw(uint64_t done, uint64_t total) {
  last_ = Clock::now();
  drawn_ = true;
  const double seconds = std::chrono::duration<double>(last_ - start_).count();
  // A line that does not fit would go on in the next row, where the next one would begin.
  const int n_columns = terminal_columns(STDERR_FILENO);
  const size_t n_label = label_.size() + 1;
  const size_t room = n_columns <= 0 ? std::string::npos
                                     : static_cast<size_t>(n_columns) - 1 -
                                           std::min(static_cast<size_t>(n_columns) - 1, n_label);
  const std::string line = progress_line({done, total, seconds, before_}, unit_, room);
  std::fprintf(stderr, "\r%s %s\x1b[K", label_.c_str(), line.c_str());
  std::fflush(stderr);
}

void PromptBar::update(int n_done, int n_total) {
  constexpr int kLongPrompt = 512;  // tokens; shorter ones may be over before anybody has looked
  if (n_done == n_total) {
    bar_.reset();
  } else if (!bar_) {
    bar_.emplace("reading the prompt", "tokens");
    if (n_total >= kLongPrompt) bar_->show(static_cast<uint64_t>(n_total));
  } else {
    bar_->update(static_cast<uint64_t>(n_done), static_cast<uint64_t>(n_total));
  }
}

}  // namespace sluice::cli
