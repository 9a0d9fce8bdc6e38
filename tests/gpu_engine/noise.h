// How much a model makes of nothing: its logits on the CPU, against the same with attention changed
// in its last bits. A GPU whose attention sums in another order cannot be nearer to the CPU than
// that: where inputs are rounded to int8, what is near a border goes to the other side now and
// then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>

#include "base/random.h"
#include "gpu_engine/divergence.h"
#include "unit/engine/forwarded_ops.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {

// The CPU's operations; what attention or recurrence gives is changed by up to `noise` of itself.
class NoisyOps final : public ForwardedOps<backend::Ops> {
 public:
  NoisyOps(std::unique_ptr<backend::Ops> ops, double noise, uint64_t seed)
      : ForwardedOps(std::move(ops)), noise_(noise), seed_(seed) {}

  void attend(backend::RowsView qkv, const backend::AttentionView& attention,
              const backend::StepView& step, const backend::KvLayerView& kv,
              backend::RowsView out) override {
    ForwardedOps::attend(qkv, attention, step, kv, out);
    add_noise(out);
  }
  void delta_net(backend::ConstRowsView in, const backend::DeltaNetView& net,
                 const backend::StepView& step, const backend::StateLayerView& state,
                 backend::RowsView out) override {
    ForwardedOps::delta_net(in, net, step, state, out);
    add_noise(out);
  }

 private:
  void add_noise(backend::RowsView out) {
    for (float& v : std::span(out.data, static_cast<size_t>(out.n_rows * out.n_cols))) {
      v = static_cast<float>(v * (1.0 + noise_ * random_signed(random_bits(seed_, n_drawn_++))));
    }
  }

  double noise_;
  uint64_t seed_, n_drawn_ = 0;
};

struct Divergences {
  double mean = 0.0, most = 0.0;
};

// With the same experts; the worst of nine noises, from half a bit of a float to ten. (Of three,
// which is what it was, a GPU's one draw was the worst once in a few builds.)
inline Divergences noise_of(const model::Model& model, const KvOptions& kv,
                            std::span<const TokenId> tokens) {
  Divergences worst;
  ThreadPool pool(1);
  for (uint64_t draw = 0; draw < 9; ++draw) {
    const double noise = std::array{6e-8, 2.4e-7, 6e-7}[draw % 3];
    Stepper plain(model, backend::make_cpu_ops(pool), kv, 1);
    const auto same_experts = [&](LayerId layer, int64_t row, std::span<int32_t> experts) {
      const auto chosen = plain.log().routed(layer);
      for (size_t k = 0; k < experts.size(); ++k) {
        experts[k] = chosen[static_cast<size_t>(row) * experts.size() + k].expert.value;
      }
    };
    Stepper noisy(model, std::make_unique<NoisyOps>(backend::make_cpu_ops(pool), noise, draw), kv,
                  1, same_experts);
    Divergences d;
    for (const TokenId token : tokens) {
      const StepRow row{token, {}, true};
      Logits want, got;
      const auto keep = [](Logits& to) {
        return [&to](int64_t, std::span<const float> logits) {
          to.assign(logits.begin(), logits.end());
        };
      };
      plain.step({&row, 1}, policy::Phase::prefill, {keep(want)});
      noisy.step({&row, 1}, policy::Phase::prefill, {keep(got)});
      const double kl = divergence(want, got);
      d.mean += kl / static_cast<double>(tokens.size());
      d.most = std::max(d.most, kl);
    }
    worst = {std::max(worst.mean, d.mean), std::max(worst.most, d.most)};
  }
  return worst;
}

}  // namespace sluice::engine::test
