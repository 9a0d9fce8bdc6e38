// What a model costs in bytes, wherever its parts are placed. One function prices every byte; the
// planner searches with it and whoever allocates asks it again, so the two cannot disagree. Knows
// sizes only: no file, no tensor, no device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/expert_slot.h"
#include "base/step_memory.h"
#include "base/units.h"

namespace sluice::policy {

enum class KvType { f32, f16, bf16, q8_0, q4_0 };
std::string_view kv_type_name(KvType type);
// Values that share a scale, and so the least a head is a multiple of.
int kv_block_elems(KvType type);

// One layer. Its trunk is everything but the routed experts: attention or recurrence, norms,
// router, shared expert, or the dense network of a leading layer.
struct LayerShape {
  uint64_t trunk_bytes = 0;   // each tensor on a boundary of kTensorAlignment
  uint64_t trunk_elems = 0;   // weights in it: what a token multiplies
  uint64_t shared_bytes = 0;  // of the trunk: the shared expert, or the dense network

  // What a past token leaves behind, where the layer attends. Compressed keys and values (MLA) are
  // one head of keys.
  int n_kv_heads = 0;
  int k_head_dim = 0;
  int v_head_dim = 0;
  int window = 0;  // tokens a sliding layer looks back; 0: all

  uint64_t state_bytes = 0;   // of a recurrent layer, for one sequence
  uint64_t update_bytes = 0;  // what a token did to it

  int n_experts = 0;          // routed ones; 0 in a dense layer
  uint64_t expert_bytes = 0;  // of one: gate, up and down (slot_part_bytes), with their biases
  uint64_t expert_elems = 0;

  bool attends() const { return n_kv_heads > 0; }
};

struct ModelShape {
  std::string architecture;
  std::string name;
  int d_model = 0;
  int d_ff = 0;         // of one expert
  int d_ff_shared = 0;  // of the shared one
  int n_heads = 0;
  int n_rot = 0;  // values of a head that turn with its position
  int n_vocab = 0;
  int n_ctx_train = 0;
  int n_experts_used = 0;
  bool is_dense = false;  // each layer's network is its one expert, and every token uses it
  // f32 values that the trunk of the widest layer computes for one token: what its matrices put
  // out, and what attention hands to the last of them.
  uint64_t widest_row = 0;
  uint64_t mixed_cols = 0;  // of them, what attention or recurrence hands on

  std::vector<LayerShape> layers;
  std::vector<LayerShape> mtp;   // blocks that predict further tokens; held only where asked for
  uint64_t embedding_bytes = 0;  // read a row at a time, so it stays with the host
  uint64_t output_bytes = 0;     // output matrix and norm; the embedding again where it is tied
  uint64_t output_elems = 0;
  bool tied = false;

  int n_layers() const { return static_cast<int>(layers.size()); }
  uint64_t expert_bytes() const;  // of all experts of all layers
  uint64_t mtp_bytes() const;     // trunk and experts of the MTP blocks
};

// The model with its MTP blocks as further layers.
ModelShape with_mtp(ModelShape model);

// CUDA's context, its kernels, and the gaps between allocations. An estimate for drivers of 2026.
constexpr uint64_t kCudaBytes = 512 * kMiB;

// Speeds are predicted so far into a text, unless another depth is asked for.
constexpr int kForecastDepth = 2048;

// Tokens of a prompt that are computed together, unless the planner finds more of use.
constexpr int kUsualChunk = 512;

// What is asked of the model.
struct Workload {
  int n_ctx = 0;        // tokens each sequence can hold
  int n_sequences = 1;  // that are computed at the same time
  int n_kept = 0;       // further ones, held for texts that begin like them
  int n_kv_tokens = 0;  // that all of them hold together; 0: n_ctx of each that is computed
  KvType k_type = KvType::f16;
  KvType v_type = KvType::f16;
  int prefill_chunk = kUsualChunk;
  int depth = kForecastDepth;  // tokens before those whose speed is predicted

  int n_held() const { return n_sequences + n_kept; }
  int forecast_depth() const { return depth < n_ctx ? depth : n_ctx; }
  // Rows of the widest step: a prompt's chunk, or one token of every sequence.
  int max_rows() const { return prefill_chunk > n_sequences ? prefill_chunk : n_sequences; }
  // Rows of a decode step: one of every sequence, as far as they go into one submission.
  int decode_rows() const { return n_sequences < kNarrowRows ? n_sequences : kNarrowRows; }
};

// Where things are: the last n_gpu_layers layers and the output on the GPU, the others on the CPU.
struct Placement {
  int n_gpu_layers = 0;
  std::vector<int> n_slots;              // by layer: experts that VRAM can hold; 0 on the CPU
  uint64_t overhead_bytes = kCudaBytes;  // of VRAM, taken by nothing of ours: Hardware's
  double link_share = 0.0;  // of a layer's misses in decode, what the GPU reads over the link
  uint64_t pin_limit = std::numeric_limits<uint64_t>::max();  // Hardware's
};

// What may lie in either memory.
struct MemoryBytes {
  uint64_t trunk = 0;
  uint64_t output = 0;
  uint64_t kv = 0;
  uint64_t state = 0;
  uint64_t scratch = 0;
  uint64_t sum() const { return trunk + output + kv + state + scratch; }
};

struct VramBytes : MemoryBytes {
  uint64_t cuda = 0;
  uint64_t tables = 0;   // where each expert is
  uint64_t staging = 0;  // experts copied ahead of their layer
  uint64_t slots = 0;
  uint64_t total() const { return sum() + cuda + tables + staging + slots; }
};

// Host memory that the GPU reads and writes.
struct PinnedBytes {
  uint64_t mailbox = 0;
  uint64_t step_block = 0;
  uint64_t results = 0;  // logits and candidates on their way back
  uint64_t log = 0;      // what a step routed
  uint64_t waves = 0;  // what a prompt's layers tell of the experts they use, and where these come
  uint64_t foresight = 0;  // what layers tell of later ones; taken only where experts come ahead
  uint64_t ring = 0;       // through which experts come that are not registered
  uint64_t own() const { return mailbox + step_block + results + log + waves + foresight + ring; }

  uint64_t experts = 0;  // registered: of the GPU's layers, as many as the limit grants
  uint64_t total() const { return own() + experts; }
};

struct HostBytes : MemoryBytes {
  uint64_t experts = 0;  // of every layer that is not wholly in VRAM
  uint64_t embedding = 0;
  uint64_t pinned = 0;  // PinnedBytes::own()
  uint64_t total() const { return sum() + experts + embedding + pinned; }
};

// What VramBytes::scratch is made of.
struct ScratchBytes {
  uint64_t activations = 0;
  uint64_t step_block = 0;
  uint64_t pair_lists = 0;   // rows sorted by expert
  uint64_t expert_rows = 0;  // what the experts put out, before it is added up
  uint64_t partials = 0;     // of attention's splits
  uint64_t operations = 0;   // what else they keep
  uint64_t stream = 0;       // buffers through which a prompt's experts come
  uint64_t sum() const {
    return activations + step_block + pair_lists + expert_rows + partials + operations + stream;
  }
};

struct Price {
  VramBytes vram;
  ScratchBytes scratch;
  HostBytes host;
  PinnedBytes pinned;
};

constexpr uint64_t kTensorAlignment = 64;  // of every trunk tensor and every array of a step
constexpr int kStagingSlots = 8;
constexpr int kKvPageTokens = 64;
constexpr int kMaxLogitRows = 16;  // logits are computed so many rows at a time

// The memory one expert of the layer takes, in VRAM or in RAM.
using sluice::slot_bytes;
uint64_t slot_bytes(const LayerShape& layer);

// Keys and values of all sequences, in whole pages. A sliding layer gives pages back behind its
// window. Sums are capped at 1 PiB, more than any machine has, so that none overflows.
uint64_t kv_bytes(const LayerShape& layer, const Workload& work);

// Activations of the widest step: the trunk's rows, and the rows of the routed experts. Together no
// less than all arrays of a step, each on a boundary of kTensorAlignment.
uint64_t trunk_scratch_bytes(const ModelShape& model, int n_rows);
uint64_t expert_scratch_bytes(const ModelShape& model, int n_rows);
// What a device's operations keep besides: lists of pairs sorted by expert, the experts' output
// rows, the splits of attention.
OpsSize ops_size(const ModelShape& model, int n_rows);
// Two buffers, through which a prompt's experts stream that are not resident.
uint64_t stream_bytes(const ModelShape& model);

// The residency table: an address for each expert of each layer.
uint64_t table_bytes(const ModelShape& model);
// What varies from step to step: rows, their angles and their input, page tables.
StepBlockSize step_block_size(const ModelShape& model, const Workload& work);
MailboxSize mailbox_size(const ModelShape& model, const Workload& work);
// kStagingSlots of the largest expert's size.
uint64_t staging_bytes(const ModelShape& model);

PinnedBytes pinned_bytes(const ModelShape& model, const Workload& work, const Placement& place);
Price price(const ModelShape& model, const Workload& work, const Placement& place);

}  // namespace sluice::policy
