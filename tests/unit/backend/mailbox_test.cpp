// The mailbox between a device and the host: what one side writes before its word the other reads
// after it, over and over; and no wait without an end.
// SPDX-License-Identifier: Apache-2.0
#include "backend/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

#include "backend/ram/ram_device.h"
#include "base/units.h"
#include "unit/backend/routing.h"

namespace sluice::backend::test {
namespace {

struct MailboxTest : testing::Test {
  static constexpr int64_t kCols = 64;

  RamDevice device{{.n_bytes = kMiB, .before_copy = {}}};
  Mailbox mailbox{device, {.max_rows = 4, .max_pairs = 8, .n_cols = kCols}};
  uint32_t step = 1;

  uint64_t ask(LayerId layer, std::span<const ExpertPair> pairs, const ExpertInputView& input) {
    const uint64_t number = request_number(step, layer);
    EXPECT_TRUE(post(mailbox.view(), number, pairs, input));
    return number;
  }
};

TEST_F(MailboxTest, CarriesARequestAsItWasPosted) {
  EXPECT_FALSE(mailbox.open_request());
  ExpertInput input(Rows::random(3, kCols, 5));
  const std::vector<ExpertPair> pairs = {{7, 0, 1}, {2, 2, 5}};
  const uint64_t number = ask(LayerId(11), pairs, input.view());
  const auto request = mailbox.open_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->number, number);
  EXPECT_EQ(request->layer.value, 11);
  ASSERT_EQ(request->pairs.size(), 2u);
  EXPECT_EQ(request->pairs[1].expert, 2);
  EXPECT_EQ(request->pairs[1].row, 2);
  EXPECT_EQ(request->pairs[1].slot, 5);
  EXPECT_EQ(request->input.n_rows, 3);
  EXPECT_TRUE(std::equal(input.q.begin(), input.q.end(), request->input.q));
  EXPECT_TRUE(std::equal(input.d.begin(), input.d.end(), request->input.d));
  EXPECT_TRUE(std::equal(input.y.begin(), input.y.end(), request->input.y));
  EXPECT_TRUE(std::equal(input.f32.values.begin(), input.f32.values.end(), request->input.f32));
  mailbox.answer_request(number);
  EXPECT_TRUE(wait(mailbox.view(), number));
  EXPECT_FALSE(mailbox.open_request());
}

TEST_F(MailboxTest, AFormatThatWasNotPostedIsNotThere) {
  ExpertInput input(Rows::random(1, kCols, 5));
  ExpertInputView only_q = input.view();
  only_q.f32 = nullptr;
  ask(LayerId(0), {}, only_q);
  const auto request = mailbox.open_request();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->input.f32, nullptr);
  EXPECT_NE(request->input.q, nullptr);
}

// Under TSan this is the proof that the words order the rows.
TEST_F(MailboxTest, TwoThreadsTalkWithoutARace) {
  constexpr int kRounds = 2000;
  std::thread host([&] {
    for (int round = 0; round < kRounds; ++round) {
      std::optional<Mailbox::Request> request;
      while (!(request = mailbox.open_request())) std::this_thread::yield();
      for (const ExpertPair& pair : request->pairs) {
        float* const row = mailbox.answer_rows() + pair.slot * kCols;
        const float* const in = request->input.f32 + pair.row * kCols;
        for (int64_t i = 0; i < kCols; ++i) row[i] = in[i] + static_cast<float>(pair.expert);
      }
      mailbox.answer_request(request->number);
    }
  });
  ExpertInput input(Rows(1, kCols));
  int n_wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    input.f32.values.assign(kCols, static_cast<float>(round));
    step = static_cast<uint32_t>(round + 1);
    const std::vector<ExpertPair> pairs = {{round % 7, 0, round % 8}};
    const uint64_t number = ask(LayerId(0), pairs, input.view());
    ASSERT_TRUE(wait(mailbox.view(), number));
    const auto expected = static_cast<float>(round + round % 7);
    for (int64_t i = 0; i < kCols; ++i)
      n_wrong += mailbox.view().answers[round % 8 * kCols + i] != expected;
  }
  host.join();
  EXPECT_EQ(n_wrong, 0);
}

TEST_F(MailboxTest, AnAbortEndsTheWaitAndLeavesTheNextRequestWhole) {
  ExpertInput input(Rows::random(1, kCols, 5));
  const uint64_t number = ask(LayerId(3), {}, input.view());
  std::thread host([&] { mailbox.abort(); });
  EXPECT_FALSE(wait(mailbox.view(), number));
  host.join();
  EXPECT_TRUE(mailbox.is_aborted());
  // The rest of the step asks for nothing, and its first fault is the one to tell.
  EXPECT_FALSE(post(mailbox.view(), request_number(step, LayerId(9)), {}, input.view()));
  ASSERT_TRUE(mailbox.fault_in(step));
  EXPECT_EQ(mailbox.fault_in(step)->value, 3);
  EXPECT_FALSE(mailbox.fault_in(step + 1));
  mailbox.answer_request(number);  // too late
  EXPECT_TRUE(mailbox.is_aborted());
  mailbox.resume();
  EXPECT_FALSE(mailbox.open_request());
  const uint64_t next = ask(LayerId(4), {}, input.view());
  ASSERT_TRUE(mailbox.open_request());
  EXPECT_EQ(mailbox.open_request()->layer.value, 4);
  mailbox.answer_request(next);
  EXPECT_TRUE(wait(mailbox.view(), next));
}

}  // namespace
}  // namespace sluice::backend::test
