// Blocks that share some work (backend/cuda/meeting.h), in g++: whatever comes between the steps of
// a block, each share is done once, after all have come, and the word is ready for the next round.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/meeting.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::backend::cuda {
namespace {

// Another block comes, from its beginning to its end, before each step that `times` names.
class Blocks {
 public:
  Blocks(int n, int n_polls, std::vector<int> times) : n_(n), n_polls_(n_polls), times_(times) {}

  // Of one round; block indices in the order `first`, `first` + 1, ...
  void run_round(int first) {
    done_.assign(static_cast<size_t>(n_), 0);
    n_come_ = n_begun_ = n_steps_ = 0, first_ = first;
    while (n_begun_ < n_) run_next();
    EXPECT_EQ(done_, std::vector<int>(static_cast<size_t>(n_), 1)) << text();
    EXPECT_EQ(word_ << 26, 0u) << text();
  }

  uint64_t add(uint64_t what) {
    step();
    ++n_come_;
    return std::exchange(word_, word_ + what);
  }
  uint64_t load() {
    step();
    return word_;
  }
  uint64_t set_bits(uint32_t bits) {
    step();
    return std::exchange(word_, word_ | bits);
  }
  uint64_t clear_bits(uint32_t bits) {
    step();
    return std::exchange(word_, word_ & ~uint64_t{bits});
  }

 private:
  void run_next() {
    const int index = (first_ + n_begun_++) % n_;
    const uint32_t shares = meet(*this, index, n_, n_polls_);
    for (int i = 0; i < n_; ++i) {
      if ((shares >> i & 1u) == 0) continue;
      ++done_[static_cast<size_t>(i)];
      EXPECT_EQ(n_come_, n_) << "a share before all had come: " << text();
    }
  }
  void step() {
    const int now = n_steps_++;
    for (const int time : times_) {
      if (time == now && n_begun_ < n_) run_next();
    }
  }
  std::string text() const {
    std::string out = std::to_string(n_) + " blocks, " + std::to_string(n_polls_) +
                      " polls, from " + std::to_string(first_) + ", at steps";
    for (const int time : times_) out += " " + std::to_string(time);
    return out;
  }

  int n_, n_polls_;
  std::vector<int> times_;
  uint64_t word_ = uint64_t{0xffffffc0u} << 32;  // the count goes on from 0 some day
  std::vector<int> done_;
  int first_ = 0, n_come_ = 0, n_begun_ = 0, n_steps_ = 0;
};

TEST(MeetingTest, EachShareIsDoneOnceWhoeverComesWhen) {
  for (const int n : {2, 3}) {
    for (const int n_polls : {0, 1, 2}) {
      for (int a = 0; a < 10; ++a) {
        for (int b = a; b < 10; ++b) {
          Blocks blocks(n, n_polls, {a, b});
          for (int round = 0; round < 3; ++round) blocks.run_round(round % n);
        }
      }
    }
  }
  Blocks many(kMostMeeting, 1, {5, 9, 31, 40});
  for (int round = 0; round < 3; ++round) many.run_round(7 * round);
}

TEST(MeetingTest, WhereNothingIsSharedTheLastDoesAll) {
  struct Word {
    uint64_t bits = 0;
    uint64_t add(uint64_t what) { return std::exchange(bits, bits + what); }
    uint64_t load() { return bits; }
    uint64_t set_bits(uint32_t more) { return std::exchange(bits, bits | more); }
    uint64_t clear_bits(uint32_t less) { return std::exchange(bits, bits & ~uint64_t{less}); }
  } word;
  for (int round = 0; round < 2; ++round) {
    for (const int index : {3, 0, 1}) EXPECT_EQ(meet(word, index, 4, -1), 0u);
    EXPECT_EQ(meet(word, 2, 4, -1), 4u);
  }
}

}  // namespace
}  // namespace sluice::backend::cuda
