// What the gated delta rule costs in narrow steps of the Qwen3.6-35B-A3B shape (32 value heads over
// 16 key heads, 128 x 128): graphs of 48 such kernels alone, of as many projections in front of
// them alone, and of both in turn, as layers have them; with four blocks to a head and with one,
// for rows of one sequence and for single rows of several. And for a single row what its own form
// brings, with a projection in front that has all weights on their way at once or one task to a
// block, and the projection behind. Prints markdown.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "backend/cuda/delta_net.h"
#include "backend/cuda/delta_part.h"
#include "backend/cuda/delta_row.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/project.h"
#include "base/random.h"
#include "bench_main.h"
#include "gpu_memory.cuh"
#include "graph_timer.cuh"
#include "quant/type.h"

namespace sluice::backend::cuda {
namespace {

using quant::Type;

constexpr int kLayers = 48, kModel = 2048, kKeyHeads = 16, kValueHeads = 32, kDim = 128, kTaps = 4,
              kMostRows = 16, kPlaces = 64;
constexpr int kConvCols = (2 * kKeyHeads + kValueHeads) * kDim, kValueCols = kValueHeads * kDim;
constexpr int kInCols = kConvCols + kValueCols + 2 * kValueHeads;
constexpr int64_t kStateValues = (kTaps - 1) * kConvCols + int64_t{kValueCols} * kDim;
constexpr int64_t kUpdateValues = kConvCols + kKeyHeads * kDim + kValueCols + kValueHeads;

float* random_device(int64_t n, uint64_t seed, float size, float middle = 0.0f) {
  std::vector<float> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i) v[i] = middle + size * random_signed(random_bits(seed, i));
  return device(v);
}
template <typename T>
T* bytes_on_device(int64_t n) {
  return device<T>(static_cast<size_t>(n));
}

// The layers' weights and states, of so many sequences; each layer its own, as in a model.
class Layers {
 public:
  explicit Layers(int n_sequences, Type in_type = Type::q4_k)
      : n_sequences_(n_sequences), in_type_(in_type) {
    float* const state = random_device(kStateValues, 9, 0.2f);
    for (int l = 0; l < kLayers; ++l) {
      conv_[l] = random_device(int64_t{kConvCols} * kTaps, 1, 0.5f);
      decay_[l] = random_device(kValueHeads, 2, 0.4f, -0.5f);
      bias_[l] = random_device(kValueHeads, 3, 1.0f);
      norm_[l] = random_device(kDim, 4, 0.1f, 1.0f);
      states_[l] = bytes_on_device<float>(2 * n_sequences * kStateValues);
      CHECK_CUDA(
          cudaMemcpy(states_[l], state, sizeof(float) * kStateValues, cudaMemcpyDeviceToDevice));
      updates_[l] = bytes_on_device<float>(n_sequences * kPlaces * kUpdateValues);
    }
    std::vector<int32_t> from, to;
    for (int s = 0; s < n_sequences; ++s) from.push_back(2 * s), to.push_back(2 * s + 1);
    from_ = device(from), to_ = device(to);
    in_ = random_device(int64_t{kMostRows} * kInCols, 5, 1.0f);
    first_x_ = random_device(int64_t{kMostRows} * kModel, 6, 1.0f);
    x_ = bytes_on_device<float>(int64_t{kMostRows} * kModel);
    reset();
    out_ = bytes_on_device<float>(int64_t{kMostRows} * kValueCols);
    out_int8_ = int8_rows(kValueCols);
    a_ = int8_rows(kModel);
    fill_weights();
  }
  // x as it was: project_out adds to it.
  void reset() {
    CHECK_CUDA(
        cudaMemcpy(x_, first_x_, sizeof(float) * kMostRows * kModel, cudaMemcpyDeviceToDevice));
  }
  // Steps of so many rows: of one sequence, or of one each.
  void set_step(int n_rows, bool is_one) {
    n_rows_ = n_rows;
    std::vector<int32_t> sequences, positions;
    for (int r = 0; r < n_rows; ++r) {
      sequences.push_back(is_one ? 0 : r);
      positions.push_back(is_one ? 100 + r : 100);
    }
    sequences_ = device(sequences), positions_ = device(positions);
    n_live_ = device(std::vector<int32_t>{n_rows});
  }

  void project(int l, const Launch& how) const {
    ProjectIn p;
    p.x = x_;
    p.norm = norms_;
    p.eps = 1e-6f;
    p.n_rows = n_rows_;
    p.n_cols = kModel;
    // q k v, and z with b and a.
    const uint8_t* const at = weights_ + static_cast<size_t>(l) * weight_bytes_;
    p.weights[p.n_weights++] = {in_type_, at, kConvCols, nullptr, 0};
    p.weights[p.n_weights++] = {Type::q4_k, at + matrix_bytes(in_type_, kModel, kConvCols),
                                kInCols - kConvCols, nullptr, kConvCols};
    p.out = in_;
    p.out_stride = kInCols;
    p.a = a_;
    project_in(p, how);
  }
  // The projections of an attention layer: q with its gate, k and v.
  void project_attention(int l, const Launch& how) const {
    ProjectIn p;
    p.x = x_, p.norm = norms_;
    p.eps = 1e-6f;
    p.n_rows = n_rows_, p.n_cols = kModel;
    const uint8_t* const at = weights_ + static_cast<size_t>(l) * weight_bytes_;
    p.weights[p.n_weights++] = {Type::q4_k, at, 2 * 16 * 256 + 2 * 2 * 256, nullptr};
    p.out = in_;
    p.out_stride = p.weights[0].n_rows;
    p.a = a_;
    project_in(p, how);
  }
  void project_out(int l, const Launch& how) const {
    ProjectAdd p;
    p.in = out_int8_;
    p.n_rows = n_rows_, p.n_cols = kValueCols;
    p.weight = {Type::q4_k, out_weights_ + static_cast<size_t>(l) * out_bytes(), kModel, nullptr};
    p.x = x_;
    project_add(p, how);
  }
  DeltaNetStep delta_step(int l) const {
    DeltaNetStep p;
    p.in = in_;
    p.n_rows = n_rows_;
    p.n_taps = kTaps;
    p.n_key_heads = kKeyHeads, p.n_value_heads = kValueHeads;
    p.head_dim = kDim;
    p.by_remainder = true;
    p.conv = conv_[l], p.decay = decay_[l], p.time_bias = bias_[l], p.norm = norm_[l];
    p.eps = 1e-6f;
    p.sequences = sequences_, p.positions = positions_, p.n_live = n_live_;
    p.states = states_[l], p.state_stride = kStateValues;
    p.from = from_, p.to = to_, p.n_sequences = n_sequences_;
    p.updates = updates_[l], p.update_stride = kUpdateValues;
    p.n_places = kPlaces, p.max_logged_rows = kMostRows;
    p.out = out_, p.out_int8 = out_int8_;
    return p;
  }
  void delta(int l, const Launch& how) const { delta_net(delta_step(l), how); }
  // Of the last layer's result and state, for comparing two forms.
  uint64_t checksum() const {
    std::vector<float> out(static_cast<size_t>(n_rows_) * kValueCols);
    std::vector<int8_t> q(out.size());
    std::vector<float> state(static_cast<size_t>(kStateValues));
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaMemcpy(out.data(), out_, out.size() * 4, cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(q.data(), out_int8_.q, q.size(), cudaMemcpyDeviceToHost));
    CHECK_CUDA(cudaMemcpy(state.data(), states_[kLayers - 1] + kStateValues, state.size() * 4,
                          cudaMemcpyDeviceToHost));
    uint64_t sum = 0;
    const auto add = [&](const auto& values) {
      for (const auto value : values) {
        uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof(value));
        sum = sum * 1099511628211u + bits;
      }
    };
    add(out), add(q), add(state);
    return sum;
  }

 private:
  static size_t matrix_bytes(Type type, int n_cols, int n_rows) {
    return static_cast<size_t>(n_rows) * quant::row_bytes(type, n_cols);
  }
  static size_t out_bytes() { return matrix_bytes(Type::q4_k, kValueCols, kModel); }

  // Any bytes whose scales are small, so many for each layer.
  static uint8_t* small_bytes(size_t n_bytes) {
    std::vector<uint8_t> bytes(n_bytes);
    for (size_t i = 0; i < bytes.size(); i += 8) {
      const uint64_t eight = random_bits(8, i) & 0x1b1b1b1b1b1b1b1bu;
      std::memcpy(bytes.data() + i, &eight, std::min<size_t>(8, bytes.size() - i));
    }
    auto* const all = device<uint8_t>(kLayers * n_bytes + 256);  // read in whole lines
    for (int l = 0; l < kLayers; ++l) {
      CHECK_CUDA(cudaMemcpy(all + static_cast<size_t>(l) * n_bytes, bytes.data(), n_bytes,
                            cudaMemcpyHostToDevice));
    }
    return all;
  }
  void fill_weights() {
    weight_bytes_ = matrix_bytes(in_type_, kModel, kConvCols) +
                    matrix_bytes(Type::q4_k, kModel, kInCols - kConvCols);
    weights_ = small_bytes(weight_bytes_);
    out_weights_ = small_bytes(out_bytes());
  }
  static Int8Rows int8_rows(int n_cols) {
    const int64_t n_chunks = (n_cols + 255) / 256, n = kMostRows * n_chunks;
    return {bytes_on_device<int8_t>(256 * n), bytes_on_device<float>(8 * n),
            bytes_on_device<float>(8 * n), static_cast<int>(n_chunks)};
  }

  int n_sequences_, n_rows_ = 0;
  Type in_type_;
  float *conv_[kLayers], *decay_[kLayers], *bias_[kLayers], *norm_[kLayers], *states_[kLayers],
      *updates_[kLayers];
  int32_t *from_ = nullptr, *to_ = nullptr, *sequences_ = nullptr, *positions_ = nullptr,
          *n_live_ = nullptr;
  float *in_ = nullptr, *x_ = nullptr, *first_x_ = nullptr, *out_ = nullptr;
  float* norms_ = random_device(kModel, 7, 0.1f, 1.0f);
  Int8Rows out_int8_, a_;
  uint8_t *weights_ = nullptr, *out_weights_ = nullptr;
  size_t weight_bytes_ = 0;
};

void bench_step(GraphTimer& time, Layers& layers, int n_rows, bool is_one) {
  layers.set_step(n_rows, is_one);
  Launch how = launch_on(time.stream());
  const auto us = [&](bool projects, bool recurs) {
    return time([&] {
             for (int l = 0; l < kLayers; ++l) {
               if (projects) layers.project(l, how);
               if (recurs) layers.delta(l, how);
             }
           }) /
           kLayers;
  };
  std::printf("| %d | %s |", n_rows, is_one ? "one" : "each its own");
  const double alone = us(true, false);
  std::printf(" %.2f |", alone);
  uint64_t sums[2] = {};
  for (const bool parts : {false, true}) {
    how.clusters = parts && launch_on(nullptr).clusters;
    const double both = us(true, true);
    std::printf(" %.2f | %.2f | %.2f |", us(false, true), both, both - alone);
    sums[parts ? 1 : 0] = layers.checksum();
  }
  std::printf(" %s |\n", sums[0] == sums[1] ? "same" : "DIFFERENT");
  std::fflush(stdout);
}

// A single row, before and after: its projection with one task to a block or the rest shared, the
// rule in the form of several rows or its own.
void bench_row(GraphTimer& time, Layers& layers, const char* types) {
  layers.set_step(1, true);
  const Launch shares = launch_on(time.stream());
  Launch apart = shares;
  apart.n_sms = 1 << 20;  // as if all blocks were on the card at once
  enum Parts { in = 1, rule = 2, out = 4, attention = 8 };
  const auto us = [&](int parts, bool shared, bool own_form) {
    return time([&] {
             for (int l = 0; l < kLayers; ++l) {
               if (parts & in) layers.project(l, shared ? shares : apart);
               if (parts & attention) layers.project_attention(l, shared ? shares : apart);
               if (parts & rule) {
                 own_form ? row_delta_net(layers.delta_step(l), shares)
                          : part_delta_net(layers.delta_step(l), shares);
               }
               if (parts & out) layers.project_out(l, shares);
             }
           }) /
           kLayers;
  };
  uint64_t sums[4];
  for (int turn = 0; turn < 2; ++turn) {  // the same twice: what differs is noise
    for (int form = 0; form < 4; ++form) {
      const bool shared = form & 1, own_form = form & 2;
      std::printf("| %s | %s | %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |", types,
                  shared ? "shared" : "one each", own_form ? "its own" : "of several rows",
                  us(in, shared, own_form), us(rule, shared, own_form),
                  us(in | rule, shared, own_form), us(rule | out, shared, own_form),
                  us(in | rule | out, shared, own_form), us(attention | out, shared, own_form));
      layers.reset();
      us(in | rule, shared, own_form);
      sums[form] = layers.checksum();
      std::printf(" %s |\n", sums[form] == sums[0] ? "same" : "DIFFERENT");
      std::fflush(stdout);
    }
  }
}

void bench_rows() {
  GraphTimer time;
  std::printf(
      "A single row, microseconds a layer.\n\n"
      "| q k v | project_in | rule | project_in | rule | both | rule, project_add | all three "
      "| project_in of attention, project_add | bits "
      "|\n|---|---|---|---|---|---|---|---|---|---|\n");
  {
    Layers layers(1);
    bench_row(time, layers, "Q4_K");
  }
  Layers layers(1, Type::q6_k);
  bench_row(time, layers, "Q6_K");
  std::printf("\n");
}

void bench_steps() {
  GraphTimer time;
  std::printf(
      "Microseconds a layer: alone, behind project_in, and what of that is the rule's.\n\n");
  std::printf(
      "| rows | sequences | project_in | a block a head | both | - project_in | four blocks | both "
      "| - project_in | bits |\n|---|---|---|---|---|---|---|---|---|---|\n");
  {
    Layers layers(1);
    for (const int n_rows : {1, 2, 4, 8, 16}) bench_step(time, layers, n_rows, true);
  }
  Layers layers(kMostRows);
  for (const int n_rows : {2, 8, 16}) bench_step(time, layers, n_rows, false);
}

}  // namespace
}  // namespace sluice::backend::cuda

// `row`: single rows alone.
int main(int argc, char** argv) {
  return sluice::bench::bench_main([&] {
    sluice::backend::cuda::bench_rows();
    const bool only_rows = argc > 1 && std::strcmp(argv[1], "row") == 0;
    if (!only_rows) sluice::backend::cuda::bench_steps();
    return 0;
  });
}
