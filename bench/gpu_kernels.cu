// What the decode kernels cost: each alone, as a share of plain reads measured in the same run,
// with 8 and with 64 experts; and tokens of the Qwen3-30B-A3B shape (48 layers, Q4_K, down of every
// other layer Q6_K, output Q6_K) as one graph, for 1 and 8 rows. Prints markdown.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "backend/cuda/attend.h"
#include "backend/cuda/cuda_error.h"
#include "backend/cuda/experts.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/project.h"
#include "backend/cuda/route.h"
#include "base/random.h"
#include "bench_main.h"
#include "gpu_memory.cuh"
#include "graph_timer.cuh"
#include "quant/random_rows.h"
#include "quant/stripes.h"

namespace sluice::backend::cuda {
namespace {

using quant::Type;

__global__ void plain_reads(const uint4* p, size_t n, unsigned* out) {
  unsigned sum = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n;
       i += size_t{gridDim.x} * blockDim.x) {
    const uint4 v = __ldcs(p + i);
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678u) *out = sum;
}

std::vector<float> random_floats(size_t n, uint64_t seed, float size, float middle = 0.0f) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = middle + size * random_signed(random_bits(seed, i));
  return v;
}

size_t matrix_bytes(Type type, int n_cols, int n_rows) {
  return static_cast<size_t>(n_rows) * quant::row_bytes(type, n_cols);
}

// n matrices of stripes, all with the same content: only their places matter here.
uint8_t* matrices(Type type, int n_cols, int n_rows, size_t n, size_t stride) {
  const size_t n_bytes = matrix_bytes(type, n_cols, n_rows), row = quant::row_bytes(type, n_cols);
  std::vector<std::byte> rows(8 * row), stripe(8 * row);
  uint8_t* const out = device<uint8_t>(n * stride);
  for (size_t at = 0; at < n_bytes; at += 8 * row) {
    if (at < 64 * row) {
      quant::random_row_blocks(type, at, 0,
                               static_cast<int64_t>(8 * row / quant::type_info(type).block_bytes),
                               0.02f, rows.data());
      quant::weave_rows(type, n_cols, rows.data(), stripe.data());
    }
    CHECK_CUDA(cudaMemcpy(out + at, stripe.data(), 8 * row, cudaMemcpyHostToDevice));
  }
  for (size_t i = 1; i < n; ++i) {
    CHECK_CUDA(cudaMemcpyAsync(out + i * stride, out, n_bytes, cudaMemcpyDeviceToDevice));
  }
  CHECK_CUDA(cudaDeviceSynchronize());
  return out;
}

constexpr int kLayers = 48, kModel = 2048, kFf = 768, kExperts = 128, kUsed = 8, kHeads = 32,
              kKvHeads = 4, kHeadDim = 128, kVocab = 151936, kPage = 64;

Int8Rows int8_rows(int n_rows, int n_cols) {
  const int n_chunks = (n_cols + 255) / 256;
  const auto n = static_cast<size_t>(n_rows * n_chunks);
  return {device<int8_t>(256 * n), device<float>(8 * n), device<float>(8 * n), n_chunks};
}

// The experts of all layers, one behind the other in slots; gate and up of one type.
struct Slots {
  Slots(Type gate_up_type, Type down_type)
      : gate_up(gate_up_type),
        down(down_type),
        up_at(matrix_bytes(gate_up, kModel, kFf)),
        down_at(2 * up_at),
        stride((down_at + matrix_bytes(down, kFf, kModel) + 255) / 256 * 256) {}

  void fill(int n_layers) {
    const auto n = static_cast<size_t>(n_layers * kExperts);
    data = matrices(gate_up, kModel, 2 * kFf, n, stride);
    uint8_t* const one = matrices(down, kFf, kModel, 1, matrix_bytes(down, kFf, kModel));
    for (size_t i = 0; i < n; ++i) {
      CHECK_CUDA(cudaMemcpyAsync(data + i * stride + down_at, one, matrix_bytes(down, kFf, kModel),
                                 cudaMemcpyDeviceToDevice));
    }
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaFree(one));
  }
  const uint8_t* slot(int layer, int expert) const {
    return data + static_cast<size_t>(layer * kExperts + expert) * stride;
  }

  Type gate_up, down;
  size_t up_at, down_at, stride;
  uint8_t* data = nullptr;
};

// gate_up and down alone: n_rows rows that all choose other experts.
void bench_experts(GraphTimer& time, double plain, Type type, int n_rows) {
  constexpr int kRuns = 16;
  const Launch how = launch_on(time.stream());
  Slots slots(type, type);
  slots.fill(kRuns);
  const int n_groups = n_rows * kUsed;
  std::vector<ExpertGroup> groups(static_cast<size_t>(kRuns * n_groups));
  for (int i = 0; i < kRuns * n_groups; ++i) {
    ExpertGroup& group = groups[static_cast<size_t>(i)];
    const int slot = i % n_groups;
    const uint8_t* const at = slots.slot(i / n_groups, slot * 37 % kExperts);
    group.gate = at;
    group.up = at + slots.up_at;
    group.down = at + slots.down_at;
    group.n_pairs = 1;
    group.row[0] = static_cast<int16_t>(slot / kUsed);
    group.slot[0] = static_cast<int16_t>(slot);
  }
  ExpertGroup* const list = device(groups);
  int32_t* const n = device(std::vector<int32_t>{n_groups});
  const Int8Rows a = int8_rows(n_rows, kModel), h = int8_rows(n_rows * kUsed, kFf);
  float* const weights = device<float>(static_cast<size_t>(n_groups));
  float* const x = device<float>(static_cast<size_t>(n_rows * kModel));
  const ExpertShape shape{type, type, kModel, kFf, 0, kUsed};
  const double us_up = time([&] {
                         for (int i = 0; i < kRuns; ++i) {
                           gate_up({shape, n_rows, {n, list + i * n_groups}, a, h}, how);
                         }
                       }) /
                       kRuns;
  const double us_down =
      time([&] {
        for (int i = 0; i < kRuns; ++i) {
          down({shape, n_rows, {n, list + i * n_groups}, h, weights, nullptr, nullptr, x}, how);
        }
      }) /
      kRuns;
  const double up_bytes = 2.0 * n_groups * static_cast<double>(slots.up_at);
  const double down_bytes = n_groups * static_cast<double>(matrix_bytes(type, kFf, kModel));
  std::printf("| %s | %d | gate_up | %.2f | %.0f | %.1f %% |\n",
              std::string(type_name(type)).c_str(), n_groups, us_up, up_bytes / us_up / 1e3,
              up_bytes / us_up / 1e3 / plain * 100);
  std::printf("| %s | %d | down | %.2f | %.0f | %.1f %% |\n", std::string(type_name(type)).c_str(),
              n_groups, us_down, down_bytes / us_down / 1e3,
              down_bytes / us_down / 1e3 / plain * 100);
  std::fflush(stdout);
  CHECK_CUDA(cudaFree(slots.data));
}

// A projection alone: x += W in.
void bench_project(GraphTimer& time, double plain, Type type, const char* what, int n_cols,
                   int n_out, int n_rows) {
  const Launch how = launch_on(time.stream());
  const size_t n_bytes = matrix_bytes(type, n_cols, n_out);
  const int n_runs = static_cast<int>(std::max<size_t>(2, (size_t{512} << 20) / n_bytes));
  uint8_t* const w = matrices(type, n_cols, n_out, static_cast<size_t>(n_runs), n_bytes);
  const Int8Rows in = int8_rows(n_rows, n_cols);
  float* const x = device<float>(static_cast<size_t>(n_rows) * static_cast<size_t>(n_out));
  const double us = time(
                        [&] {
                          for (int i = 0; i < n_runs; ++i) {
                            ProjectAdd p;
                            p.in = in;
                            p.n_rows = n_rows;
                            p.n_cols = n_cols;
                            p.weight = {type, w + static_cast<size_t>(i) * n_bytes, n_out, nullptr};
                            p.x = x;
                            project_add(p, how);
                          }
                        },
                        5) /
                    n_runs;
  std::printf("| %s | %d | %s | %.2f | %.0f | %.1f %% |\n", std::string(type_name(type)).c_str(),
              n_rows, what, us, static_cast<double>(n_bytes) / us / 1e3,
              static_cast<double>(n_bytes) / us / 1e3 / plain * 100);
  std::fflush(stdout);
  CHECK_CUDA(cudaFree(w));
  CHECK_CUDA(cudaFree(x));
}

// All that a token needs.
class Model {
 public:
  Model()
      : even_(Type::q4_k, Type::q4_k),
        odd_(Type::q4_k, Type::q6_k),
        qkv_bytes_(matrix_bytes(Type::q4_k, kModel, kQkv)),
        v_bytes_(matrix_bytes(Type::q6_k, kModel, kKvHeads * kHeadDim)),
        out_bytes_(matrix_bytes(Type::q4_k, kHeads * kHeadDim, kModel)) {
    even_.fill(kLayers / 2);
    odd_.fill(kLayers / 2);
    w_qkv_ = matrices(Type::q4_k, kModel, kQkv, kLayers, qkv_bytes_);
    w_v_ = matrices(Type::q6_k, kModel, kKvHeads * kHeadDim, kLayers, v_bytes_);
    w_out_ = matrices(Type::q4_k, kHeads * kHeadDim, kModel, kLayers, out_bytes_);
    w_logits_ = matrices(Type::q6_k, kModel, kVocab, 1, matrix_bytes(Type::q6_k, kModel, kVocab));
    router_ = device(random_floats(size_t{kLayers} * kExperts * kModel, 1, 0.05f));
    norms_ = device(random_floats(kModel, 2, 0.1f, 1.0f));
    std::vector<const uint8_t*> table;
    for (int l = 0; l < kLayers; ++l) {
      for (int e = 0; e < kExperts; ++e) table.push_back(slots(l).slot(l / 2, e));
    }
    table_ = device(table);
  }

  // Room for a step of n_rows rows, each of a sequence of its own at `position`.
  void set_step(int n_rows, int position) {
    n_rows_ = n_rows;
    const int n_pages = position / kPage + 1;
    const auto rows = static_cast<size_t>(n_rows);
    std::vector<int32_t> positions(rows, position), sequences(rows), pages;
    for (size_t r = 0; r < rows; ++r) sequences[r] = static_cast<int32_t>(r);
    for (int i = 0; i < n_rows * n_pages; ++i) pages.push_back(i);
    positions_ = device(positions);
    sequences_ = device(sequences);
    pages_ = device(pages);
    n_pages_ = n_pages;
    kv_bytes_ = pages.size() * kKvHeads * kPage * kHeadDim * 2;
    if (kv_) CHECK_CUDA(cudaFree(kv_));
    kv_ = device<uint8_t>(2 * kLayers * kv_bytes_);
    angles_ = device(random_floats(rows * kHeadDim, 3, 1.0f));
    x0_ = device(random_floats(rows * kModel, 4, 1.0f));
    x_ = device<float>(rows * kModel);
    qkv_ = device<float>(rows * kQkv);
    a_ = int8_rows(n_rows, kModel);
    att_ = int8_rows(n_rows, kHeads * kHeadDim);
    h_ = int8_rows(n_rows * kUsed, kFf);
    experts_ = device<int32_t>(rows * kUsed);
    weights_ = device<float>(rows * kUsed);
    scores_ = device<float>(rows * (kExperts + 1));
    met_ = device<unsigned long long>(rows * kHeads);
    n_done_ = device<unsigned>(1);
    lists_ = {device<int32_t>(kLayers), device<ExpertGroup>(kLayers * (rows * kUsed + 1))};
    partials_ = device<float>(static_cast<size_t>(attend_partials(n_rows, kHeads, kHeadDim)));
    logits_ = device<float>(rows * kVocab);
  }

  enum Part { in = 1, att = 2, add = 4, router = 8, up = 16, dn = 32, out = 64, layer = 63 };
  void enqueue(int parts, const Launch& how) const {
    CHECK_CUDA(cudaMemcpyAsync(x_, x0_, static_cast<size_t>(n_rows_) * kModel * 4,
                               cudaMemcpyDeviceToDevice, how.stream));
    for (int l = 0; l < kLayers; ++l) enqueue_layer(parts, l, how);
    if (!(parts & out)) return;
    Logits p;
    p.x = x_;
    p.norm = norms_;
    p.eps = 1e-6f;
    p.n_rows = n_rows_;
    p.n_cols = kModel;
    p.weight = {Type::q6_k, w_logits_, kVocab, nullptr};
    p.logits = logits_;
    p.a = a_;
    logits(p, how);
  }

  bool adds_scores = true;

 private:
  static constexpr int kQkv = (kHeads + 2 * kKvHeads) * kHeadDim;
  const Slots& slots(int layer) const { return layer % 2 ? odd_ : even_; }
  ExpertList list(int layer) const {
    return {lists_.n_groups + layer, lists_.groups + layer * (n_rows_ * kUsed + 1)};
  }

  // As the engine does it: a single row's scores are added up by project_add, unless it or the
  // router is measured alone, or both ways are compared.
  void enqueue_layer(int parts, int l, const Launch& how) const {
    const bool by_sums = adds_scores && n_rows_ == 1 && (parts & add) && (parts & router);
    if (parts & in) {
      ProjectIn p;
      p.x = x_;
      p.norm = norms_;
      p.eps = 1e-6f;
      p.n_rows = n_rows_;
      p.n_cols = kModel;
      const uint8_t* w = w_qkv_ + static_cast<size_t>(l) * qkv_bytes_;
      const Type v_type = l % 2 ? Type::q6_k : Type::q4_k;  // as Q4_K_M has them
      for (const int n : {kHeads * kHeadDim, kKvHeads * kHeadDim, kKvHeads * kHeadDim}) {
        const Type type = p.n_weights == 2 ? v_type : Type::q4_k;
        p.weights[p.n_weights++] = {type, w, n, nullptr, p.out_stride};
        p.out_stride += n;
        w += matrix_bytes(Type::q4_k, kModel, n);
        if (p.n_weights == 2 && v_type == Type::q6_k) w = w_v_ + static_cast<size_t>(l) * v_bytes_;
      }
      p.out = qkv_;
      p.a = a_;
      project_in(p, how);
    }
    if (parts & att) attend(attention(l), how);
    if (parts & add) {
      ProjectAdd p;
      p.in = att_;
      p.n_rows = n_rows_;
      p.n_cols = kHeads * kHeadDim;
      p.weight = {Type::q4_k, w_out_ + static_cast<size_t>(l) * out_bytes_, kModel, nullptr};
      p.x = x_;
      const Route r = routing(l);
      if (by_sums) p.scores = {sums_, r.norm, r.d_model, r.type, r.weight, nullptr, r.n_experts};
      project_add(p, how);
    }
    if ((parts & router) && !by_sums) route(routing(l), how);
    const ExpertShape shape{Type::q4_k, slots(l).down, kModel, kFf, 0, kUsed};
    Ranking ranking = ranking_of(routing(l));
    if (by_sums) ranking.sums = sums_, ranking.x = x_, ranking.norm = norms_, ranking.eps = 1e-6f;
    if (parts & up) gate_up({shape, n_rows_, list(l), a_, h_, ranking}, how);
    Down last{shape, n_rows_, list(l), h_, weights_, nullptr, nullptr, x_};
    if (by_sums) last.sums = sums_, last.n_sums = kExperts + 1;
    if (parts & dn) down(last, how);
  }

  Attend attention(int l) const {
    Attend p;
    p.qkv = qkv_;
    p.n_rows = n_rows_;
    p.n_heads = kHeads;
    p.n_kv_heads = kKvHeads;
    p.head_dim = kHeadDim;
    p.head_norm = NormOfHeads::per_head;
    p.q_norm = p.k_norm = norms_;
    p.eps = 1e-6f;
    p.angles = angles_;
    p.n_pairs = kHeadDim / 2;
    p.positions = positions_;
    p.sequences = sequences_;
    p.page_table = pages_;
    p.table_stride = n_pages_;
    p.page_shift = 6;
    p.max_length = n_pages_ * kPage;
    p.k = kv_ + static_cast<size_t>(2 * l) * kv_bytes_;
    p.v = p.k + kv_bytes_;
    p.out_int8 = att_;
    p.partials = partials_;
    p.met = met_;
    return p;
  }

  Route routing(int l) const {
    Route p;
    p.x = x_;
    p.norm = norms_;
    p.eps = 1e-6f;
    p.n_rows = n_rows_;
    p.d_model = kModel;
    p.weight = router_ + static_cast<size_t>(l) * kExperts * kModel;
    p.n_experts = kExperts;
    p.n_used = kUsed;
    p.renormalize = true;
    p.ranks = false;
    p.table = table_ + static_cast<size_t>(l) * kExperts;
    p.up_at = static_cast<int64_t>(slots(l).up_at);
    p.down_at = static_cast<int64_t>(slots(l).down_at);
    p.a = a_;
    p.experts = experts_;
    p.weights = weights_;
    p.list = list(l);
    p.scores = scores_;
    p.n_done = n_done_;
    return p;
  }

  Slots even_, odd_;
  size_t qkv_bytes_, v_bytes_, out_bytes_, kv_bytes_ = 0;
  uint8_t *w_qkv_ = nullptr, *w_v_ = nullptr, *w_out_ = nullptr, *w_logits_ = nullptr,
          *kv_ = nullptr;
  const uint8_t** table_ = nullptr;
  int n_rows_ = 0, n_pages_ = 0;
  int32_t *positions_ = nullptr, *sequences_ = nullptr, *pages_ = nullptr, *experts_ = nullptr;
  float *router_ = nullptr, *norms_ = nullptr, *angles_ = nullptr, *x0_ = nullptr, *x_ = nullptr,
        *qkv_ = nullptr, *weights_ = nullptr, *scores_ = nullptr, *partials_ = nullptr,
        *logits_ = nullptr;
  Int8Rows a_, att_, h_;
  ExpertList lists_;  // of all layers
  unsigned long long* met_ = nullptr;
  unsigned* n_done_ = nullptr;
  uint64_t* sums_ = device(std::vector<uint64_t>(kExperts + 1));
};

void bench_tokens(GraphTimer& time, Model& model, int n_rows, int position) {
  Launch how = launch_on(time.stream());
  model.set_step(n_rows, position);
  const auto us = [&](int parts) { return time([&] { model.enqueue(parts, how); }); };
  const double token = us(Model::layer | Model::out), layers = us(Model::layer);
  std::printf("| %d | %d | %.1f | %.2f | %.0f |", n_rows, position + 1, token, layers / kLayers,
              n_rows * 1e6 / token);
  for (const int part : {Model::in, Model::att, Model::add, Model::router, Model::up, Model::dn}) {
    std::printf(" %.2f |", us(part) / kLayers);
  }
  model.adds_scores = false;
  std::printf(" %.2f |", us(Model::layer) / kLayers);
  model.adds_scores = true;
  how.overlaps = false;
  std::printf(" %.2f |\n", us(Model::layer) / kLayers);
  std::fflush(stdout);
}

// Only the table of layers, or that and two types, or all.
enum class Extent { layers, quick, all };

void run_all(Extent extent) {
  const bool quick = extent != Extent::all;
  GraphTimer time;
  const size_t n_bytes = size_t{2} << 30;
  auto* const memory = device<uint4>(n_bytes / 16);
  unsigned* const sink = device<unsigned>(1);
  const int n_sms = launch_on(nullptr).n_sms;
  const double plain =
      static_cast<double>(n_bytes) / 1e3 /
      time([&] { plain_reads<<<n_sms * 8, 256, 0, time.stream()>>>(memory, n_bytes / 16, sink); });
  CHECK_CUDA(cudaFree(memory));
  std::printf("Plain reads: %.0f GB/s.\n\n", plain);

  Model model;
  std::printf(
      "| rows | depth | us a token | us a layer | tokens/s | project_in | attend | "
      "project_add | route | gate_up | down | layer, scores by a kernel | layer without overlap |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  bench_tokens(time, model, 1, 127);
  bench_tokens(time, model, 1, 255);
  bench_tokens(time, model, 1, 1023);
  bench_tokens(time, model, 1, 8191);
  bench_tokens(time, model, 8, 127);
  if (!quick) bench_tokens(time, model, 2, 127);
  if (!quick) bench_tokens(time, model, 16, 127);
  if (extent == Extent::layers) return;

  std::printf(
      "\n| type | experts | kernel | us | GB/s | of plain reads |\n|---|---|---|---|---|---|\n");
  for (const Type type : quant::supported_types()) {
    if (quant::is_float(type)) continue;
    if (quick && type != Type::q4_k && type != Type::q6_k) continue;
    for (const int n_rows : {1, 8}) bench_experts(time, plain, type, n_rows);
  }
  std::printf(
      "\n| type | rows | kernel | us | GB/s | of plain reads |\n|---|---|---|---|---|---|\n");
  for (const Type type : quant::supported_types()) {
    if (quant::is_float(type)) continue;
    if (quick && type != Type::q4_k && type != Type::q6_k) continue;
    bench_project(time, plain, type, "qkv, 2048 x 5120", 2048, 5120, 1);
    bench_project(time, plain, type, "out, 4096 x 2048", 4096, 2048, 1);
    for (const int n_rows : {1, 8}) {
      bench_project(time, plain, type, "logits, 2048 x 151936", 2048, 151936, n_rows);
    }
  }
}

}  // namespace
}  // namespace sluice::backend::cuda

int main(int argc, char** argv) {
  return sluice::bench::bench_main([&] {
    using sluice::backend::cuda::Extent;
    const std::string flag = argc > 1 ? argv[1] : "";
    sluice::backend::cuda::run_all(flag == "--layers"  ? Extent::layers
                                   : flag == "--quick" ? Extent::quick
                                                       : Extent::all);
    return 0;
  });
}
