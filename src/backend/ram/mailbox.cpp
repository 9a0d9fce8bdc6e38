// See backend/mailbox.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/mailbox.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>

#include "base/carver.h"
#include "base/check.h"
#include "base/patience.h"

namespace sluice::backend {
namespace {

uint64_t load(uint64_t& word) { return std::atomic_ref(word).load(std::memory_order_acquire); }
void store(uint64_t& word, uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

// The first fault of a step says most: later layers wait for nobody.
void write_fault(const MailboxView& mailbox, uint64_t number) {
  uint64_t& fault = mailbox.words->fault;
  if (step_of(load(fault)) != step_of(number)) store(fault, number);
}

}  // namespace

Mailbox::Mailbox(Device& device, const MailboxShape& shape) {
  const auto carve = [&](Carver carver) {
    const int64_t n_values = shape.max_rows * shape.n_cols;
    view_.shape = shape;
    view_.words = carver.take<MailboxWords>(1);
    view_.head = carver.take<MailboxHead>(1);
    view_.pairs = carver.take<ExpertPair>(shape.max_pairs);
    view_.input = {.n_rows = shape.max_rows,
                   .n_cols = shape.n_cols,
                   .f32 = carver.take<float>(n_values),
                   .q = carver.take<int8_t>(n_values),
                   .d = carver.take<float>(n_values / 32),
                   .y = carver.take<float>(n_values / 32)};
    view_.answers = carver.take<float>(shape.max_pairs * shape.n_cols);
    return carver.n_bytes();
  };
  memory_ = device.allocate(MemoryKind::mapped, mailbox_bytes(shape));
  CHECK(carve(Carver(memory_.data())) == memory_.n_bytes());
  new (view_.words) MailboxWords{};
  new (view_.head) MailboxHead{};
}

uint64_t Mailbox::open_number() const {
  const uint64_t number = load(view_.words->posted);
  const uint64_t answered = load(view_.words->answered);
  return number == answered || answered == kAborted ? 0 : number;
}

LayerId Mailbox::newest_layer() const { return layer_of(load(view_.words->posted)); }

std::optional<Mailbox::Request> Mailbox::open_request() const {
  const uint64_t number = open_number();
  if (number == 0) return {};
  const MailboxHead& head = *view_.head;
  Request request{
      number, layer_of(number), {view_.pairs, static_cast<size_t>(head.n_pairs)}, view_.input};
  request.input.n_rows = head.n_rows;
  if (!head.has_f32) request.input.f32 = nullptr;
  if (!head.has_q) request.input.q = nullptr, request.input.d = request.input.y = nullptr;
  return request;
}

void Mailbox::answer_request(uint64_t number, double seconds) {
  view_.head->answer_ns = std::llround(seconds * 1e9);
  const std::atomic_ref answered(view_.words->answered);
  uint64_t before = answered.load(std::memory_order_relaxed);
  while (before != kAborted &&
         !answered.compare_exchange_weak(before, number, std::memory_order_release)) {
  }
}

void Mailbox::abort() { store(view_.words->answered, kAborted); }
bool Mailbox::is_aborted() const { return load(view_.words->answered) == kAborted; }

// What was open has been given up: nobody waits for it any more.
void Mailbox::resume() { store(view_.words->answered, load(view_.words->posted)); }

std::optional<LayerId> Mailbox::fault_in(uint32_t step) const {
  const uint64_t fault = load(view_.words->fault);
  if (fault == 0 || step_of(fault) != step) return {};
  return layer_of(fault);
}

bool post(const MailboxView& mailbox, uint64_t number, std::span<const ExpertPair> pairs,
          const ExpertInputView& input) {
  if (load(mailbox.words->answered) == kAborted) {  // its workers may still read the last request
    write_fault(mailbox, number);
    return false;
  }
  const MailboxShape& shape = mailbox.shape;
  CHECK(std::ssize(pairs) <= shape.max_pairs && input.n_rows <= shape.max_rows);
  CHECK(input.n_cols == shape.n_cols);
  const int64_t n_values = input.n_rows * input.n_cols;
  *mailbox.head = {.n_pairs = static_cast<int32_t>(pairs.size()),
                   .n_rows = static_cast<int32_t>(input.n_rows),
                   .has_f32 = input.f32 != nullptr,
                   .has_q = input.q != nullptr,
                   .answer_ns = 0};
  std::ranges::copy(pairs, mailbox.pairs);
  if (input.f32) std::copy_n(input.f32, n_values, mailbox.input.f32);
  if (input.q) {
    std::copy_n(input.q, n_values, mailbox.input.q);
    std::copy_n(input.d, n_values / 32, mailbox.input.d);
    std::copy_n(input.y, n_values / 32, mailbox.input.y);
  }
  store(mailbox.words->posted, number);
  return true;
}

bool wait(const MailboxView& mailbox, uint64_t number) {
  for (Patience patience;; patience.wait()) {
    const uint64_t answered = load(mailbox.words->answered);
    if (answered == number) return true;
    if (answered != kAborted) continue;
    write_fault(mailbox, number);
    return false;
  }
}

}  // namespace sluice::backend
