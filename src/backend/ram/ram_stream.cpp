// See ram_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/ram/ram_stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/error.h"
#include "base/wall_clock.h"

namespace sluice::backend {
namespace {

thread_local double* this_threads_seconds = nullptr;

// To the microsecond, which a sleep is not.
void wait_until(double seconds) {
  constexpr double kSleepIsLate = 200e-6;
  for (double left; (left = seconds - wall_seconds()) > 0.0;) {
    if (left > kSleepIsLate) {
      std::this_thread::sleep_for(std::chrono::duration<double>(left - kSleepIsLate));
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace

double RamDevice::Shared::book_link(double now, uint64_t n_bytes, const std::byte* to) {
  const std::lock_guard lock(mutex);
  const double start = std::max(now, link_free_at);
  link_free_at =
      start + options.delay_us * 1e-6 + static_cast<double>(n_bytes) / (options.link_gbps * 1e9);
  if (options.on_link_use) options.on_link_use({to, n_bytes, now, start, link_free_at});
  return link_free_at;
}

bool RamDevice::Shared::owns(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex);
  const auto next = own_blocks.upper_bound(bytes.data());
  if (next == own_blocks.begin()) return false;
  const auto& [begin, n_bytes] = *std::prev(next);
  return bytes.data() + bytes.size() <= begin + n_bytes;
}

double RamDevice::Shared::now() {
  if (options.clock == Clock::wall) return wall_seconds();
  if (const double* const own = RamStream::own_seconds()) return *own;
  const std::lock_guard lock(mutex);
  return host_seconds;
}

double RamDevice::now() const { return shared_->now(); }

double RamDevice::cross_link(uint64_t n_bytes) {
  return shared_->book_link(now(), n_bytes, nullptr);
}

void RamDevice::stand_until(double seconds) {
  if (shared_->options.clock == Clock::wall) {
    wait_until(seconds);
  } else if (double* const own = RamStream::own_seconds()) {
    *own = std::max(*own, seconds);
  }
}

void RamDevice::spend(double seconds) {
  if (double* const own = RamStream::own_seconds()) *own += seconds;
}

void RamEvent::State::wait_for(uint32_t number) const {
  for (uint32_t done; (done = n_done) < number;) n_done.wait(done);
}

bool RamEvent::is_done() const {
  if (device_->options.clock == Clock::wall) return state_->n_done == n_recorded_;
  state_->wait_for(n_recorded_);
  return state_->seconds <= device_->now();
}

uint64_t RamFlag::value() const {
  std::unique_lock lock(state_->mutex);
  if (device_->options.clock == Clock::wall) return state_->value;
  state_->changed.wait(lock, [&] { return state_->n_set == n_asked_; });
  return state_->seconds <= device_->now() ? state_->value : state_->before;
}

RamStream::RamStream(std::shared_ptr<RamDevice::Shared> device, std::string name)
    : device_(std::move(device)), name_(std::move(name)), thread_([this] { work(); }) {}

RamStream::~RamStream() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

double* RamStream::own_seconds() { return this_threads_seconds; }

void RamStream::push(Command command) {
  if (const double* const own = own_seconds()) command.not_before = *own;
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(command));
  }
  changed_.notify_all();
}

void RamStream::work() {
  this_threads_seconds = &seconds_;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Command command = std::move(queue_.front());
    queue_.pop_front();
    if (fault_ && !command.runs_after_fault) {
      changed_.notify_all();  // who waits for the last one need not know that it was passed over
      continue;
    }
    is_busy_ = true;
    lock.unlock();
    std::exception_ptr fault;
    seconds_ = std::max(seconds_, command.not_before);
    try {
      command.call();
    } catch (...) {
      fault = std::current_exception();
    }
    lock.lock();
    is_busy_ = false;
    if (fault && !fault_) fault_ = fault;
    changed_.notify_all();
  }
}

void RamStream::copy(std::byte* to, const std::byte* from, uint64_t n_bytes) {
  push({[=, this] { copy_now(to, from, n_bytes); }});
}

void RamStream::copy_now(std::byte* to, const std::byte* from, uint64_t n_bytes) {
  int64_t n_before = 0;
  {
    const std::lock_guard lock(device_->mutex);
    n_before = device_->n_copies++;
  }
  if (device_->options.before_copy) device_->options.before_copy(n_before);
  const bool is_wall = device_->options.clock == Clock::wall;
  if (device_->owns({to, n_bytes}) && device_->owns({from, n_bytes})) {  // not over the link
    std::memcpy(to, from, n_bytes);
    seconds_ += 2.0 * static_cast<double>(n_bytes) / (device_->options.device_gbps * 1e9);
    return;
  }
  const double done_at = device_->book_link(is_wall ? wall_seconds() : seconds_, n_bytes, to);
  std::memcpy(to, from, n_bytes);
  if (is_wall) {
    wait_until(done_at);
  } else {
    seconds_ = done_at;
  }
}

void RamStream::run(std::function<void()> work) { push({std::move(work)}); }

void RamStream::set(Flag& flag, uint64_t value) {
  auto& f = static_cast<RamFlag&>(flag);
  ++f.n_asked_;
  push({[this, state = f.state_, value] {
          {
            const std::lock_guard lock(state->mutex);
            ++state->n_set;
            if (!has_failed()) {
              state->before = std::exchange(state->value, value);
              state->seconds = seconds_;
            }
          }
          state->changed.notify_all();
        },
        /*runs_after_fault=*/true});
}

void RamStream::record(Event& event) {
  auto& e = static_cast<RamEvent&>(event);
  push({[this, state = e.state_, number = ++e.n_recorded_] {
          state->seconds = seconds_;
          state->n_done = number;
          state->n_done.notify_all();
        },
        /*runs_after_fault=*/true});
}

void RamStream::wait(const Event& event) {
  const auto& e = static_cast<const RamEvent&>(event);
  push({[this, state = e.state_, number = e.n_recorded_] {
          state->wait_for(number);
          seconds_ = std::max(seconds_, state->seconds.load());
        },
        /*runs_after_fault=*/true});
}

bool RamStream::has_failed() const {
  const std::lock_guard lock(mutex_);
  return fault_ != nullptr;
}

void RamStream::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !is_busy_; });
  {
    const std::lock_guard host_lock(device_->mutex);
    device_->host_seconds = std::max(device_->host_seconds, seconds_);
  }
  if (const std::exception_ptr fault = std::exchange(fault_, nullptr)) {
    try {
      std::rethrow_exception(fault);
    } catch (const Error& e) {
      throw Error(e.code(), cat("stream '", name_, "': ", e.what()));
    }
  }
}

}  // namespace sluice::backend
