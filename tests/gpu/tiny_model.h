// A small model with random weights, the same bytes on the CPU and on the GPU, and its steps: what
// the tests of a GPU's operations compare.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <list>
#include <optional>

#include "backend/cpu/rope.h"
#include "backend/device_ops.h"
#include "backend/kv_page.h"
#include "base/random.h"
#include "gpu/device.h"

namespace sluice::backend::cuda::test {

// Where a model's bytes stand: with the host, or in the GPU's memory.
class Side {
 public:
  explicit Side(backend::Device* gpu) : gpu_(gpu) {
    if (gpu_) stream_ = gpu_->make_stream("side");
  }

  std::byte* put(std::span<const std::byte> bytes) {
    if (!gpu_) {
      // Whole lines, as the GPU has them.
      auto& block = host_.emplace_back((bytes.size() + 127) / 64 * 64);
      auto* const at =
          reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(block.data()) + 63) / 64 * 64);
      std::ranges::copy(bytes, at);
      return at;
    }
    own_.push_back(gpu_->allocate(MemoryKind::device, bytes.size()));
    stream_->copy(own_.back().data(), bytes.data(), bytes.size());
    stream_->finish();
    return own_.back().data();
  }
  template <typename T>
  T* put(const std::vector<T>& values) {
    return reinterpret_cast<T*>(put(std::as_bytes(std::span(values))));
  }
  template <typename T>
  std::vector<T> get(const T* from, size_t n) {
    std::vector<T> values(n);
    if (!gpu_) {
      std::memcpy(values.data(), from, n * sizeof(T));
    } else {
      stream_->copy(reinterpret_cast<std::byte*>(values.data()),
                    reinterpret_cast<const std::byte*>(from), n * sizeof(T));
      stream_->finish();
    }
    return values;
  }

 private:
  backend::Device* gpu_;
  std::unique_ptr<Stream> stream_;
  std::list<std::vector<std::byte>> host_;
  std::vector<Buffer> own_;
};

// Rows of floats stay as they are.
inline std::vector<std::byte> woven_bytes(Type type, int64_t n_cols, int64_t n_rows,
                                          uint64_t seed) {
  const size_t row = quant::row_bytes(type, n_cols), stripe = 8 * row;
  std::vector<std::byte> rows(static_cast<size_t>(n_rows) * row), out(rows.size());
  quant::random_row_blocks(type, seed, 0,
                           static_cast<int64_t>(rows.size() / quant::type_info(type).block_bytes),
                           0.1f, rows.data());
  if (quant::is_float(type)) return rows;
  for (size_t at = 0; at < rows.size(); at += stripe) {
    quant::weave_rows(type, n_cols, rows.data() + at, out.data() + at);
  }
  return out;
}

inline quant::Layout layout_of(Type type) {
  return quant::is_float(type) ? quant::Layout::rows : quant::Layout::stripes;
}

inline WeightView woven_weight(Side& side, Type type, int64_t n_cols, int64_t n_rows,
                               uint64_t seed) {
  return {type,           side.put(woven_bytes(type, n_cols, n_rows, seed)), n_cols, n_rows, 1,
          layout_of(type)};
}

// Near 1, as norms are.
inline std::vector<float> norm_weights(size_t n, uint64_t seed) {
  std::vector<float> w = random_values(n, seed, 0.1f);
  for (float& v : w) v += 1.0f;
  return w;
}

struct TinyShape {
  Type attention = Type::q4_k, out = Type::q6_k, gate_up = Type::q4_k, down = Type::q8_0,
       output = Type::q6_k;
  int d_model = 256, n_heads = 4, n_kv_heads = 2, head_dim = 64;
  int d_ff = 96, shared_d_ff = 64, n_experts = 8;
  HeadNorm head_norm = HeadNorm::per_head;
  RopePairing pairing = RopePairing::halves;
  Type kv = Type::f16;
  bool has_bias = false;
  // Where they are not those of the routed experts' gate and down.
  std::optional<Type> up = {}, shared_gate = {}, shared_up = {}, shared_down = {};
};

// Nothing is a multiple of 256, heads are few, and projections have a bias.
inline TinyShape odd_shape() {
  return {Type::q8_0,
          Type::q5_1,
          Type::q4_0,
          Type::q5_0,
          Type::q8_0,
          96,
          3,
          1,
          32,
          160,
          0,
          5,
          HeadNorm::none,
          RopePairing::adjacent,
          Type::bf16,
          true};
}

constexpr int kLayers = 2, kUsed = 2, kVocab = 512, kSequences = 11, kPages = 3, kPageTokens = 16;
constexpr int kWidest = 16, kMostRot = 64;

// All that varies from step to step. Forced experts are [kLayers, width, kUsed].
struct TinyStep {
  int32_t n_live, n_logits, n_best;
  int32_t tokens[kWidest], positions[kWidest], sequences[kWidest], logit_rows[kWidest];
  int32_t table[kSequences * kPages];
  int32_t forced[kLayers * kWidest * kUsed];
  float angles[kWidest * kMostRot];

  // `at` is this, or a copy of it elsewhere.
  static StepView view(const TinyStep* at, int width) {
    StepView v;
    v.n_rows = width;
    v.n_live = &at->n_live;
    v.tokens = at->tokens;
    v.positions = at->positions;
    v.sequences = at->sequences;
    v.angles = at->angles;
    v.page_table = at->table;
    v.table_stride = kPages;
    v.n_logits = &at->n_logits;
    v.logit_rows = at->logit_rows;
    v.n_best = &at->n_best;
    v.forced = at->forced;
    return v;
  }
};

class TinyModel {
 public:
  TinyModel(const TinyShape& shape, Side& side) : s_(shape), side_(side) {
    for (int j = 0; j < shape.head_dim / 2; ++j) {
      frequencies_.push_back(std::pow(1e-3f, static_cast<float>(j) / 16.0f));
    }
    for (int l = 0; l < kLayers; ++l) add_layer(static_cast<uint64_t>(1000 * (l + 1)));
    std::vector<float> table = random_values(size_t{kVocab} * size(shape.d_model), 7);
    table_ = {Type::f32, side.put(std::as_bytes(std::span<const float>(table))), shape.d_model,
              kVocab};
    norm_ = {side.put(norm_weights(size(shape.d_model), 8)), 1e-6f};
    output_ = woven_weight(side, shape.output, shape.d_model, kVocab, 9);
    add_activations();
  }

  // The step's rows, all layers and the logits; on_layer after each one's experts.
  void forward(Ops& ops, StepView step, const std::function<void(int)>& on_layer = {}) {
    const int64_t n = step.n_rows;
    const RowsView x{x_, n, s_.d_model}, qkv{qkv_, n, attention_view().q_cols() + 2 * kv_cols()},
        out{att_, n, attention_view().q_cols()};
    const int32_t* const forced = step.forced;
    ops.embed(table_, step, x);
    for (int l = 0; l < kLayers; ++l) {
      const TinyLayer& w = layers_[size(l)];
      ops.project_in(x, w.attn_norm, w.qkv, qkv);
      ops.attend(qkv, w.attention, step, w.kv, out);
      ops.project_add(out, w.out, x);
      RoutingView routing = routing_;
      routing.forced = forced ? forced + l * n * kUsed : nullptr;
      ExpertInputView a = a_;
      a.n_rows = n;
      ops.route(x, w.ffn_norm, w.router, a, routing);
      ops.experts(w.experts, a, routing, x);
      if (on_layer) on_layer(l);
    }
    ops.logits(x, step, 0, norm_, output_, {logits_, n, kVocab});
  }

  std::vector<float> logits(int n_rows) { return side_.get(logits_, size(n_rows) * kVocab); }
  std::vector<int32_t> chosen(int n_rows) {
    return side_.get(routing_.experts, size(n_rows) * kUsed);
  }
  std::vector<std::byte> cache() {
    std::vector<std::byte> all;
    for (const TinyLayer& layer : layers_) {
      for (const std::byte* part : {layer.kv.k, layer.kv.v}) {
        const auto bytes = side_.get(part, cache_bytes());
        all.insert(all.end(), bytes.begin(), bytes.end());
      }
    }
    return all;
  }
  const ExpertsView& experts(int layer) const { return layers_[size(layer)].experts; }
  const RouterView& router(int layer) const { return layers_[size(layer)].router; }
  const NormView& ffn_norm(int layer) const { return layers_[size(layer)].ffn_norm; }
  RopeView rope() const { return {s_.pairing, frequencies_, 1.0f}; }

 private:
  struct TinyLayer {
    NormView attn_norm, ffn_norm;
    std::vector<Projection> qkv;
    AttentionView attention;
    KvLayerView kv;
    Projection out;
    RouterView router;
    ExpertsView experts;
  };

  static size_t size(int64_t n) { return static_cast<size_t>(n); }
  int64_t kv_cols() const { return int64_t{s_.n_kv_heads} * s_.head_dim; }
  size_t cache_bytes() const {
    return size(kSequences * kPages *
                kv_page(s_.kv, s_.n_kv_heads, s_.head_dim, kPageTokens).page_bytes());
  }
  AttentionView attention_view() const {
    AttentionView a;
    a.n_heads = s_.n_heads;
    a.n_kv_heads = s_.n_kv_heads;
    a.head_dim = s_.head_dim;
    a.head_norm = s_.head_norm;
    a.rope = rope();
    return a;
  }
  Projection projection(Type type, int64_t n_cols, int64_t n_rows, uint64_t seed) {
    return {woven_weight(side_, type, n_cols, n_rows, seed),
            s_.has_bias ? side_.put(random_values(size(n_rows), seed + 1, 0.2f)) : nullptr};
  }

  void add_layer(uint64_t seed) {
    TinyLayer w;
    const int64_t d = s_.d_model, q_cols = attention_view().q_cols();
    w.attn_norm = {side_.put(norm_weights(size(d), seed)), 1e-6f};
    w.ffn_norm = {side_.put(norm_weights(size(d), seed + 1)), 1e-6f};
    w.qkv = {projection(s_.attention, d, q_cols, seed + 10),
             projection(s_.attention, d, kv_cols(), seed + 20),
             projection(s_.out, d, kv_cols(), seed + 30)};
    w.out = projection(s_.out, q_cols, d, seed + 40);
    w.attention = attention_view();
    w.attention.q_norm = {side_.put(norm_weights(size(s_.head_dim), seed + 2)), 1e-6f};
    w.attention.k_norm = {side_.put(norm_weights(size(s_.head_dim), seed + 3)), 1e-6f};
    const std::vector<std::byte> empty(cache_bytes());
    w.kv = {s_.kv, s_.kv, side_.put(empty), side_.put(empty), kPageTokens};
    w.router = {{Type::f32,
                 reinterpret_cast<const std::byte*>(
                     side_.put(random_values(size(d * s_.n_experts), seed + 4, 0.1f))),
                 d, s_.n_experts},
                kUsed,
                true,
                s_.shared_d_ff ? side_.put(random_values(size(d), seed + 5, 0.02f)) : nullptr};
    add_experts(w.experts, seed + 100);
    layers_.push_back(w);
  }

  void add_experts(ExpertsView& e, uint64_t seed) {
    const int64_t d = s_.d_model, n = s_.n_experts;
    const Type up = s_.up.value_or(s_.gate_up);
    e.gate = {s_.gate_up, nullptr, d, s_.d_ff, n, layout_of(s_.gate_up)};
    e.up = {up, nullptr, d, s_.d_ff, n, layout_of(up)};
    e.down = {s_.down, nullptr, s_.d_ff, d, n, layout_of(s_.down)};
    const ExpertLayout layout(e);
    std::vector<const std::byte*> table;
    for (int i = 0; i < s_.n_experts; ++i) {
      std::vector<std::byte> slot(layout.stride);
      const auto place = [&](Type type, int64_t n_cols, int64_t n_rows, uint64_t at) {
        std::ranges::copy(woven_bytes(type, n_cols, n_rows, seed++),
                          slot.begin() + static_cast<std::ptrdiff_t>(at));
      };
      place(s_.gate_up, d, s_.d_ff, 0);
      place(up, d, s_.d_ff, layout.up_at);
      place(s_.down, s_.d_ff, d, layout.down_at);
      table.push_back(side_.put(slot));
    }
    e.table = side_.put(table);
    if (s_.shared_d_ff == 0) return;
    const auto shared = [&](std::optional<Type> type, Type usual, int64_t n_cols, int64_t n_rows) {
      return woven_weight(side_, type.value_or(usual), n_cols, n_rows, ++seed);
    };
    e.shared_gate = shared(s_.shared_gate, s_.gate_up, d, s_.shared_d_ff);
    e.shared_up = shared(s_.shared_up, up, d, s_.shared_d_ff);
    e.shared_down = shared(s_.shared_down, s_.down, s_.shared_d_ff, d);
  }

  void add_activations() {
    const int64_t q_cols = attention_view().q_cols(), d = s_.d_model;
    const auto floats = [&](int64_t n) { return side_.put(std::vector<float>(size(n))); };
    x_ = floats(kWidest * d);
    qkv_ = floats(kWidest * (q_cols + 2 * kv_cols()));
    att_ = floats(kWidest * q_cols);
    logits_ = floats(int64_t{kWidest} * kVocab);
    a_ = {kWidest,
          d,
          nullptr,
          side_.put(std::vector<int8_t>(size(kWidest * d))),
          floats(kWidest * d / 32),
          floats(kWidest * d / 32)};
    routing_ = {kUsed, side_.put(std::vector<int32_t>(kWidest * kUsed)), floats(kWidest * kUsed),
                floats(kWidest)};
  }

  TinyShape s_;
  Side& side_;
  std::vector<float> frequencies_;
  std::vector<TinyLayer> layers_;
  WeightView table_, output_;
  NormView norm_;
  float *x_ = nullptr, *qkv_ = nullptr, *att_ = nullptr, *logits_ = nullptr;
  ExpertInputView a_;
  RoutingView routing_;
};

}  // namespace sluice::backend::cuda::test
