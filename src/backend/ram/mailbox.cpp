// See backend/mailbox.h. The device's side as the RAM device needs it: kernels of other devices
// read and write the same words and rows by their own means.
// SPDX-License-Identifier: Apache-2.0
#include "backend/mailbox.h"

#include <algorithm>
#include <new>

#include "base/check.h"
#include "base/patience.h"

namespace sluice::backend {
namespace {

constexpr uint64_t kAlignment = 64;

// Takes room from the front of a block, one array after another; with no block only counts.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  template <typename T>
  T* take(int64_t n) {
    std::byte* const at = base_ ? base_ + n_bytes_ : nullptr;
    const uint64_t bytes = static_cast<uint64_t>(n) * sizeof(T);
    n_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return reinterpret_cast<T*>(at);
  }
  uint64_t n_bytes() const { return n_bytes_; }

 private:
  std::byte* base_;
  uint64_t n_bytes_ = 0;
};

}  // namespace

Mailbox::Mailbox(Device& device, const MailboxShape& shape) : shape_(shape) {
  const auto carve = [&](Carver carver) {
    const int64_t n_values = shape.max_rows * shape.n_cols;
    words_ = carver.take<Words>(1);
    head_ = carver.take<Head>(1);
    pairs_ = carver.take<ExpertPair>(shape.max_pairs);
    input_ = {.n_rows = shape.max_rows,
              .n_cols = shape.n_cols,
              .f32 = carver.take<float>(n_values),
              .q = carver.take<int8_t>(n_values),
              .d = carver.take<float>(n_values / 32),
              .y = carver.take<float>(n_values / 32)};
    answers_ = carver.take<float>(shape.max_pairs * shape.n_cols);
    return carver.n_bytes();
  };
  memory_ = device.allocate(MemoryKind::mapped, carve(Carver(nullptr)));
  carve(Carver(memory_.data()));
  new (words_) Words;
  new (head_) Head;
}

uint32_t Mailbox::post(LayerId layer, std::span<const ExpertPair> pairs,
                       const ExpertInputView& input) {
  CHECK(std::ssize(pairs) <= shape_.max_pairs && input.n_rows <= shape_.max_rows);
  CHECK(input.n_cols == shape_.n_cols);
  const int64_t n_values = input.n_rows * input.n_cols;
  *head_ = {std::ssize(pairs), input.n_rows, input.f32 != nullptr, input.q != nullptr, 0.0};
  std::ranges::copy(pairs, pairs_);
  if (input.f32) std::copy_n(input.f32, n_values, input_.f32);
  if (input.q) {
    std::copy_n(input.q, n_values, input_.q);
    std::copy_n(input.d, n_values / 32, input_.d);
    std::copy_n(input.y, n_values / 32, input_.y);
  }
  words().layer.store(layer.value, std::memory_order_relaxed);
  uint32_t number = words().posted.load(std::memory_order_relaxed) + 1;
  if (number == 0) number = 1;  // 0 means none
  words().posted.store(number, std::memory_order_release);
  return number;
}

bool Mailbox::wait(uint32_t number) const {
  Patience patience;
  while (words().answered.load(std::memory_order_acquire) != number) {
    if (is_aborted()) return false;
    patience.wait();
  }
  return true;
}

uint32_t Mailbox::open_number() const {
  const uint32_t number = words().posted.load(std::memory_order_acquire);
  return number == words().answered.load(std::memory_order_relaxed) ? 0 : number;
}

std::optional<Mailbox::Request> Mailbox::open_request() const {
  const uint32_t number = open_number();
  if (number == 0) return {};
  Request request{number, newest_layer(), {pairs_, static_cast<size_t>(head_->n_pairs)}, input_};
  request.input.n_rows = head_->n_rows;
  if (!head_->has_f32) request.input.f32 = nullptr;
  if (!head_->has_q) request.input.q = nullptr, request.input.d = request.input.y = nullptr;
  return request;
}

void Mailbox::answer_request(uint32_t number, double seconds) {
  head_->answer_seconds = seconds;
  words().answered.store(number, std::memory_order_release);
}

void Mailbox::resume() {
  // What was open has been given up: nobody waits for it any more.
  words().answered.store(words().posted.load(std::memory_order_acquire), std::memory_order_relaxed);
  words().aborted.store(0, std::memory_order_release);
}

}  // namespace sluice::backend
