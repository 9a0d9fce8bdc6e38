// See miss_worker.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/miss_worker.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/patience.h"

namespace sluice::engine {
MissWorker::MissWorker(const model::Model& model, ThreadPool& threads, backend::Mailbox& mailbox,
                       MissWorkerOptions options)
    : model_(model),
      mailbox_(mailbox),
      options_(std::move(options)),
      experts_(threads, backend::cpu::best_kernels()),
      worker_([this] { work(); }),
      watchdog_([this] { watch(); }) {
  for (const model::Layer& layer : model.layers()) {
    experts_.reserve(layer.experts, mailbox.view().shape.max_rows, model.config().n_experts_used);
  }
}

MissWorker::~MissWorker() {
  {
    const std::lock_guard lock(mutex_);
    enter(stopping);
  }
  worker_.join();
  watchdog_.join();
}

void MissWorker::begin_step() {
  std::unique_lock lock(mutex_);
  if (!close_mailbox(lock, {})) {
    throw Error(Errc::device, cat("layer ", mailbox_.newest_layer().value,
                                  ": the CPU's workers still compute for an earlier step, whose "
                                  "time was over"));
  }
  enter(in_step);
}

void MissWorker::abort_step() {
  const std::lock_guard lock(mutex_);
  mailbox_.abort();
}

std::string MissWorker::end_step() {
  std::unique_lock lock(mutex_);
  enter(resting);
  close_mailbox(lock, options_.deadline);
  return std::exchange(fault_, {});
}

// A failed step may leave a request behind. The next step may post only when nobody will read it
// or is reading it. False where the worker has not let go of it within that time.
bool MissWorker::close_mailbox(std::unique_lock<std::mutex>& lock,
                               std::chrono::milliseconds patience) {
  if (!mailbox_.is_aborted()) return true;
  if (!changed_.wait_for(lock, patience, [&] { return !is_busy_; })) return false;
  mailbox_.resume();
  return true;
}

// Who is busy may read the mailbox; nobody posts into it until the request is answered, or given up
// and let go.
std::optional<backend::Mailbox::Request> MissWorker::take_request() {
  if (mailbox_.open_number() == 0) return {};
  {
    const std::lock_guard lock(mutex_);
    if (mailbox_.is_aborted() || !is_in_step()) return {};
    is_busy_ = true;
  }
  auto request = mailbox_.open_request();
  if (!request) let_go({});  // it was given up meanwhile
  return request;
}

void MissWorker::let_go(const std::string& fault) {
  {
    const std::lock_guard lock(mutex_);
    is_busy_ = false;
    if (!fault.empty()) {
      fault_ = fault;
      mailbox_.abort();
    }
  }
  changed_.notify_all();
}

void MissWorker::enter(State state) {
  state_ = state;
  state_.notify_all();
  changed_.notify_all();  // the watchdog looks at the state there too
}

bool MissWorker::wait_for_step() const {
  state_.wait(resting);
  return state_ != stopping;
}

void MissWorker::work() {
  prctl(PR_SET_NAME, "expert misses");  // as `top -H` shows it, and tests find it
  while (wait_for_step()) {
    Patience patience;
    while (is_in_step()) {
      const auto request = take_request();
      if (!request) {
        patience.wait();
        continue;
      }
      std::string fault;
      try {
        answer(*request);
      } catch (const std::exception& e) {
        fault = cat("layer ", request->layer.value, ": the CPU could not compute its experts (",
                    e.what(), ")");
      }
      let_go(fault);
      patience.renew();
    }
  }
}

void MissWorker::answer(const backend::Mailbox::Request& request) {
  if (options_.before_answer) options_.before_answer(request);
  backend::ExpertsView experts = model_.layers()[static_cast<size_t>(request.layer.value)].experts;
  experts.shared_gate = {};  // the device computes it
  const auto start = std::chrono::steady_clock::now();
  experts_.compute(experts, request.pairs, request.input, mailbox_.answer_rows());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  n_answered_ += std::ssize(request.pairs);
  mailbox_.answer_request(request.number, took.count());
}

void MissWorker::watch() {
  const auto tick = std::max(options_.deadline / 8, std::chrono::milliseconds(1));
  while (wait_for_step()) {
    uint64_t number = 0;
    auto since = options_.now();
    std::unique_lock lock(mutex_);
    while (is_in_step() && !changed_.wait_for(lock, tick, [&] { return !is_in_step(); })) {
      const uint64_t open = mailbox_.open_number();
      if (open == 0 || open != number) {
        number = open;
        since = options_.now();
      } else if (options_.now() - since >= options_.deadline && !mailbox_.is_aborted()) {
        fault_ = cat("layer ", mailbox_.newest_layer().value, ": the CPU's workers did not answer ",
                     "within ", options_.deadline.count(), " ms");
        mailbox_.abort();
      }
    }
  }
}

}  // namespace sluice::engine
