// Signals while a line is edited: none is lost, whenever it comes, and all is as before afterwards.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/editing_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace sluice::cli::test {
namespace {

class EditingSignalsTest : public testing::Test {
 protected:
  EditingSignalsTest() { EXPECT_EQ(::pipe(input_), 0); }
  ~EditingSignalsTest() override {
    ::close(input_[0]);
    ::close(input_[1]);
  }
  void type(char c) { EXPECT_EQ(::write(input_[1], &c, 1), 1); }
  void read_one() {
    char c = 0;
    EXPECT_EQ(::read(input_[0], &c, 1), 1);
  }

  int input_[2] = {};
};

TEST_F(EditingSignalsTest, OneThatCameBeforeTheWaitEndsItToo) {
  const EditingSignals signals;
  ::raise(SIGINT);  // there is nothing to read, and no other signal will come
  EXPECT_EQ(signals.wait(input_[0]), SIGINT);
  ::raise(SIGWINCH);
  ::raise(SIGCONT);
  EXPECT_EQ(signals.wait(input_[0]), SIGWINCH);
  EXPECT_EQ(signals.wait(input_[0]), SIGCONT);
}

TEST_F(EditingSignalsTest, ASignalComesBeforeInputThatIsThereAsWell) {
  const EditingSignals signals;
  type('a');
  EXPECT_EQ(signals.wait(input_[0]), 0);
  ::raise(SIGINT);
  EXPECT_EQ(signals.wait(input_[0]), SIGINT);
  EXPECT_EQ(signals.wait(input_[0]), 0) << "the letter is still there";
  read_one();
}

TEST_F(EditingSignalsTest, TheEndOfTheInputEndsTheWait) {
  const EditingSignals signals;
  ::close(input_[1]);
  EXPECT_EQ(signals.wait(input_[0]), 0);
  input_[1] = ::open("/dev/null", O_WRONLY);
}

volatile std::sig_atomic_t n_caught = 0;

TEST_F(EditingSignalsTest, HandlersAreAsBeforeAfterwards) {
  struct sigaction ours = {}, found = {}, before = {};
  ours.sa_handler = [](int) { n_caught = n_caught + 1; };
  ::sigaction(SIGINT, &ours, &before);
  {
    const EditingSignals signals;
    ::raise(SIGINT);
    EXPECT_EQ(signals.wait(input_[0]), SIGINT);
    EXPECT_EQ(n_caught, 0);
  }
  ::raise(SIGINT);
  EXPECT_EQ(n_caught, 1);
  ::sigaction(SIGINT, &before, &found);
  EXPECT_EQ(found.sa_handler, ours.sa_handler);
}

TEST_F(EditingSignalsTest, OneThatIsLetThroughMeetsTheHandlerOfBefore) {
  struct sigaction ours = {}, before = {};
  ours.sa_handler = [](int) { n_caught = n_caught + 1; };
  ::sigaction(SIGTERM, &ours, &before);
  n_caught = 0;
  {
    const EditingSignals signals;
    signals.let_through(SIGTERM);
    EXPECT_EQ(n_caught, 1);
    ::raise(SIGTERM);
    EXPECT_EQ(signals.wait(input_[0]), SIGTERM) << "caught again";
    EXPECT_EQ(n_caught, 1);
  }
  ::sigaction(SIGTERM, &before, nullptr);
}

TEST_F(EditingSignalsTest, WhatWasIgnoredStaysIgnored) {
  struct sigaction ignored = {}, before = {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGHUP, &ignored, &before);
  {
    const EditingSignals signals;
    ::raise(SIGHUP);
    type('a');
    EXPECT_EQ(signals.wait(input_[0]), 0);
  }
  ::sigaction(SIGHUP, &before, nullptr);
}

}  // namespace
}  // namespace sluice::cli::test
