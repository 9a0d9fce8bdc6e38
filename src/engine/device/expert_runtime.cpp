// See expert_runtime.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/expert_runtime.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/error.h"
#include "base/patience.h"
#include "policy/plan/pricing_speed.h"

namespace sluice::engine {

KvOptions kv_options(const policy::Workload& work, int first_layer, int n_layers) {
  const auto type = [](policy::KvType t) {
    constexpr quant::Type kTypes[] = {quant::Type::f32, quant::Type::f16, quant::Type::bf16,
                                      quant::Type::q8_0, quant::Type::q4_0};
    return kTypes[static_cast<size_t>(t)];
  };
  return {.k_type = type(work.k_type),
          .v_type = type(work.v_type),
          .n_sequences = work.n_held(),
          .n_ctx = work.n_ctx,
          .page_tokens = policy::kKvPageTokens,
          .first_layer = first_layer,
          .n_layers = n_layers,
          .n_pages = work.n_kv_tokens / policy::kKvPageTokens};
}

double host_seconds(const policy::ModelShape& shape, const policy::Workload& work, int n_layers,
                    const StepSize& step, double cpu_gbps) {
  policy::Workload past = work;
  past.n_ctx = step.n_past;
  past.n_sequences = 1;
  past.n_kv_tokens = 0;
  double seconds = 0.0;
  for (int i = 0; i < n_layers; ++i) {
    const policy::LayerShape& layer = shape.layers[static_cast<size_t>(i)];
    const int n_used = std::min(step.n_rows * shape.n_experts_used, layer.n_experts);
    const uint64_t n_bytes = layer.trunk_bytes + policy::kv_bytes(layer, past) +
                             2 * layer.state_bytes +
                             static_cast<uint64_t>(n_used) * layer.expert_bytes;
    seconds += policy::kCpuLayerSeconds + static_cast<double>(n_bytes) / (cpu_gbps * 1e9);
  }
  return seconds;
}

uint64_t ExpertRuntime::kv_bytes() const {
  uint64_t sum = 0;
  for (const KvCache* cache : caches_) sum += cache->n_bytes();
  return sum;
}

void ExpertRuntime::find_experts(std::span<ExpertMap::Where> where) const {
  const int n_experts = model_.config().n_experts;
  size_t i = 0;
  for (int layer = 0; layer < model_.config().n_layers; ++layer) {
    for (int expert = 0; expert < n_experts; ++expert, ++i) {
      const policy::ExpertKey key{LayerId(layer), ExpertId(expert)};
      where[i] = slots_.published(key)                    ? ExpertMap::Where::vram
                 : cache_.resident(key.layer, key.expert) ? ExpertMap::Where::arriving
                                                          : ExpertMap::Where::ram;
    }
  }
}

TextMemory ExpertRuntime::text_memory() {
  const auto copy = [this](std::byte* to, const std::byte* from, uint64_t n_bytes) {
    main_->copy(to, from, n_bytes);
  };
  return {.rows = rows_,
          .states = *states_,
          .caches = caches_,
          .n_layers = model_.config().n_layers,
          .replay = [this](const auto& updates) { replay(updates); },
          .copies = {.n_host_layers = n_host_layers(),
                     .device_copy = copy,
                     .device_finish = [this] { main_->finish(); }}};
}

// By the host for its layers, and by the device before its next step.
void ExpertRuntime::replay(const backend::StateReplay& updates) {
  for (int i = 0; i < model_.config().n_layers; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool is_hosts = i < n_host_layers();
    const model::Layer& layer = (is_hosts ? model_ : trunk_.model()).layers()[at];
    if (!layer.delta_net) continue;
    backend::Ops& ops = is_hosts ? *host_part_.ops : static_cast<backend::Ops&>(*ops_);
    ops.delta_replay(layer.delta_net, is_hosts ? states_->layers()[at] : state_layers_[at],
                     updates);
  }
  went_back_.n_replayed += updates.end - updates.begin;
}

void ExpertRuntime::truncate(SequenceId sequence, int n_tokens) {
  const std::vector<TokenId> again = text_memory().truncate(sequence, n_tokens);
  went_back_.n_computed += compute_again(*this, sequence, again);
}

void ExpertRuntime::fork(SequenceId from, SequenceId to, int n_tokens) {
  const std::vector<TokenId> again = text_memory().fork(from, to, n_tokens);
  went_back_.n_computed += compute_again(*this, to, again);
}

void ExpertRuntime::step(std::span<const StepRow> rows, policy::Phase phase,
                         const StepListener& listener) {
  CHECK(!rows.empty() && std::ssize(rows) <= max_rows());
  try {
    rows_.append(rows, caches_);
    states_->begin_step(rows_.writes());
    text_memory().make_page_copies();
    log_.begin_step();
    fill_forced();
    run_step(listener);
    end_step(phase);
  } catch (...) {
    states_->drop_step();
    rows_.take_back(caches_);
    throw;
  }
  states_->end_step(phase == policy::Phase::prefill);
}

// Those of narrow steps go with the step's block: kernels that read them across the link took 5.6
// us more for each layer.
void ExpertRuntime::fill_forced() {
  const int64_t n_rows = rows_.n_rows();
  forced_rows_ = forces_in_block() ? forced_.fill(n_rows, width(), block_.forced_input(width()))
                                   : forced_.fill(n_rows, width());
}

// Where it throws, no work of the step is left in the main stream.
void ExpertRuntime::run_step(const StepListener& listener) {
  run_host_layers(listener.on_layer);
  // Without a log every expert is with the device: nobody wakes those who would compute others.
  if (options_.logs) worker_.begin_step();
  staging_->begin_step(log_.step(), rows_.n_rows(), LayerId(n_host_layers()));
  try {
    run_device_layers(listener);
  } catch (...) {
    worker_.abort_step();
    try {
      main_->finish();
    } catch (...) {
      // finish() reports the fault again for the work queued behind it; it was already thrown
      // above.
    }
    staging_->end_step();
    waves_->end_step();
    const std::string fault = worker_.end_step();
    mend_copies();
    copies_.doubt_landed();
    if (fault.empty()) throw;
    throw Error(Errc::device, fault);
  }
  staging_->end_step();
  if (options_.logs) worker_.end_step();
}

void ExpertRuntime::end_step(policy::Phase phase) {
  mend_copies();
  copies_.boundary(
      learn(phase),
      {.staged = [this](policy::ExpertKey key) { return staging_->find(key); },
       .landed = [this](policy::ExpertKey key) { return landing_->find(log_.step(), key); }},
      options_.hidden_bytes);
}

// Whether the copy stream had failed; then what was under way is copied again.
bool ExpertRuntime::mend_copies() {
  if (!copies_.mend()) return false;
  staging_->forget();
  return true;
}

void ExpertRuntime::run_host_layers(const OnLayer& on_layer) {
  const HostPart& h = host_part_;
  model::Step step{*h.ops, *h.experts, rows_.view(h.kv ? *h.kv : *kv_), {}, {}};
  step.rows.n_rows = width();  // as forced experts are laid out
  step.rows.forced = forced_rows_;
  if (h.kv) step.kv = h.kv->layers();
  step.state = states_->layers();
  if (h.activations) step.s = h.activations->view(rows_.n_rows());
  step.s.x = block_.input(width());
  step.s.x.n_rows = rows_.n_rows();
  model_.embed(step);
  forward_layers(model_, step, 0, n_host_layers(), on_layer);
  if (n_host_layers() > 0) spend_host_time();
}

// On the virtual clock: as the described CPU would have needed, and the row to cross over.
void ExpertRuntime::spend_host_time() {
  device_.host_worked(options_.handshake_us * 1e-6 + host_seconds(shape_, options_.work,
                                                                  n_host_layers(), rows_.size(),
                                                                  options_.cpu_gbps));
}

// Whether the step under way is one submission, which is replayed.
bool ExpertRuntime::is_whole() const {
  return rows_.n_rows() <= kNarrowRows && options_.cut == StepCut::whole;
}

// Of the step under way, with its padding: there are recordings of few widths only.
int64_t ExpertRuntime::width() const {
  const int64_t n_rows = rows_.n_rows();
  if (!is_whole()) return n_rows;
  return std::min<int64_t>(std::bit_ceil(static_cast<uint64_t>(n_rows)), max_rows());
}

// Enqueues or records its head.
model::Step ExpertRuntime::begin_device_step(model::ExpertRunner& experts) {
  block_.copy(*main_, width(), forces_in_block());
  if (experts_move()) ops_->change_table(block_.changes(slots_.table()));
  model::Step step{*ops_,
                   experts,
                   block_.view(width(), kv_->table_stride()),
                   kv_layers_,
                   activations_->view(width()),
                   state_layers_};
  step.rows.forced = forces_in_block() ? block_.forced(width()) : forced_rows_;
  if (!is_whole()) step.rows.n_past = rows_.size().n_past;  // what is recorded serves all lengths
  step.s.x = block_.x(width());
  return step;
}

void ExpertRuntime::forward(model::Step& step, const OnLayer& on_layer) {
  ++n_forwards_;
  forward_layers(trunk_.model(), step, n_host_layers(), model_.config().n_layers, on_layer);
}

void ExpertRuntime::run_device_layers(const StepListener& listener) {
  if (rows_.n_rows() > kNarrowRows && slots_.has_copies()) {
    slots_.write_changes(*main_);  // before a prompt's experts come to where they are copied from
    main_->finish();
  }
  slots_.write_changes(*main_, experts_move() ? kTableChanges : 0);
  const size_t n_changes = slots_.changes().size();
  block_.write(rows_, *kv_,
               {log_.step(), link_share_, slots_.changes(), states_->from(), states_->to()},
               width());
  is_whole() ? run_whole(listener) : run_by_host(listener);
  slots_.forget_changes(n_changes);
}

void ExpertRuntime::run_whole(const StepListener& listener) {
  device_.host_worked(options_.step_seconds);
  main_->replay(recording());
  copy_logits(width());
  finish_work();
  const int n_layers = model_.config().n_layers;
  if (listener.on_layer) listener.on_layer(n_layers, n_layers);
  give_logits(rows_.logit_rows(), listener);
}

void ExpertRuntime::finish_work() {
  main_->finish();
  if (const auto layer = mailbox_.fault_in(log_.step())) {
    throw Error(Errc::device, cat("layer ", layer->value,
                                  ": the wait for the CPU's experts was ended; they did not come "
                                  "in time"));
  }
}

// What was recorded before something went wrong is dropped, and the stream is as before.
std::unique_ptr<backend::Recording> ExpertRuntime::record_step() {
  main_->begin_recording();
  try {
    model::Step step = begin_device_step(*whole_);
    forward(step, {});
    trunk_.model().logits(step);
    trunk_.model().pick(step, picks());
  } catch (...) {
    try {
      main_->end_recording();
    } catch (...) {
      // What is thrown says it already.
    }
    throw;
  }
  return main_->end_recording();
}

// The model's forward runs once for each width.
const backend::Recording& ExpertRuntime::recording() {
  std::unique_ptr<backend::Recording>& recording = recordings_[width()];
  if (!recording) recording = record_step();
  return *recording;
}

// Segmented steps, and wide ones: of these all layers are enqueued before the first is done, but
// for those whose experts the CPU computes.
void ExpertRuntime::run_by_host(const StepListener& listener) {
  const bool is_narrow = rows_.n_rows() <= kNarrowRows;
  if (!is_narrow) {
    waves_->begin_step(log_.step(), LayerId(n_host_layers()), [this](LayerId layer, int n_missing) {
      return prefers_link(layer, n_missing);
    });
  }
  model::Step step =
      begin_device_step(is_narrow ? static_cast<model::ExpertRunner&>(*segmented_) : *streamed_);
  forward(step, is_narrow ? listener.on_layer : OnLayer{});
  if (!is_narrow) tell_layers(listener.on_layer);
  finish_work();
  if (!is_narrow) end_waves();
  const std::span<const int32_t> wanted = rows_.logit_rows();
  for (size_t begin = 0; begin < wanted.size(); begin += kMaxLogitRows) {
    const auto some = wanted.subspan(begin, std::min<size_t>(kMaxLogitRows, wanted.size() - begin));
    step.s.logits.n_rows = std::ssize(some);
    trunk_.model().logits(step, static_cast<int64_t>(begin));
    trunk_.model().pick(step, picks(), static_cast<int64_t>(begin));
    copy_logits(std::ssize(some));
    main_->finish();
    give_logits(some, listener);
  }
}

// As the device gets to them.
void ExpertRuntime::tell_layers(const OnLayer& on_layer) const {
  if (!on_layer) return;
  const int n_layers = model_.config().n_layers;
  for (int i = n_host_layers(); i < n_layers; ++i) {
    const bool comes = waves_->has(LayerId(i)) && waves_->tells(LayerId(i));
    for (Patience patience; comes && !waves_->is_routed(LayerId(i)); patience.wait()) {
      if (main_->has_failed()) return;
    }
    on_layer(i + 1, n_layers);
  }
}

// What was computed from experts that did not come is worth nothing.
void ExpertRuntime::end_waves() {
  waves_->end_step();
  if (mend_copies()) throw Error(Errc::device, copies_.last_fault());
  if (!waves_->fault().empty()) throw Error(Errc::device, waves_->fault());
}

// To where the host can read them, if anybody wants all of a row's: they are far more than the rest
// of what a step gives.
void ExpertRuntime::copy_logits(int64_t n_rows) {
  if (!rows_.any_wants_all()) return;
  const backend::RowsView logits = activations_->view(1).logits;
  main_->copy(
      logits_out_.data(), reinterpret_cast<const std::byte*>(logits.data),
      static_cast<uint64_t>(std::min(n_rows, logits.n_rows) * logits.n_cols) * sizeof(float));
}

void ExpertRuntime::give_logits(std::span<const int32_t> rows, const StepListener& listener) const {
  const backend::ConstRowsView logits(logits_out_.as<float>(), std::ssize(rows),
                                      model_.config().n_vocab);
  tell_rows(rows_, rows, logits, picks(), listener);
}

}  // namespace sluice::engine
