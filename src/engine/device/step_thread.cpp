// See step_thread.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/step_thread.h"

#include <utility>

namespace sluice::engine {

StepThread::StepThread(std::function<void()> work)
    : work_(std::move(work)), thread_([this] { run(); }) {}

StepThread::~StepThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    is_over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void StepThread::begin() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = false;
    in_step_ = true;
  }
  changed_.notify_all();
}

void StepThread::end() {
  std::unique_lock lock(mutex_);
  is_over_ = true;
  changed_.wait(lock, [&] { return !in_step_; });
}

void StepThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return in_step_ || stopping_; });
    if (stopping_) return;
    lock.unlock();
    work_();
    lock.lock();
    in_step_ = false;
    changed_.notify_all();
  }
}

}  // namespace sluice::engine
