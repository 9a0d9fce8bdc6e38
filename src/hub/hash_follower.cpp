// See hash_follower.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/hash_follower.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice::hub {
namespace {

constexpr uint64_t kReadBytes = kMiB;
constexpr uint64_t kSyncEvery = 256 * kMiB;

}  // namespace

HashFollower::HashFollower(int fd, uint64_t n_bytes)
    : fd_(fd), n_bytes_(n_bytes), thread_([this] { follow(); }) {}

HashFollower::~HashFollower() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HashFollower::advance(uint64_t n_landed) {
  {
    const std::lock_guard lock(mutex_);
    if (n_landed <= n_landed_) return;
    n_landed_ = n_landed;
  }
  changed_.notify_all();
}

void HashFollower::follow() {
  try {
    std::vector<std::byte> buffer(kReadBytes);
    while (n_hashed_ < n_bytes_) {
      uint64_t end = 0;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stops_ || n_landed_ > n_hashed_; });
        if (stops_) return;
        end = n_landed_;
      }
      hash_some(buffer, end);
      if (n_hashed_ - n_synced_ >= kSyncEvery && ::fdatasync(fd_) == 0)
        n_synced_ = n_hashed_.load();
    }
    hex_ = hash_.hex();
  } catch (...) {
    thrown_ = std::current_exception();
  }
  is_over_ = true;
}

void HashFollower::hash_some(std::vector<std::byte>& buffer, uint64_t end) {
  const uint64_t at = n_hashed_;
  const size_t wanted = std::min<uint64_t>(buffer.size(), end - at);
  const ssize_t n = ::pread(fd_, buffer.data(), wanted, static_cast<off_t>(at));
  if (n < 0 && errno == EINTR) return;
  if (n <= 0) {
    throw Error(Errc::bad_file,
                cat("what was fetched cannot be read at byte ", at, " (",
                    n < 0 ? std::generic_category().message(errno) : "the file ends there",
                    "); expected a whole file on a sound disk: run it again"));
  }
  hash_.add(std::span(buffer).first(static_cast<size_t>(n)));
  n_hashed_ = at + static_cast<uint64_t>(n);
}

std::string HashFollower::hex() {
  CHECK(is_over_);
  if (thrown_) std::rethrow_exception(thrown_);
  return hex_;
}

}  // namespace sluice::hub
