// The public interface of engine.h: a queue, and a thread that takes the steps of a batch.
// SPDX-License-Identifier: Apache-2.0
#include "sluice/engine.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/free_memory.h"
#include "engine/model_driver.h"
#include "engine/serving/batch.h"
#include "engine/serving/expert_heat.h"
#include "engine/serving/kv_share.h"
#include "model_file/shape.h"

namespace sluice {
namespace {

using engine::LiveRequest;

// Who looks at an engine does so once a second or less.
constexpr std::chrono::milliseconds kSnapshotInterval{100};

}  // namespace

struct SLUICE_HIDDEN Engine::Impl {
  Impl(std::shared_ptr<const Model::Impl> m, const EngineOptions& o);
  ~Impl();

  std::unique_ptr<engine::StepDriver> make_driver();
  uint64_t submit(Request request);
  void require_valid(const Request& request) const;
  void run();
  void publish(bool is_idle);
  void take_snapshot();

  std::shared_ptr<const Model::Impl> model;  // shared with the Model: the longer-lived keeps it
  EngineOptions options;
  int n_ctx;
  engine::KvShare kv;
  PlacementInfo planned;  // before the driver, which fills it in
  std::unique_ptr<engine::StepDriver> driver;
  // Of the engine's thread alone.
  engine::Batch batch;
  engine::ExpertHeat heat;
  int64_t n_steps_seen = 0;
  LiveRequest::Clock::time_point next_snapshot{};

  mutable std::mutex mutex;  // of all that follows
  std::condition_variable has_work, is_empty;
  std::vector<engine::Batch::Live> inbox;
  std::map<uint64_t, engine::Batch::Live> live;
  uint64_t last_id = 0;
  int64_t n_refused = 0;
  bool is_draining = false, is_ending = false;
  EngineStats stats;
  ExpertMap map;
  PlacementInfo placement;

  std::thread thread;  // the last: it begins when all else is there
};

Engine::Impl::Impl(std::shared_ptr<const Model::Impl> m, const EngineOptions& o)
    : model(std::move(m)),
      options(o),
      n_ctx(engine::wished_context(*model, options.session)),
      kv(engine::share_kv(model_file::read_shape(model->file), options, n_ctx,
                          free_memory().bytes)),
      driver(make_driver()),
      batch(*driver, {.n_sequences = options.n_sequences,
                      .n_kept = kv.n_kept,
                      .n_ctx = n_ctx,
                      .origin = model->file.metadata().origin(),
                      .model = engine::make_stamp(model->file, model->info.n_vocab)}),
      heat(model->info.n_layers, model->info.n_experts) {
  stats = batch.stats();
  take_snapshot();
  thread = std::thread([this] { run(); });
}

Engine::Impl::~Impl() {
  {
    const std::lock_guard lock(mutex);
    is_ending = true;
  }
  has_work.notify_one();
  thread.join();
}

// Where a device has no room for so many pages, fewer will do, down to those of one context.
std::unique_ptr<engine::StepDriver> Engine::Impl::make_driver() {
  for (;;) {
    try {
      return engine::make_driver({.model = *model,
                                  .options = options.session,
                                  .texts = {.n_sequences = options.n_sequences,
                                            .n_kept = kv.n_kept,
                                            .n_kv_tokens = kv.n_tokens,
                                            .has_map = true}},
                                 planned);
    } catch (const Error& e) {
      const bool is_wish = options.kv_bytes > 0;
      if (e.code() != Errc::out_of_memory || is_wish || !kv.halve(n_ctx)) throw;
    }
  }
}

void Engine::Impl::require_valid(const Request& request) const {
  if (!request.restore_from.empty()) {
    if (request.prompt.empty() && request.save_to.empty()) return;
    throw Error(Errc::bad_request,
                "a text is restored; expected no prompt beside it, and no file to write");
  }
  if (request.prompt.empty()) {
    throw Error(Errc::bad_request, "the prompt is empty; give at least one token to continue from");
  }
  if (request.prompt.size() > static_cast<size_t>(n_ctx)) {
    throw Error(Errc::bad_request,
                cat("the prompt has ", request.prompt.size(), " tokens and the context holds ",
                    n_ctx, "; ask for a larger context (-c) or give fewer tokens"));
  }
  if (request.n_tokens < -1) {
    throw Error(Errc::bad_request, cat(request.n_tokens,
                                       " new tokens; expected 0 or more, or -1 "
                                       "for as many as the context holds"));
  }
  model->require_tokens(request.prompt);
}

uint64_t Engine::Impl::submit(Request request) {
  const std::lock_guard lock(mutex);
  try {
    if (is_draining) {
      throw Error(Errc::shutting_down, "the engine is shutting down and takes no more requests");
    }
    require_valid(request);
    const auto most = static_cast<size_t>(options.n_sequences + options.n_queued);
    if (live.size() >= most) {
      throw Error(Errc::busy, cat(live.size(), " requests run or wait, and there is room for ",
                                  most, "; try again later"));
    }
  } catch (const Error&) {
    ++n_refused;
    throw;
  }
  const uint64_t id = ++last_id;
  auto request_live = std::make_shared<LiveRequest>(id, std::move(request));
  live.emplace(id, request_live);
  inbox.push_back(std::move(request_live));
  has_work.notify_one();
  return id;
}

void Engine::Impl::run() {
  for (bool goes_on = true; goes_on;) {
    std::vector<engine::Batch::Live> arrived;
    {
      std::unique_lock lock(mutex);
      has_work.wait(lock, [&] { return is_ending || !inbox.empty() || !batch.is_idle(); });
      arrived.swap(inbox);
      goes_on = !is_ending;
      if (is_ending) {
        is_draining = true;
        for (const auto& entry : live) entry.second->cancel();
      }
    }
    for (auto& request : arrived) batch.add(std::move(request));
    batch.step();
    publish(batch.is_idle());
  }
}

// What others may see of the step: sums at once, and the map now and then.
void Engine::Impl::publish(bool is_idle) {
  const bool is_new_step = batch.stats().n_steps != n_steps_seen;
  n_steps_seen = batch.stats().n_steps;
  if (is_new_step) {
    heat.add(driver->log(), batch.stats().last_decode_rows + batch.stats().last_prompt_rows);
  }
  const auto now = LiveRequest::Clock::now();
  const bool is_due = is_idle || now >= next_snapshot;
  if (is_due) {
    take_snapshot();
    next_snapshot = now + kSnapshotInterval;
  }
  std::vector<engine::Batch::Live>
      ended;  // destroyed without the lock: callbacks may hold anything
  {
    const std::lock_guard lock(mutex);
    for (const uint64_t id : batch.take_ended()) {
      const auto found = live.find(id);
      ended.push_back(std::move(found->second));
      live.erase(found);
    }
    ExpertStats experts = std::move(stats.experts);
    stats = batch.stats();
    stats.experts = std::move(experts);
    if (live.empty()) is_empty.notify_all();
  }
}

void Engine::Impl::take_snapshot() {
  ExpertMap now{.n_layers = model->info.n_layers,
                .n_experts = model->info.n_experts,
                .where = std::vector<ExpertMap::Where>(heat.values().size()),
                .heat = heat.values()};
  driver->find_experts(now.where);
  ExpertStats experts = driver->stats();
  PlacementInfo place =
      options.session.device.kind == DeviceKind::cpu ? planned : driver->placement();
  const std::lock_guard lock(mutex);
  map = std::move(now);
  stats.experts = std::move(experts);
  placement = std::move(place);
}

Engine::Engine(const Model& model, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(model.impl_, options)) {}

Engine::~Engine() = default;

uint64_t Engine::submit(Request request) { return impl_->submit(std::move(request)); }

void Engine::cancel(uint64_t id) {
  const std::lock_guard lock(impl_->mutex);
  const auto found = impl_->live.find(id);
  if (found != impl_->live.end()) found->second->cancel();
}

void Engine::drain() {
  std::unique_lock lock(impl_->mutex);
  impl_->is_draining = true;
  impl_->is_empty.wait(lock, [&] { return impl_->live.empty(); });
}

int Engine::n_ctx() const { return impl_->n_ctx; }

EngineStats Engine::stats() const {
  const std::lock_guard lock(impl_->mutex);
  EngineStats stats = impl_->stats;
  stats.n_submitted = static_cast<int64_t>(impl_->last_id);
  stats.n_refused = impl_->n_refused;
  stats.n_queued = static_cast<int>(impl_->live.size()) - stats.n_running;
  return stats;
}

PlacementInfo Engine::placement() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->placement;
}

ExpertMap Engine::expert_map() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->map;
}

}  // namespace sluice
