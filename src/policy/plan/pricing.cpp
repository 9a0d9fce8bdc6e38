// See pricing.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/pricing.h"

#include <algorithm>
#include <initializer_list>

#include "base/check.h"
#include "policy/cache/state_points.h"

namespace sluice::policy {
namespace {

struct KvFormat {
  std::string_view name;
  int block_elems;
  int block_bytes;
};

// By KvType.
constexpr KvFormat kFormats[] = {
    {"f32", 1, 4}, {"f16", 1, 2}, {"bf16", 1, 2}, {"q8_0", 32, 34}, {"q4_0", 32, 18}};

const KvFormat& format_of(KvType type) { return kFormats[static_cast<size_t>(type)]; }

constexpr uint64_t kKvAlignment = 64;
constexpr uint64_t kAddressBytes = 8;         // of an expert
constexpr uint64_t kScratchArrays = 16;       // of one step, at most: what their boundaries cost
constexpr uint64_t kStreamBytes = 64 * kMiB;  // of one of the two buffers, about
constexpr uint64_t kMost = kGiB * kMiB;       // 1 PiB

uint64_t product(std::initializer_list<int64_t> factors) {
  uint64_t out = 1;
  for (const int64_t factor : factors) {
    CHECK(factor >= 0);
    if (__builtin_mul_overflow(out, static_cast<uint64_t>(factor), &out) || out > kMost) {
      return kMost;
    }
  }
  return out;
}

// Positions that a layer keeps of one sequence.
int64_t kept_tokens(const LayerShape& layer, const Workload& work) {
  const auto in_pages = [](int64_t n) {
    return static_cast<int64_t>(round_up(static_cast<uint64_t>(n), kKvPageTokens));
  };
  const int64_t all = in_pages(work.n_ctx);
  if (layer.window == 0) return all;
  // The window of a chunk's first row and the chunk itself may begin in the middle of a page.
  const int64_t reach = int64_t{layer.window} + work.max_rows();
  return std::min(all, in_pages(reach) + kKvPageTokens);
}

// Rows of int8 blocks of 32 with two f32 scales each: what the experts read.
int64_t q8_row_bytes(int64_t n) { return n + n / 32 * 8; }

}  // namespace

std::string_view kv_type_name(KvType type) { return format_of(type).name; }
int kv_block_elems(KvType type) { return format_of(type).block_elems; }

uint64_t ModelShape::expert_bytes() const {
  uint64_t sum = 0;
  for (const LayerShape& layer : layers) {
    sum += static_cast<uint64_t>(layer.n_experts) * layer.expert_bytes;
  }
  return sum;
}

uint64_t ModelShape::mtp_bytes() const {
  uint64_t sum = 0;
  for (const LayerShape& block : mtp) {
    sum += block.trunk_bytes + static_cast<uint64_t>(block.n_experts) * block.expert_bytes;
  }
  return sum;
}

ModelShape with_mtp(ModelShape model) {
  model.layers.insert(model.layers.end(), model.mtp.begin(), model.mtp.end());
  model.mtp.clear();
  return model;
}

uint64_t slot_bytes(const LayerShape& layer) { return slot_bytes(layer.expert_bytes); }

uint64_t kv_bytes(const LayerShape& layer, const Workload& work) {
  int64_t n_tokens = work.n_sequences * kept_tokens(layer, work);
  if (work.n_kv_tokens > 0) {
    n_tokens = layer.window == 0 ? work.n_kv_tokens : std::min<int64_t>(n_tokens, work.n_kv_tokens);
  }
  const auto bytes = [&](KvType type, int head_dim) {
    const KvFormat& format = format_of(type);
    return round_up(
        product({n_tokens, layer.n_kv_heads, head_dim / format.block_elems, format.block_bytes}),
        kKvAlignment);
  };
  return bytes(work.k_type, layer.k_head_dim) + bytes(work.v_type, layer.v_head_dim);
}

uint64_t trunk_scratch_bytes(const ModelShape& model, int n_rows) {
  // x's norm (the experts' input in f32), and the widest projections; logits of a few rows.
  const int64_t row = int64_t{model.d_model} + static_cast<int64_t>(model.widest_row);
  return product({n_rows, row, 4}) + product({std::min(n_rows, kMaxLogitRows), model.n_vocab, 4}) +
         kScratchArrays * kTensorAlignment;
}

uint64_t expert_scratch_bytes(const ModelShape& model, int n_rows) {
  // The input in int8 and the shared expert's weight; of each chosen expert: id and weight, its
  // activation in f32 and int8.
  const int64_t chosen = 8 + 4 * int64_t{model.d_ff} + q8_row_bytes(model.d_ff);
  return product({n_rows, q8_row_bytes(model.d_model) + 4}) +
         product({n_rows, model.n_experts_used, chosen});
}

OpsSize ops_size(const ModelShape& model, int n_rows) {
  OpsSize size{.max_rows = n_rows,
               .d_model = model.d_model,
               .d_ff = std::max(model.d_ff, model.d_ff_shared),
               .n_heads = model.n_heads,
               .n_used = model.n_experts_used,
               .n_vocab = model.n_vocab};
  for (const LayerShape& layer : model.layers) {
    size.head_dim = std::max<int64_t>(size.head_dim, layer.k_head_dim);
    size.n_experts = std::max<int64_t>(size.n_experts, layer.n_experts);
    if (layer.state_bytes == 0) continue;
    size.mixed_cols = static_cast<int64_t>(model.mixed_cols);
    size.row_cols = static_cast<int64_t>(model.widest_row);
  }
  return size;
}

uint64_t stream_bytes(const ModelShape& model) {
  uint64_t most = 0;
  for (const LayerShape& layer : model.layers) {
    if (layer.n_experts == 0) continue;
    const uint64_t slot = slot_bytes(layer);
    const auto n_experts = static_cast<uint64_t>(layer.n_experts);
    const uint64_t n =
        std::clamp<uint64_t>(kStreamBytes / std::max<uint64_t>(slot, 1), 1, n_experts);
    most = std::max(most, 2 * n * slot);
  }
  return most;
}

uint64_t table_bytes(const ModelShape& model) {
  int n_experts = 0;
  for (const LayerShape& layer : model.layers) n_experts = std::max(n_experts, layer.n_experts);
  if (n_experts == 0) return 0;
  return round_up(product({model.n_layers(), n_experts, kAddressBytes}), kTensorAlignment) +
         landing_bytes(model.n_layers());
}

StepBlockSize step_block_size(const ModelShape& model, const Workload& work) {
  const int64_t n_pages = (int64_t{work.n_ctx} + kKvPageTokens - 1) / kKvPageTokens;
  const bool recurs = std::ranges::any_of(
      model.layers, [](const LayerShape& layer) { return layer.state_bytes > 0; });
  return {.max_rows = work.max_rows(),
          .d_model = model.d_model,
          .n_rot = model.n_rot,
          .table_size = work.n_held() * n_pages,
          .n_states = recurs ? work.n_held() : 0,
          .n_routes = int64_t{model.n_layers()} * model.n_experts_used};
}

MailboxSize mailbox_size(const ModelShape& model, const Workload& work) {
  const int64_t n_rows = std::min(work.max_rows(), kMailboxRows);
  return {.max_rows = n_rows, .max_pairs = n_rows * model.n_experts_used, .n_cols = model.d_model};
}

uint64_t staging_bytes(const ModelShape& model) {
  uint64_t most = 0;
  for (const LayerShape& layer : model.layers) most = std::max(most, slot_bytes(layer));
  return kStagingSlots * most;
}

// Layers are registered in their order; one that finds too little left is passed over.
PinnedBytes pinned_bytes(const ModelShape& model, const Workload& work, const Placement& place) {
  PinnedBytes out;
  if (place.n_gpu_layers == 0) return out;
  const int64_t n_rows = work.max_rows();
  const int64_t n_results = std::min<int64_t>(n_rows, kMaxLogitRows);
  out.mailbox = mailbox_bytes(mailbox_size(model, work));
  out.step_block = step_block_bytes(step_block_size(model, work));
  out.results = product({n_results, model.n_vocab, 4}) + product({n_results, kPickedRowBytes});
  out.log =
      routing_log_bytes(model.n_layers(), n_rows, model.n_experts_used) + lines(kLandingPlaces, 8);
  out.waves = wave_bytes(model.n_layers(), ops_size(model, 1).n_experts);
  bool has_host_experts = false;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    has_host_experts |= place.n_slots[i] < model.layers[i].n_experts;
  }
  if (!has_host_experts) return out;  // all are in VRAM, and nothing of them is held for the GPU
  uint64_t left = place.pin_limit - std::min(place.pin_limit, out.own());
  uint64_t largest = 0;  // expert that is not registered
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerShape& layer = model.layers[i];
    if (static_cast<int>(i) < model.n_layers() - place.n_gpu_layers) continue;  // the CPU's alone
    const uint64_t n_bytes = static_cast<uint64_t>(layer.n_experts) * slot_bytes(layer);
    if (n_bytes <= left) {
      out.experts += n_bytes;
      left -= n_bytes;
    } else {
      largest = std::max(largest, layer.expert_bytes);
    }
  }
  while (largest > 0 && out.ring < kRingSlots * largest && left >= largest) {
    out.ring += largest;
    left -= largest;
  }
  out.foresight = foresight_bytes(model.n_layers(), std::min<int64_t>(n_rows, kNarrowRows),
                                  model.n_experts_used, kStagingSlots);
  return out;
}

Price price(const ModelShape& model, const Workload& work, const Placement& place) {
  CHECK(place.n_gpu_layers >= 0 && place.n_gpu_layers <= model.n_layers());
  CHECK(place.n_slots.size() == model.layers.size());
  Price out;
  const int n_cpu_layers = model.n_layers() - place.n_gpu_layers;
  const bool uses_gpu = place.n_gpu_layers > 0;
  const auto n_sequences = static_cast<uint64_t>(work.n_held());
  const auto n_states = static_cast<uint64_t>(policy::n_states(work.n_held()));
  for (int i = 0; i < model.n_layers(); ++i) {
    const LayerShape& layer = model.layers[static_cast<size_t>(i)];
    const int n_slots = place.n_slots[static_cast<size_t>(i)];
    const bool on_gpu = i >= n_cpu_layers;
    CHECK(n_slots >= 0 && n_slots <= (on_gpu ? layer.n_experts : 0));
    (on_gpu ? out.vram.trunk : out.host.trunk) += layer.trunk_bytes;
    (on_gpu ? out.vram.kv : out.host.kv) += kv_bytes(layer, work);
    (on_gpu ? out.vram.state : out.host.state) +=
        n_states * layer.state_bytes + n_sequences * kLoggedUpdates * layer.update_bytes;
    out.vram.slots += static_cast<uint64_t>(n_slots) * slot_bytes(layer);
    if (n_slots < layer.n_experts) {
      out.host.experts += static_cast<uint64_t>(layer.n_experts) * slot_bytes(layer);
    }
  }
  out.vram.state = round_up(out.vram.state, kTensorAlignment);
  (uses_gpu ? out.vram.output : out.host.output) = model.output_bytes;
  out.host.embedding = model.tied && !uses_gpu ? 0 : model.embedding_bytes;

  const int n_rows = work.max_rows();
  const uint64_t trunk_scratch = trunk_scratch_bytes(model, n_rows);
  const uint64_t expert_scratch = expert_scratch_bytes(model, n_rows);
  const OpsSize ops = ops_size(model, n_rows);
  const bool host_experts = out.host.experts > 0;
  if (uses_gpu) {
    const OpsArrays arrays = ops_arrays(ops);
    out.vram.cuda = place.overhead_bytes;
    out.vram.tables = table_bytes(model);
    out.vram.staging = host_experts ? staging_bytes(model) : 0;
    out.scratch = {.activations = round_up(trunk_scratch + expert_scratch, kTensorAlignment),
                   .step_block = step_block_bytes(step_block_size(model, work)),
                   .pair_lists = pair_list_bytes(ops.max_rows, ops.n_used, ops.n_experts),
                   .expert_rows = arrays.outside,
                   .partials = arrays.partials,
                   .operations = arrays.sum() - arrays.outside - arrays.partials,
                   .stream = host_experts ? stream_bytes(model) : 0};
    out.vram.scratch = out.scratch.sum();
    out.pinned = pinned_bytes(model, work, place);
    out.host.pinned = out.pinned.own();
  } else {
    out.host.scratch += product({n_rows, model.d_model, 4});  // x, which the step block has else
  }
  if (n_cpu_layers > 0) out.host.scratch += trunk_scratch;
  if (host_experts) out.host.scratch += expert_scratch + expert_row_bytes(ops);
  return out;
}

}  // namespace sluice::policy
