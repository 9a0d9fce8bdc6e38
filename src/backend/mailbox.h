// How a device asks the host for experts that it does not hold, in the midst of a step: pairs of
// expert and row, with the rows' inputs, in memory that both sides see; rows come back the same
// way. Only one request is open at a time, and each word has one side that writes it.
//
// Words, numbers and the view are plain, for kernels of any device to use: what belongs to a
// request is written before its word, with release; who reads the word acquires. A poll is one
// read. Every wait of the device ends: with the answer, or with the host's abort. A wait that ended
// without an answer is a fault, which the device writes down; the work behind it goes on, without
// sense, and whoever waits for the step reads the fault.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "backend/device.h"
#include "backend/views.h"
#include "base/ids.h"
#include "base/step_memory.h"

namespace sluice::backend {

// Each on a line of its own: who waits for one must not slow down who writes another.
struct MailboxWords {
  alignas(64) uint64_t posted;    // by the device: the newest request's number
  alignas(64) uint64_t answered;  // by the host: the newest that was answered; or kAborted
  alignas(64) uint64_t fault;     // by the device: the request that it gave up
};

constexpr uint64_t kAborted = ~uint64_t{0};  // no answer comes any more

// Never 0, and another one for every request: of a layer, or of the `part`th rows of it.
constexpr uint64_t request_number(uint32_t step, LayerId layer, int part = 0) {
  return uint64_t{step} << 32 | uint64_t(static_cast<uint16_t>(layer.value + 1)) << 16 |
         static_cast<uint16_t>(part);
}
constexpr uint32_t step_of(uint64_t number) { return static_cast<uint32_t>(number >> 32); }
constexpr LayerId layer_of(uint64_t number) {
  return LayerId(static_cast<int32_t>(number >> 16 & 0xffff) - 1);
}

// Written by the device before `posted`; the last by the host before `answered`.
struct MailboxHead {
  int32_t n_pairs;
  int32_t n_rows;
  int32_t has_f32;  // which formats of the input were posted
  int32_t has_q;
  int64_t answer_ns;  // that the answer took to compute
};

using MailboxShape = MailboxSize;

struct MailboxView {
  MailboxShape shape;
  MailboxWords* words = nullptr;
  MailboxHead* head = nullptr;
  ExpertPair* pairs = nullptr;  // [max_pairs]
  ExpertInputView input;        // of max_rows rows, in both formats
  float* answers = nullptr;     // [max_pairs, n_cols], by slot
};

class Mailbox {
 public:
  Mailbox(Device& device, const MailboxShape& shape);

  const MailboxView& view() const { return view_; }

  struct Request {
    uint64_t number = 0;
    LayerId layer;
    std::span<const ExpertPair> pairs;
    ExpertInputView input;  // all rows of it
  };

  // The host's side. A request stands until it is answered, and only the worker that answers may
  // read it; others may ask for its number (0: none is open) and its layer.
  std::optional<Request> open_request() const;
  uint64_t open_number() const;
  LayerId newest_layer() const;
  float* answer_rows() const { return view_.answers; }         // [max_pairs, n_cols]
  void answer_request(uint64_t number, double seconds = 0.0);  // not after an abort

  // Ends the device's waits, those to come too; until the host takes it back.
  void abort();
  bool is_aborted() const;
  void resume();

  // The layer in which that step's work gave up waiting.
  std::optional<LayerId> fault_in(uint32_t step) const;

 private:
  Buffer memory_;
  MailboxView view_;
};

// The device's side, for work that a CPU's thread does. Where the host has aborted, nothing is
// posted and no row comes; then the fault is written down, and the result is false.
bool post(const MailboxView& mailbox, uint64_t number, std::span<const ExpertPair> pairs,
          const ExpertInputView& input);
bool wait(const MailboxView& mailbox, uint64_t number);

}  // namespace sluice::backend
