// See handshake.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/handshake.h"

#include <algorithm>
#include <vector>

#include "backend/device_ops.h"
#include "base/carver.h"
#include "base/error.h"
#include "base/wall_clock.h"
#include "engine/device/host_experts.h"
#include "engine/device/miss_worker.h"
#include "engine/step/activations.h"

namespace sluice::engine {
namespace {

using backend::MemoryKind;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

template <typename Work>
double seconds_of(const Work& work) {
  const double start = wall_seconds();
  work();
  return wall_seconds() - start;
}

// An expert of one layer for one row of zeros: found on the device, or asked of the host, each time
// another one, so that it comes from memory.
class OneExpert {
 public:
  OneExpert(const model::Model& model, backend::Device& device, ThreadPool& threads)
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

  // Nobody else may use the threads meanwhile.
  double on_device() { return replay(slot_.data()); }
  double by_host() {
    worker_.begin_step();
    const double seconds = replay(nullptr);
    const std::string fault = worker_.end_step();
    const bool is_answered = fault.empty() && !mailbox_.fault_in(*step_);
    if (!is_answered) throw Error(Errc::device, cat("the handshake was not measured: ", fault));
    return seconds;
  }
  uint64_t n_bytes() const { return layout_.n_bytes; }

 private:
  static backend::ExpertsView experts_of(const model::Model& model) {
    backend::ExpertsView experts = model.layers().back().experts;
    experts.shared_gate = {};
    return experts;
  }

  uint64_t lay_out(std::byte* memory) {
    Carver carver(memory);
    table_ = carver.take<const std::byte*>(experts_.gate.n_mats);
    log_ = {carver.take<backend::LayerLog>(1), carver.take<RoutedExpert>(1)};
    routing_ = {1, carver.take<int32_t>(1), carver.take<float>(1), nullptr};
    n_live_ = carver.take<int32_t>(1);
    step_ = carver.take<uint32_t>(1);
    link_share_ = carver.take<float>(1);
    return carver.n_bytes();
  }

  void clear(const model::Activations& rows) {
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

  void record() {
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

  double replay(const std::byte* slot) {
    int32_t& expert = *routing_.experts;
    expert = (expert + 1) % static_cast<int32_t>(experts_.gate.n_mats);
    table_[expert] = slot;
    ++*step_;
    return seconds_of([&] {
      stream_->replay(*recording_);
      stream_->finish();
    });
  }

  backend::ExpertsView experts_;
  LayerId layer_;
  backend::ExpertLayout layout_;
  backend::Mailbox mailbox_;
  // In `mapped_`:
  const std::byte** table_ = nullptr;
  backend::LayerLogView log_;
  backend::RoutingView routing_;
  int32_t* n_live_ = nullptr;
  uint32_t* step_ = nullptr;
  float* link_share_ = nullptr;
  backend::Buffer mapped_;
  ActivationsBuffer own_;
  backend::Buffer slot_;
  uint64_t n_scratch_;
  backend::Buffer scratch_;
  std::unique_ptr<backend::Recording> recording_;
  std::unique_ptr<backend::Stream> stream_;
  std::unique_ptr<backend::DeviceOps> ops_;
  MissWorker worker_;
};

}  // namespace

// What the host needs beyond the expert's bytes and what the step costs anyway.
double measure_handshake_us(const model::Model& model, backend::Device& device, ThreadPool& threads,
                            double cpu_gbps, double seconds) {
  OneExpert expert(model, device, threads);
  const double by_rate = static_cast<double>(expert.n_bytes()) / (cpu_gbps * 1e9);
  std::vector<double> extra;
  const double end = wall_seconds() + seconds;
  do {
    const double on_device = expert.on_device();
    extra.push_back(expert.by_host() - on_device - by_rate);
  } while (wall_seconds() < end);
  return std::max(median_of(std::move(extra)), 0.0) * 1e6;
}

}  // namespace sluice::engine
