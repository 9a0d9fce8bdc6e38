// What lives where: divides VRAM and RAM between trunk, KV cache and experts for a model on a
// machine, says what each way of running would cost and how fast it would be, and chooses one. A
// person's wishes are constraints. The same input gives the same plan.
//
// The trunk comes first, then the KV cache for the asked context; what is left holds experts, which
// are never booked to a layer. When not everything fits, it gives up in this order: KV
// precision (where that was allowed), expert slots, all slots (experts on the CPU), trunk layers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/plan/hardware.h"
#include "policy/plan/pricing.h"
#include "policy/plan/pricing_speed.h"

namespace sluice::policy {

enum class Mode {
  all_resident,  // every expert in VRAM
  expert_cache,  // VRAM holds the experts in use, the CPU computes the others, or most of them
  streamed,      // the same, but the GPU computes them all and reads the others over the link
  cpu_experts,   // the trunk on the GPU, at least in part, experts on the CPU
  cpu_only,
};
constexpr int kModes = 5;
std::string_view mode_name(Mode mode);  // "expert cache"
std::string_view mode_key(Mode mode);   // "expert_cache"

// gpu: all resident or streamed.
enum class MoeWish { automatic, cache, cpu, gpu };

struct Wishes {
  std::optional<uint64_t> vram_bytes;  // at most so much; more than is free is not there
  MoeWish moe = MoeWish::automatic;
  std::optional<int> n_gpu_layers;  // trunk layers on the GPU, the last ones; any more means all
  int n_cpu_moe = 0;                // the first layers' experts stay on the CPU
  int n_pinned = 0;                 // layers with all experts in VRAM: the first and the last with
                                    // experts, then upwards from the second; or
  std::vector<int> pinned;          // these
  std::optional<int64_t> n_slots;   // exactly so many
  int n_ctx = 0;                    // of each sequence; 0: default_context()
  int n_sequences = 1;
  int n_kept = 0;       // as Workload
  int n_kv_tokens = 0;  // as Workload
  KvType k_type = KvType::f16;
  KvType v_type = KvType::f16;
  bool may_quantise_kv = false;  // to q8_0, before experts leave VRAM
  int prefill_chunk = 0;         // 0: chosen, see kMostChunk
  bool mtp = false;              // hold the MTP blocks too
};

// The shares of its misses that an expert cache may read over the link: none, 1/17, 2/17 and so on.
// What a layer of up to 15 misses does changes at fractions with denominators up to 16
// (link_reads()), so none of these is on an edge.
constexpr int kSplits = 17;
// None unless another is predicted to be so many times as fast: less is noise, and without a split
// nothing of the host's needs to be pinned.
constexpr double kSplitGain = 1.01;

// A prompt's chunk that nobody asked for: kUsualChunk on the CPU alone. With a GPU it doubles from
// there, since experts that are not in VRAM cross the link once for every chunk, and kernels want
// many rows of an expert: up to kWideChunk where its scratch costs decoding no more than
// kChunkLoss, and on to kMostChunk where prompts are faster by kChunkGain each time.
constexpr int kWideChunk = 2048;
constexpr int kMostChunk = 8192;
constexpr double kChunkLoss = 0.02;
constexpr double kChunkGain = 1.05;

// Tokens of a context that nobody asked for: as trained, 4096 at most.
int default_context(int n_ctx_train);

struct LayerPlan {
  bool on_gpu = false;  // its trunk, KV cache and state
  bool pinned = false;
  bool cached = false;  // its experts may be in VRAM: no wish keeps them on the CPU
  int n_slots = 0;      // its share; layers of one size class may trade theirs
};

// Layers whose experts fit into the same slots.
struct SizeClass {
  uint64_t slot_bytes = 0;
  int n_layers = 0;
  int64_t n_experts = 0;
  int64_t n_slots = 0;
};

// A way of running, as it was weighed.
struct Forecast {
  Mode mode = Mode::cpu_only;
  bool possible = false;
  std::string obstacle;  // why not: what it needs and what there is, or the wish that excludes it
  int n_gpu_layers = 0;
  int64_t n_slots = 0;
  double link_share = 0.0;
  uint64_t vram_bytes = 0;
  uint64_t host_bytes = 0;
  Speed speed;                                       // at the work's forecast_depth()
  Speed at_start;                                    // of a text
  std::array<double, kWidths.size()> by_width = {};  // tokens/s verified, of one sequence
};

// How host experts are held so that the GPU can read them.
enum class HostHolding {
  pageable,    // nothing is held: the GPU never reads them
  registered,  // the mapped file, in place
  pinned,      // read once into pinned memory
};

struct Plan {
  Mode mode = Mode::cpu_only;
  Workload work;
  int n_gpu_layers = 0;
  double link_share = 0.0;  // of a layer's misses, what the GPU reads over the link
  uint64_t vram_budget = 0;
  uint64_t expert_budget = 0;  // of it, what trunk, KV cache and all else leave
  uint64_t ram_budget = 0;
  Price price;
  HostHolding holding = HostHolding::pageable;
  uint64_t held_bytes = 0;  // of the host's experts; the rest is pageable
  std::vector<LayerPlan> layers;
  std::vector<SizeClass> classes;          // smallest slots first; only layers with experts
  std::array<Forecast, kModes> forecasts;  // by Mode
  std::vector<std::string> concessions;    // what was given up, in order
  std::string reason;                      // for the mode

  const Forecast& forecast(Mode of) const { return forecasts[static_cast<size_t>(of)]; }
  const Forecast& forecast() const { return forecast(mode); }
  // Of a decode step, by prediction.
  double step_seconds() const { return work.decode_rows() / forecast().speed.decode; }
};

// Throws Errc::bad_request for wishes that contradict each other or the model, and
// Errc::out_of_memory, with the numbers, where no way of running fits.
Plan make_plan(const ModelShape& model, const Hardware& hardware, const Wishes& wishes,
               const LocalityCurve& locality = LocalityCurve::typical());

}  // namespace sluice::policy
