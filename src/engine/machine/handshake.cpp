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
using backend::WeightView;

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

// Layers whose experts are asked for by turns: with those of one alone some hosts' caches hold all
// of them (128 of 2.8 MB are 360 MB), and the host is faster than it is while it decodes.
constexpr size_t kLayersByTurns = 8;
constexpr uint64_t kPageBytes = 4096;

// One expert for one row of zeros: found on the device, or asked of the host, each time another one
// of another layer, so that it comes from memory.
class OneExpert {
 public:
  OneExpert(const model::Model& model, backend::Device& device, ThreadPool& threads)
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

  // The next layer's next expert.
  void advance() {
    at_ = (at_ + 1) % layers_.size();
    if (at_ == 0) expert_ = (expert_ + 1) % static_cast<int32_t>(layer().experts.gate.n_mats);
    // From a file that is mapped, a first look at a page takes longer than its bytes.
    const backend::ExpertMatrices matrices = layer().experts.expert(expert_);
    for (const WeightView* w : {&matrices.gate, &matrices.up, &matrices.down}) {
      const auto* const first = reinterpret_cast<const volatile char*>(w->data);
      for (uint64_t i = 0; i < w->matrix_bytes(); i += kPageBytes) static_cast<void>(first[i]);
    }
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
  uint64_t n_bytes() const { return layers_[at_].layout.n_bytes; }

 private:
  struct Layer {
    backend::ExpertsView experts;
    LayerId id;
    backend::ExpertLayout layout;
    std::unique_ptr<backend::Recording> recording = {};
  };

  // Some whose experts are like the last one's, from the first to the last: so one of them stands
  // for all on the device. (To copy each would bring it into the host's caches.)
  static std::vector<Layer> layers_of(const model::Model& model) {
    const auto like = [](const WeightView& a, const WeightView& b) {
      return a.type == b.type && a.n_rows == b.n_rows && a.n_cols == b.n_cols &&
             a.n_mats == b.n_mats;
    };
    const backend::ExpertsView& last = model.layers().back().experts;
    std::vector<Layer> all;
    for (const model::Layer& layer : model.layers()) {
      backend::ExpertsView e = layer.experts;
      if (!like(e.gate, last.gate) || !like(e.up, last.up) || !like(e.down, last.down)) continue;
      e.shared_gate = {};
      all.push_back({e, layer.id, backend::ExpertLayout(e)});
    }
    std::vector<Layer> some;
    const size_t n = std::min(all.size(), kLayersByTurns);
    for (size_t i = 0; i < n; ++i) some.push_back(std::move(all[i * all.size() / n]));
    return some;
  }
  Layer& layer() { return layers_[at_]; }

  uint64_t lay_out(std::byte* memory) {
    Carver carver(memory);
    table_ = carver.take<const std::byte*>(layers_[0].experts.gate.n_mats);
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

  std::unique_ptr<backend::Recording> record(const Layer& layer) {
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

  double replay(const std::byte* slot) {
    *routing_.experts = expert_;
    table_[expert_] = slot;
    ++*step_;
    return seconds_of([&] {
      stream_->replay(*layer().recording);
      stream_->finish();
    });
  }

  std::vector<Layer> layers_;
  size_t at_ = 0;       // the layer
  int32_t expert_ = 0;  // of it
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
  std::unique_ptr<backend::Stream> stream_;
  std::unique_ptr<backend::DeviceOps> ops_;
  MissWorker worker_;
};

}  // namespace

// What the host needs beyond the expert's bytes and what the step costs anyway. A layer's hits and
// misses begin together, so what the device took for the one it had found is a part of the wait.
double measure_handshake_us(const model::Model& model, backend::Device& device, ThreadPool& threads,
                            const MachineRates& rates, double seconds) {
  OneExpert expert(model, device, threads);
  const double experts_us = rates.experts_us >= 0.0 ? rates.experts_us : MachineRates().experts_us;
  std::vector<double> extra;
  const double end = wall_seconds() + seconds;
  do {
    expert.advance();
    const auto n_bytes = static_cast<double>(expert.n_bytes());
    const double found =
        rates.gpu_gbps > 0.0 ? experts_us * 1e-6 + n_bytes / (rates.gpu_gbps * 1e9) : 0.0;
    const double on_device = expert.on_device();
    extra.push_back(expert.by_host() - on_device + found - n_bytes / (rates.cpu_gbps * 1e9));
  } while (wall_seconds() < end);
  return std::max(median_of(std::move(extra)), 0.0) * 1e6;
}

}  // namespace sluice::engine
