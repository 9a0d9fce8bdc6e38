// How a device asks the host for experts that it does not hold, in the midst of a step: pairs of
// expert and row, with the rows' inputs, in memory that both sides see; rows come back the same
// way. Only one request is open at a time, and requests are numbered, so each side has one word
// that it alone writes. A third word ends all waiting.
//
// Every wait of the device ends: with the answer, or with the host's abort.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <span>

#include "backend/device.h"
#include "backend/views.h"
#include "base/ids.h"

namespace sluice::backend {

struct MailboxShape {
  int64_t max_rows = 0;   // of a step
  int64_t max_pairs = 0;  // rows times experts used
  int64_t n_cols = 0;     // of inputs and of answers: d_model
};

class Mailbox {
 public:
  Mailbox(Device& device, const MailboxShape& shape);

  struct Request {
    uint32_t number = 0;
    LayerId layer;
    std::span<const ExpertPair> pairs;
    ExpertInputView input;  // all rows of the step
  };

  // The device's side. post() returns the request's number for wait(), which says whether the rows
  // are there.
  uint32_t post(LayerId layer, std::span<const ExpertPair> pairs, const ExpertInputView& input);
  bool wait(uint32_t number) const;
  const float* answer(int64_t slot) const { return answers_ + slot * shape_.n_cols; }
  double answer_seconds() const { return head_->answer_seconds; }  // that it took to compute

  // The host's side. A request stands until it is answered, and only the worker that answers may
  // read it; others may ask for its number (0: none is open) and its layer.
  std::optional<Request> open_request() const;
  uint32_t open_number() const;
  LayerId newest_layer() const { return LayerId(words().layer.load(std::memory_order_relaxed)); }
  float* answer_rows() const { return answers_; }  // [max_pairs, n_cols]
  void answer_request(uint32_t number, double seconds = 0.0);

  // Ends the device's waits, those to come too; until the host takes it back.
  void abort() { words().aborted.store(1, std::memory_order_release); }
  bool is_aborted() const { return words().aborted.load(std::memory_order_acquire) != 0; }
  void resume();

 private:
  // Each on a line of its own: who waits for one must not slow down who writes another.
  struct Words {
    alignas(64) std::atomic<uint32_t> posted{0};
    std::atomic<int32_t> layer{0};
    alignas(64) std::atomic<uint32_t> answered{0};
    alignas(64) std::atomic<uint32_t> aborted{0};
  };

  Words& words() const { return *words_; }

  MailboxShape shape_;
  Buffer memory_;
  Words* words_ = nullptr;
  // Written by the device before `posted`; the last one by the host before `answered`.
  struct Head {
    int64_t n_pairs = 0;
    int64_t n_rows = 0;
    bool has_f32 = false;
    bool has_q = false;
    double answer_seconds = 0.0;
  };
  Head* head_ = nullptr;
  ExpertPair* pairs_ = nullptr;
  ExpertInputView input_;  // of max_rows rows, in both formats
  float* answers_ = nullptr;
};

}  // namespace sluice::backend
