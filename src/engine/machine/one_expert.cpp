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

backend::ExpertsView experts_of(const model::Model& model) {
  backend::ExpertsView experts = model.layers().back().experts;
  experts.shared_gate = {};
  return experts;
}

}  // namespace

OneExpert::OneExpert(const model::Model& model, backend::Device& device, ThreadPool& threads)
    : experts_(experts_of(model)),
      layer_(model.layers().back().id),
      layout_(experts_),
      mailbox_(device, {1, 1, model.config().d_model}),
      mapped_(device.allocate(MemoryKind::mapped, lay_out(nullptr))),
      own_([&](uint64_t n) { return device.allocate(MemoryKind::device, n); }, model, 1),
      slot_(device.allocate(MemoryKind::device, layout_.stride)),
      n_scratch_(2 * static_cast<uint64_t>(model.config().d_model) * sizeof(float)),
      scratch_(device.allocate(MemoryKind::device, n_scratch_)),
      stream_(device.make_stream("calibration")),
      ops_(device.make_ops(*stream_, mailbox_.view(), {scratch_.data(), n_scratch_})),
      worker_(model, threads, mailbox_) {
  std::fill_n(mapped_.data(), mapped_.n_bytes(), std::byte{0});
  lay_out(mapped_.data());
  *n_live_ = 1, *routing_.weights = 1.0f;
  clear(own_.view(1));
  copy_expert(experts_, 0, slot_.data(), *stream_);
  stream_->finish();
  record();
}

double OneExpert::on_device() { return replay(slot_.data()); }

double OneExpert::by_host() {
  begin_asking();
  const double seconds = replay(nullptr);
  end_asking();
  return seconds;
}

double OneExpert::ask() {
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
  table_ = carver.take<const std::byte*>(experts_.gate.n_mats);
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

void OneExpert::record() {
  const model::Activations rows = own_.view(1);
  stream_->begin_recording();
  ops_->find_experts(experts_,
                     {.layer = layer_,
                      .step = step_,
                      .n_live = n_live_,
                      .table = table_,
                      .staged = {},
                      .link_share = link_share_,
                      .log = log_},
                     rows.expert_input, routing_);
  ops_->compute_found(experts_, rows.expert_input);
  ops_->add_found(routing_, rows.x);
  recording_ = stream_->end_recording();
}

double OneExpert::replay(const std::byte* slot) {
  int32_t& expert = *routing_.experts;
  expert = (expert + 1) % static_cast<int32_t>(experts_.gate.n_mats);
  table_[expert] = slot;
  ++*step_;
  const double start = wall_seconds();
  stream_->replay(*recording_);
  stream_->finish();
  return wall_seconds() - start;
}

}  // namespace sluice::engine
