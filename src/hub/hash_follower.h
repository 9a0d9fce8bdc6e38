// Hashes a file while it is written: a thread that reads the bytes from the beginning on, as far
// as they have landed, and brings them to the disk from time to time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hub/sha256.h"

namespace sluice::hub {

class HashFollower {
 public:
  // The descriptor must outlive this.
  HashFollower(int fd, uint64_t n_bytes);
  ~HashFollower();  // stops at once
  HashFollower(const HashFollower&) = delete;
  HashFollower& operator=(const HashFollower&) = delete;

  // So many bytes from the beginning can be read.
  void advance(uint64_t n_landed);

  uint64_t n_hashed() const { return n_hashed_; }
  uint64_t n_synced() const { return n_synced_; }
  // Whether all is hashed, or reading has failed.
  bool is_over() const { return is_over_; }

  // The SHA-256 in hexadecimal digits; is_over() must hold. Throws Errc::bad_file where the file
  // could not be read.
  std::string hex();

 private:
  void follow();
  void hash_some(std::vector<std::byte>& buffer, uint64_t end);

  const int fd_;
  const uint64_t n_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t n_landed_ = 0;  // with the mutex
  bool stops_ = false;     // with the mutex
  std::atomic<uint64_t> n_hashed_ = 0;
  std::atomic<uint64_t> n_synced_ = 0;
  std::atomic<bool> is_over_ = false;
  Sha256 hash_;                // the thread's
  std::string hex_;            // once it is over
  std::exception_ptr thrown_;  // once it is over
  std::thread thread_;
};

}  // namespace sluice::hub
