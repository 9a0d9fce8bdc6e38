// See card.h.
// SPDX-License-Identifier: Apache-2.0
#include "emulated_gpu/card.h"

#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace sluice::emulated_gpu {
namespace {

constexpr auto kTogether = std::chrono::microseconds(200);

std::atomic<bool> fault_seen{false};
std::mutex fault_mutex;
std::string fault_text;

uint64_t number_of(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

}  // namespace

const CardSize& card_size() {
  static const CardSize size = [] {
    // Registers of blocks come and go: the system shall not make them anew each time.
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    CardSize s;
    s.n_sms = static_cast<int>(number_of("EMULATED_SMS", static_cast<uint64_t>(s.n_sms)));
    s.capability = static_cast<int>(number_of("EMULATED_CAPABILITY", 90));
    s.vram_bytes = number_of("EMULATED_VRAM_MIB", s.vram_bytes >> 20) << 20;
    return s;
  }();
  return size;
}

void keep_card_fault(const std::string& what) {
  const std::lock_guard lock(fault_mutex);
  if (fault_seen.exchange(true)) return;
  fault_text = what;
  std::fprintf(stderr, "emulated GPU: %s\n", what.c_str());
}

std::string take_card_fault() {
  const std::lock_guard lock(fault_mutex);
  fault_seen = false;
  return std::exchange(fault_text, {});
}

bool has_card_fault() { return fault_seen; }

EmulatedStream::EmulatedStream() : thread_([this] { serve(); }) {}

EmulatedStream::~EmulatedStream() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void EmulatedStream::give(std::function<void(EmulatedStream&)> op) {
  if (recording) {
    recording->push_back(std::move(op));
  } else {
    op(*this);
  }
}

void EmulatedStream::add(Work work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
    ++n_given_;
  }
  changed_.notify_all();
}

void EmulatedStream::finish() {
  std::unique_lock lock(mutex_);
  const uint64_t all = n_given_;
  ++n_waiting_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return n_done_ >= all; });
  --n_waiting_;
}

bool EmulatedStream::is_idle() {
  const std::lock_guard lock(mutex_);
  return n_done_ == n_given_;
}

// Whether the next in line may begin: with nothing before it, or a kernel that may overlap with the
// last one, all of whose blocks have let it.
bool EmulatedStream::take_next(bool may_wait) {
  std::unique_lock lock(mutex_);
  if (work_) return false;
  if (may_wait) {
    changed_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    // What comes right behind belongs to it, so that kernels that may overlap do, however slowly
    // they are launched.
    for (uint64_t seen = 0; seen != n_given_ && n_waiting_ == 0 && !ends_;) {
      seen = n_given_;
      changed_.wait_for(lock, kTogether, [&] { return n_waiting_ > 0 || ends_; });
    }
  }
  if (waiting_.empty()) return false;
  Work& next = waiting_.front();
  if (!grids_.empty()) {
    if (!next.launch || !next.launch->overlaps || !grids_.back()->lets_next_begin()) return false;
  }
  Work taken = std::move(next);
  waiting_.pop_front();
  lock.unlock();
  if (taken.launch) {
    const bool is_first = grids_.empty();
    grids_.push_back(std::make_unique<Grid>(std::move(*taken.launch), card_size().n_sms));
    grids_.back()->previous_is_done = is_first;
  } else {
    work_ = std::move(taken);
  }
  return true;
}

// Whether anything was done.
bool EmulatedStream::turn() {
  bool has_done = take_next(false);
  int n_done = 0;
  try {
    if (work_ && grids_.empty()) {
      if (!work_->is_ready || work_->is_ready() || has_card_fault()) {
        if (!has_card_fault() || !work_->is_ready) work_->run();
        work_.reset();
        ++n_done;
      }
    }
    for (size_t i = grids_.size(); i-- > 0;) {
      if (grids_[i]->run()) {
        has_done = true;
        break;  // and from the newest on again
      }
    }
    while (!grids_.empty() && (grids_.front()->is_done() || has_card_fault())) {
      grids_.pop_front();
      if (!grids_.empty()) grids_.front()->previous_is_done = true;
      ++n_done;
    }
  } catch (const std::exception& e) {
    keep_card_fault(e.what());
    n_done += static_cast<int>(grids_.size());
    grids_.clear();
    if (work_) ++n_done;
    work_.reset();
  }
  if (n_done > 0) {
    const std::lock_guard lock(mutex_);
    n_done_ += static_cast<uint64_t>(n_done);
    changed_.notify_all();
  }
  return has_done || n_done > 0;
}

void EmulatedStream::serve() {
  while (true) {
    if (grids_.empty() && !work_) {
      take_next(true);
      if (grids_.empty() && !work_) return;  // ends_
    }
    if (!turn()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace sluice::emulated_gpu
