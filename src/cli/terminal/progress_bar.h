// A bar on standard error for work that takes a while; nothing where that is not a terminal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace sluice::cli {

struct WorkDone {
  uint64_t done = 0, total = 0;
  double seconds = 0.0;  // since the beginning
  uint64_t before = 0;   // of those done: what was so at the beginning already
};

// "[#####.....] 50 %  3500 of 7000 tokens  310 tokens/s  12 s left", without what is not known yet.
// Of `n_columns` at most: first the bar gets shorter, or is left out, then the end is.
std::string progress_line(const WorkDone& p, const std::string& unit,
                          size_t n_columns = std::string::npos);

class ProgressBar {
 public:
  // What is counted: bytes, unless there is a name for it.
  explicit ProgressBar(std::string label, std::string unit = "");
  ~ProgressBar();  // wipes the bar
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  bool visible() const { return visible_; }
  // So much is done already, by earlier work: the rate is that of the rest.
  void begin_at(uint64_t done) { before_ = done; }
  // Draws an empty bar at once: for work that is known to be long.
  void show(uint64_t total);
  // Draws at most a few times a second, and nothing for work that is over sooner than that.
  void update(uint64_t done, uint64_t total);
  std::function<void(uint64_t, uint64_t)> updater() {
    return [this](uint64_t done, uint64_t total) { update(done, total); };
  }

 private:
  using Clock = std::chrono::steady_clock;
  void draw(uint64_t done, uint64_t total);

  std::string label_;
  std::string unit_;
  bool visible_;
  bool drawn_ = false;
  uint64_t before_ = 0;
  Clock::time_point start_;
  Clock::time_point last_;
};

// The bar of a prompt that a session takes in: there at once where the prompt is long, and gone
// before the answer.
class PromptBar {
 public:
  // For PromptOptions::progress; outlived by this.
  std::function<void(int, int)> updater() {
    return [this](int n_done, int n_total) { update(n_done, n_total); };
  }

 private:
  void update(int n_done, int n_total);

  std::optional<ProgressBar> bar_;
};

}  // namespace sluice::cli
