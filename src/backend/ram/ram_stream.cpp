// See ram_stream.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/ram/ram_stream.h"

#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "backend/ram/ram_address.h"
#include "base/check.h"
#include "base/error.h"
#include "base/patience.h"
#include "base/wall_clock.h"

namespace sluice::backend {
namespace {

thread_local double* this_threads_seconds = nullptr;

constexpr size_t kFirstQueue = 64;    // commands that it has room for at the start
constexpr size_t kWrittenBytes = 64;  // that one command keeps

// To the microsecond: a sleep is late by a little, even where the thread asked for precise ones.
// The rest is spent awake; who yielded would come back late on a busy machine.
void wait_until(double seconds) {
  constexpr double kSleepIsLate = 20e-6;
  for (double left; (left = seconds - wall_seconds()) > 0.0;) {
    if (left > kSleepIsLate) {
      std::this_thread::sleep_for(std::chrono::duration<double>(left - kSleepIsLate));
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

bool RamDevice::Shared::is_in(MemoryKind kind, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex);
  const auto next = blocks.upper_bound(bytes.data());
  if (next == blocks.begin()) return false;
  const auto& [begin, block] = *std::prev(next);
  return block.kind == kind && bytes.data() + bytes.size() <= begin + block.n_bytes;
}

void RamDevice::Shared::set(uint64_t* word, uint64_t value, double seconds) {
  const std::lock_guard lock(mutex);
  Word& w = words[word];
  w.before = std::exchange(w.value, value);
  w.seconds = seconds;
  std::atomic_ref(*word).store(value, std::memory_order_release);
}

double RamDevice::Shared::set_at(const uint64_t* word) {
  const std::lock_guard lock(mutex);
  return words[word].seconds;
}

uint64_t RamDevice::Shared::read(const uint64_t* word) {
  const double reader = now();
  std::unique_lock lock(mutex);
  Word& w = words[word];
  if (options.clock == Clock::wall) return w.value;
  word_changed.wait(lock, [&] { return w.n_set == w.n_asked; });
  return w.seconds <= reader ? w.value : w.before;
}

double RamDevice::Shared::now() {
  if (options.clock == Clock::wall) return wall_seconds();
  if (const double* const own = RamStream::own_seconds()) return *own;
  const std::lock_guard lock(mutex);
  return host_seconds;
}

double RamDevice::now() const { return shared_->now(); }

void RamDevice::tell(uint64_t* word, uint64_t value) { shared_->set(word, value, now()); }

bool RamDevice::await(const uint64_t* word, uint64_t value, const std::function<bool()>& gives_up) {
  thread_local double seconds_here = 0.0;  // of a thread of the host, with this device
  thread_local const Shared* device_here = nullptr;
  const std::atomic_ref told(*const_cast<uint64_t*>(word));
  for (Patience patience; told.load(std::memory_order_acquire) != value;) {
    if (gives_up()) return false;
    patience.wait();
  }
  if (shared_->options.clock == Clock::virtual_time) {
    if (std::exchange(device_here, shared_.get()) != shared_.get()) seconds_here = 0.0;
    seconds_here = std::max(seconds_here, shared_->set_at(word));
    this_threads_seconds = &seconds_here;
  }
  return true;
}

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

RamStream::RamStream(std::shared_ptr<RamDevice::Shared> device, std::string name)
    : device_(std::move(device)),
      name_(std::move(name)),
      queue_(kFirstQueue),
      thread_([this] { work(); }) {}

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
  if (recording_) {
    recording_->commands.push_back(std::move(command));
    return;
  }
  if (device_->options.on_submit) device_->options.on_submit(name_);
  if (device_->options.clock == Clock::virtual_time) command.not_before = device_->now();
  {
    const std::lock_guard lock(mutex_);
    if (n_queued_ == queue_.size()) {
      std::rotate(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(first_),
                  queue_.end());
      first_ = 0;
      queue_.resize(2 * queue_.size());
    }
    queue_[(first_ + n_queued_++) % queue_.size()] = std::move(command);
  }
  changed_.notify_all();
}

RamStream::Command RamStream::pop() {
  Command command = std::move(queue_[first_]);
  first_ = (first_ + 1) % queue_.size();
  --n_queued_;
  return command;
}

void RamStream::work() {
  prctl(PR_SET_TIMERSLACK, 1UL);  // nanoseconds by which its sleeps may last longer
  this_threads_seconds = &seconds_;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || n_queued_ > 0; });
    if (n_queued_ == 0) return;
    const Command command = pop();
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
  const bool is_out = device_->is_in(MemoryKind::device, {from, n_bytes}) &&
                      !device_->is_in(MemoryKind::device, {to, n_bytes});
  if (is_out) {
    const std::lock_guard lock(device_->mutex);
    device_->n_out += n_bytes;
  }
  // What lies in mapped memory is small and goes along with the work itself.
  if (device_->is_in(MemoryKind::mapped, {from, n_bytes}) ||
      device_->is_in(MemoryKind::mapped, {to, n_bytes})) {
    std::memcpy(host_address(to), host_address(from), n_bytes);
    return;
  }
  int64_t n_before = 0;
  {
    const std::lock_guard lock(device_->mutex);
    n_before = device_->n_copies++;
  }
  if (device_->options.before_copy) device_->options.before_copy(n_before);
  const bool is_wall = device_->options.clock == Clock::wall;
  const bool is_from_own = device_->is_in(MemoryKind::device, {from, n_bytes});
  if (is_from_own && device_->is_in(MemoryKind::device, {to, n_bytes})) {  // not over the link
    std::memcpy(host_address(to), host_address(from), n_bytes);
    seconds_ += 2.0 * static_cast<double>(n_bytes) / (device_->options.device_gbps * 1e9);
    return;
  }
  const double done_at = device_->book_link(is_wall ? wall_seconds() : seconds_, n_bytes, to);
  std::memcpy(host_address(to), host_address(from), n_bytes);
  if (is_wall) {
    wait_until(done_at);
  } else {
    seconds_ = done_at;
  }
}

void RamStream::begin_recording() {
  CHECK(!recording_);
  recording_ = std::make_unique<Recorded>();
}

std::unique_ptr<Recording> RamStream::end_recording() {
  CHECK(recording_);
  return std::move(recording_);
}

// One command: after a fault in its midst the rest is passed over with it.
void RamStream::replay(const Recording& recording) {
  const auto& recorded = static_cast<const Recorded&>(recording);
  push({[&recorded] {
    for (const Command& command : recorded.commands) command.call();
  }});
}

void RamStream::fill(std::byte* to, std::byte value, uint64_t n_bytes) {
  push({[=] { std::memset(host_address(to), std::to_integer<int>(value), n_bytes); }});
}

void RamStream::write(std::byte* to, std::span<const std::byte> value) {
  for (size_t at = 0; at < value.size(); at += kWrittenBytes) {
    const auto some = value.subspan(at, std::min(kWrittenBytes, value.size() - at));
    std::array<std::byte, kWrittenBytes> kept;
    std::ranges::copy(some, kept.begin());
    push({[place = host_address(to + at), kept, n = some.size()] {
      std::copy_n(kept.begin(), n, place);
    }});
  }
}

void RamStream::set(uint64_t* word, uint64_t value) {
  {
    const std::lock_guard lock(device_->mutex);
    ++device_->words[word].n_asked;
  }
  push({[this, word, value] {
          if (!has_failed()) device_->set(word, value, seconds_);
          {
            const std::lock_guard lock(device_->mutex);
            ++device_->words[word].n_set;
          }
          device_->word_changed.notify_all();
        },
        /*runs_after_fault=*/true});
}

void RamStream::call(std::function<void()> work) { push({std::move(work)}); }

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

void RamStream::await(const uint64_t* word, uint64_t value, const uint64_t* ended) {
  push({[this, word, value, ended] {
    const auto now = [](const uint64_t* w) {
      return std::atomic_ref(*const_cast<uint64_t*>(w)).load(std::memory_order_acquire);
    };
    for (Patience patience; now(word) != value; patience.wait()) {
      if (now(ended) != 0) return;
    }
    seconds_ = std::max(seconds_, device_->set_at(word));
  }});
}

bool RamStream::has_failed() const {
  const std::lock_guard lock(mutex_);
  return fault_ != nullptr;
}

void RamStream::finish() {
  if (device_->options.on_finish) device_->options.on_finish(name_);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return n_queued_ == 0 && !is_busy_; });
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
