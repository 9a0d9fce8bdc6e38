// The experts of one token alone: gate, up, SwiGLU, down and the sum, for layers of the shape of
// Qwen3-30B-A3B in Q4_K_M (128 experts, 8 used, chosen at random), next to how fast the same
// threads read memory. Each expert in a slot, and, in turn with it, gate, up and down of all
// experts in three stacks; the ratio is the median over the turns, so that other work on the
// machine counts for both.
//
//   cmake --preset release -DSLUICE_BENCH=ON && cmake --build --preset release --target
//   bench_experts build/release/bench/bench_experts [THREADS ...]
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/host_memory.h"
#include "base/random.h"
#include "cli/bench/machine_speed.h"
#include "quant/activation.h"
#include "quant/random_rows.h"

namespace sluice::backend {
namespace {

using quant::Type;

constexpr int64_t kModel = 2048, kHidden = 768, kExperts = 128, kUsed = 8;
constexpr int kLayers = 2;  // of 0.4 GB, so that no cache holds what comes again
constexpr int kRounds = 400;

// A layer's experts, woven; one expert's, copied.
struct Layer {
  // Q4_K_M keeps every other down matrix in Q6_K.
  Layer(int i, bool in_slots) {
    constexpr auto kStripes = quant::Layout::stripes;
    view.gate = view.up = {Type::q4_k, nullptr, kModel, kHidden, kExperts, kStripes};
    view.down = {
        i % 2 == 0 ? Type::q6_k : Type::q4_k, nullptr, kHidden, kModel, kExperts, kStripes};
    const ExpertLayout layout(view);
    memory = allocate_host(layout.stride * kExperts);
    if (in_slots) view.slots = memory.data();
    std::byte* next = memory.data();
    for (WeightView* w : {&view.gate, &view.up, &view.down}) {
      w->data = next;
      next += in_slots ? slot_part_bytes(w->matrix_bytes()) : kExperts * w->matrix_bytes();
    }
    fill([](const ExpertMatrices& e) { return e.gate; });
    fill([](const ExpertMatrices& e) { return e.up; });
    fill([](const ExpertMatrices& e) { return e.down; });
  }

  template <typename Part>
  void fill(const Part& part) {
    const WeightView w = part(view.expert(0));
    auto* const first = const_cast<std::byte*>(w.data);  // our own memory
    fill_rows(w, first);
    for (int32_t e = 1; e < kExperts; ++e) {
      std::memcpy(const_cast<std::byte*>(part(view.expert(e)).data), first, w.matrix_bytes());
    }
  }

  static void fill_rows(const WeightView& w, std::byte* to) {
    std::vector<std::byte> rows(w.matrix_bytes());
    const int64_t n_blocks = w.n_rows * w.n_cols / quant::type_info(w.type).block_elems;
    quant::random_row_blocks(w.type, 1, 0, n_blocks, 0.05f, rows.data());
    for (uint64_t at = 0; at < rows.size(); at += quant::kStripeRows * w.row_bytes()) {
      quant::weave_rows(w.type, w.n_cols, rows.data() + at, to + at);
    }
  }

  uint64_t bytes_per_token() const { return kUsed * ExpertLayout(view).n_bytes; }

  Buffer memory;
  ExpertsView view;
};

struct Token {
  Token() : x(kModel), q(kModel), d(kModel / 32), y(kModel / 32), out(kModel) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = random_signed(random_bits(7, i));
    quant::quantize_activation(x, q.data(), d.data(), y.data());
    std::iota(deck.begin(), deck.end(), 0);
  }

  // Eight other experts.
  void choose(uint64_t seed) {
    for (size_t k = 0; k < kUsed; ++k) {
      std::swap(deck[k], deck[k + random_bits(seed, k) % (kExperts - k)]);
    }
  }

  std::vector<float> x;
  std::vector<int8_t> q;
  std::vector<float> d, y, out;
  std::vector<int32_t> deck = std::vector<int32_t>(kExperts);
  std::vector<float> weights = std::vector<float>(kUsed, 1.0f / kUsed);
};

double seconds_of(Ops& op, Token& token, const std::vector<Layer>& layers, int round) {
  const auto start = std::chrono::steady_clock::now();
  for (size_t i = 0; i < layers.size(); ++i) {
    token.choose(static_cast<uint64_t>(round) * 100 + i);
    op.experts(layers[i].view,
               {.n_rows = 1,
                .n_cols = kModel,
                .q = token.q.data(),
                .d = token.d.data(),
                .y = token.y.data()},
               {.n_used = kUsed, .experts = token.deck.data(), .weights = token.weights.data()},
               {token.out.data(), 1, kModel});
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

void measure(const std::vector<Layer>& slots, const std::vector<Layer>& stacks, int n_threads) {
  ThreadPool pool(n_threads);
  const std::unique_ptr<Ops> op = make_cpu_ops(pool);
  Token token;
  double bytes = 0.0;
  for (const Layer& layer : slots) bytes += static_cast<double>(layer.bytes_per_token());
  const double before = cli::read_bytes_per_second(pool);
  std::vector<double> in_slots, in_stacks, ratios;
  for (int round = 0; round < kRounds; ++round) {  // whoever is second has no advantage
    const bool slots_first = round % 2 == 0;
    const double first = seconds_of(*op, token, slots_first ? slots : stacks, 2 * round);
    const double second = seconds_of(*op, token, slots_first ? stacks : slots, 2 * round + 1);
    in_slots.push_back(bytes / (slots_first ? first : second));
    in_stacks.push_back(bytes / (slots_first ? second : first));
    ratios.push_back(in_slots.back() / in_stacks.back());
  }
  const double reads = std::max(before, cli::read_bytes_per_second(pool));
  const double speed = median(in_slots);
  std::printf("%7d  %10.1f  %6.1f  %3.0f %%  %9.1f  %5.3f\n", pool.n_threads(), speed / 1e9,
              reads / 1e9, 100.0 * speed / reads, median(in_stacks) / 1e9, median(ratios));
}

}  // namespace
}  // namespace sluice::backend

int main(int argc, char** argv) {
  std::vector<int> threads;
  for (int i = 1; i < argc; ++i) threads.push_back(std::atoi(argv[i]));
  if (threads.empty()) threads = {1, 0};  // 0: all cores
  std::vector<sluice::backend::Layer> slots, stacks;
  for (int i = 0; i < sluice::backend::kLayers; ++i) {
    slots.emplace_back(i, true);
    stacks.emplace_back(i, false);
  }
  std::puts("threads  experts GB/s   reads  share  in stacks  ratio");
  for (const int n : threads) sluice::backend::measure(slots, stacks, n);
  return 0;
}
