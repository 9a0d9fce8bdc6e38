// See one_expert.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/one_expert.h"

#include <algorithm>

#include "base/carver.h"
#include "base/error.h"
#include "base/wall_clock.h"
#include "engine/device/host_experts.h"

namespace sluice::engine {
namespace {

using backend::MemoryKind;
using backend::WeightView;

// Layers whose experts are asked for by turns: with those of one alone some hosts' caches hold all
// of them (128 of 2.8 MB are 360 MB), and the host is faster than it is while it decodes.
constexpr size_t kLayersByTurns = 8;
constexpr uint64_t kPageBytes = 4096;

bool are_alike(const WeightView& a, const WeightView& b) {
  return a.type == b.type && a.n_rows == b.n_rows && a.n_cols == b.n_cols && a.n_mats == b.n_mats;
}

}  // namespace

// Some whose experts are like the last one's, from the first to the last: so one of them stands for
// all on the device. (To copy each would bring it into the host's caches.)
std::vector<OneExpert::Layer> OneExpert::layers_of(const model::Model& model) {
  const backend::ExpertsView& last = model.layers().back().experts;
  std::vector<Layer> all;
  for (const model::Layer& layer : model.layers()) {
    backend::ExpertsView e = layer.experts;
    if (!are_alike(e.gate, last.gate) || !are_alike(e.up, last.up) ||
        !are_alike(e.down, last.down)) {
      continue;
    }
    e.shared_gate = {};
    all.push_back({e, layer.id, backend::ExpertLayout(e)});
  }
  std::vector<Layer> some;
  const size_t n = std::min(all.size(), kLayersByTurns);
  for (size_t i = 0; i < n; ++i) some.push_back(std::move(all[i * all.size() / n]));
  return some;
}

OneExpert::OneExpert(const model::Model& model, backend::Device& device, ThreadPool& threads)
    : layers_(layers_of(model)),
      mailbox_(device, {1, 1, model.config().d_model}),
      mapped_(device.allocate(MemoryKind::mapped, lay_out(nullptr))),
      own_([&](uint64_t n) { return device.allocate(MemoryKind::device, n); }, model, 1),
      slot_(device.allocate(MemoryKind::device, layers_[0].layout.stride)),
      n_scratch_(2 * static_cast<uint64_t>(model.config().d_model) * sizeof(float)),
      scratch_(device.allocate(MemoryKind::device, n_scratch_)),
      stream_(device.make_stream("calibration")),
      ops_(device.make_ops(*stream_, mailbox_.view(), {scratch_.data(), n_scratch_})),
      worker_(model, threads, mailbox_) {
  std::fill_n(mapped_.data(), mapped_.n_bytes(), std::byte{0});
  lay_out(mapped_.data());
  *n_live_ = 1, *routing_.weights = 1.0f;
  clear(own_.view(1));
  copy_expert(layers_[0].experts, 0, slot_.data(), *stream_);
  stream_->finish();
  for (Layer& layer : layers_) layer.recording = record(layer);
}

void OneExpert::advance() {
  at_ = (at_ + 1) % layers_.size();
  if (at_ == 0) expert_ = (expert_ + 1) % static_cast<int32_t>(layers_[0].experts.gate.n_mats);
}

void OneExpert::touch_pages() const {
  const backend::ExpertMatrices matrices = layers_[at_].experts.expert(expert_);
  for (const WeightView* w : {&matrices.gate, &matrices.up, &matrices.down}) {
    const auto* const first = reinterpret_cast<const volatile char*>(w->data);
    for (uint64_t i = 0; i < w->matrix_bytes(); i += kPageBytes) static_cast<void>(first[i]);
  }
}

double OneExpert::on_device() { return replay(slot_.data()); }

double OneExpert::by_host() {
  begin_asking();
  const double seconds = replay(nullptr);
  end_asking();
  return seconds;
}

double OneExpert::ask() {
  advance();
  const double seconds = replay(nullptr);
  if (mailbox_.fault_in(*step_)) end_asking();
  return seconds;
}

void OneExpert::end_asking() {
  const std::string fault = worker_.end_step();
  const bool is_answered = fault.empty() && !mailbox_.fault_in(*step_);
  if (!is_answered) throw Error(Errc::device, cat("the handshake was not measured: ", fault));
}

uint64_t OneExpert::lay_out(std::byte* memory) {
  Carver carver(memory);
  table_ = carver.take<const std::byte*>(layers_[0].experts.gate.n_mats);
  log_ = {carver.take<backend::LayerLog>(1), carver.take<RoutedExpert>(1)};
  routing_ = {1, carver.take<int32_t>(1), carver.take<float>(1), nullptr};
  n_live_ = carver.take<int32_t>(1);
  step_ = carver.take<uint32_t>(1);
  link_share_ = carver.take<float>(1);
  return carver.n_bytes();
}

void OneExpert::clear(const model::Activations& rows) {
  const auto zero = [&](auto* values, int64_t n) {
    const auto n_bytes = static_cast<uint64_t>(n) * sizeof(*values);
    if (values) stream_->fill(reinterpret_cast<std::byte*>(values), std::byte{0}, n_bytes);
  };
  const backend::ExpertInputView& a = rows.expert_input;
  zero(a.f32, a.n_cols);
  zero(a.q, a.n_cols);
  zero(a.d, a.n_cols / 32);
  zero(a.y, a.n_cols / 32);
  zero(rows.x.data, rows.x.n_cols);
}

std::unique_ptr<backend::Recording> OneExpert::record(const Layer& layer) {
  const model::Activations rows = own_.view(1);
  stream_->begin_recording();
  ops_->find_experts(layer.experts,
                     {.layer = layer.id,
                      .step = step_,
                      .n_live = n_live_,
                      .table = table_,
                      .staged = {},
                      .link_share = link_share_,
                      .log = log_},
                     rows.expert_input, routing_);
  ops_->compute_found(layer.experts, rows.expert_input);
  ops_->add_found(routing_, rows.x);
  return stream_->end_recording();
}

double OneExpert::replay(const std::byte* slot) {
  *routing_.experts = expert_;
  table_[expert_] = slot;
  ++*step_;
  const double start = wall_seconds();
  stream_->replay(*layers_[at_].recording);
  stream_->finish();
  return wall_seconds() - start;
}

}  // namespace sluice::engine
