// See profile_saver.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/profile_saver.h"

#include <chrono>
#include <exception>
#include <utility>

#include "base/error.h"
#include "engine/machine/profile_file.h"

namespace sluice::engine {

ProfileSaver::ProfileSaver(std::string path, policy::RoutingProfile at_start,
                           double interval_seconds)
    : path_(std::move(path)), at_start_(std::move(at_start)), interval_seconds_(interval_seconds) {}

bool ProfileSaver::after_step(std::span<const uint32_t> uses, uint64_t n_steps,
                              double now_seconds) {
  if (!last_seconds_) last_seconds_ = now_seconds;
  if (path_.empty() || now_seconds - *last_seconds_ < interval_seconds_) return false;
  if (is_saving()) return false;
  last_seconds_ = now_seconds;
  try {
    saving_ = std::async(
        std::launch::async,
        [this, n_steps, copy = Uses(uses.begin(), uses.end())] { return save(copy, n_steps); });
  } catch (const std::exception& error) {  // no thread to be had
    warning_ = warning_of(error);
  }
  return true;
}

void ProfileSaver::finish(std::span<const uint32_t> uses, uint64_t n_steps) {
  wait();
  if (!path_.empty() && n_steps > 0) warning_ = save(uses, n_steps);
}

void ProfileSaver::wait() {
  if (saving_.valid()) warning_ = saving_.get();
}

const std::string& ProfileSaver::warning() {
  is_saving();
  return warning_;
}

// Takes the result of a save that has ended.
bool ProfileSaver::is_saving() {
  if (!saving_.valid()) return false;
  if (saving_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return true;
  wait();
  return false;
}

std::string ProfileSaver::save(std::span<const uint32_t> uses, uint64_t n_steps) const {
  try {
    policy::RoutingProfile profile = at_start_;
    profile.add_run(uses, n_steps);
    ProfileFile::save(path_, profile);
    return "";
  } catch (const std::exception& error) {
    return warning_of(error);
  }
}

std::string ProfileSaver::warning_of(const std::exception& error) {
  return cat("the routing profile is not saved: ", error.what());
}

}  // namespace sluice::engine
