// See planner_weigh.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/planner_weigh.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace sluice::policy {
namespace {

constexpr SlotLimit kNoLimit{std::numeric_limits<uint64_t>::max(),
                             std::numeric_limits<int64_t>::max()};
constexpr SlotLimit kNoSlots{0, 0};

int64_t sum(const std::vector<int>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

[[noreturn]] void refuse(const std::string& text) { throw Error(Errc::bad_request, text); }

void check_numbers(const Wishes& w) {
  if (w.n_ctx < 0 || w.prefill_chunk < 0 || w.n_sequences < 1 || w.n_sequences > 1024) {
    refuse(cat(w.n_sequences, " sequences of ", w.n_ctx, " tokens, computed ", w.prefill_chunk,
               " at a time; expected 1 to 1024 sequences, and tokens in chunks of 1 or more"));
  }
  if (w.n_gpu_layers.value_or(0) < 0 || w.n_cpu_moe < 0 || w.n_pinned < 0) {
    refuse("a negative number of layers; expected 0 or more");
  }
  if (w.n_slots && w.moe != MoeWish::automatic && w.moe != MoeWish::cache) {
    refuse("--cache-slots asks for an expert cache, --moe for none; expected one of them");
  }
}

void check_kv_types(const ModelShape& model, const Wishes& w) {
  for (const LayerShape& layer : model.layers) {
    for (const auto& [type, dim] :
         {std::pair(w.k_type, layer.k_head_dim), std::pair(w.v_type, layer.v_head_dim)}) {
      if (dim % kv_block_elems(type) == 0) continue;
      refuse(cat("a KV cache of ", kv_type_name(type), " needs heads of a multiple of ",
                 kv_block_elems(type), " values; this model's have ", dim, "; use f16"));
    }
  }
}

}  // namespace

Scales::Scales(const ModelShape& model, const Hardware& hardware, const Wishes& wishes,
               const LocalityCurve& locality)
    : model_(model), hardware_(hardware), wishes_(wishes), locality_(locality) {
  check_numbers(wishes);
  check_kv_types(model, wishes);
  vram_budget_ = std::min(hardware.vram_free, wishes.vram_bytes.value_or(hardware.vram_free));
  const int wanted = wishes.n_gpu_layers.value_or(model.n_layers());
  n_gpu_layers_ = vram_budget_ == 0 ? 0 : std::min(wanted, model.n_layers());
  rules_ = slot_rules(model, wishes, n_gpu_layers_);
  most_slots_ = share_out(model, rules_, kNoLimit);
  pinned_slots_ = share_out(model, rules_, kNoSlots);
  if (wishes.n_slots && n_gpu_layers_ > 0) {
    const int64_t least = std::max<int64_t>(sum(pinned_slots_), 1);
    if (*wishes.n_slots < least || *wishes.n_slots > sum(most_slots_)) {
      refuse(cat("--cache-slots ", *wishes.n_slots, "; expected ", least, " to ", sum(most_slots_),
                 ", the experts that may be in VRAM"));
    }
  }
}

// What the GPU, -ngl and --n-cpu-moe leave no room for.
std::string Scales::excluded_by_place(Mode mode) const {
  if (mode == Mode::cpu_only) return wishes_.n_gpu_layers.value_or(0) > 0 ? "-ngl" : "";
  if (!hardware_.has_gpu()) return "there is no GPU";
  if (vram_budget_ == 0) return "--vram 0";
  if (n_gpu_layers_ == 0) return "-ngl 0";
  int64_t n_experts = 0;
  for (const LayerShape& layer : model_.layers) n_experts += layer.n_experts;
  const char* const wish = wishes_.n_cpu_moe > 0 ? "--n-cpu-moe" : "-ngl";
  const bool all_on_gpu = mode == Mode::all_resident || mode == Mode::streamed;
  if (all_on_gpu && sum(most_slots_) < n_experts) return wish;
  const bool has_slots = mode == Mode::expert_cache || mode == Mode::streamed;
  if (has_slots && sum(most_slots_) == 0) return n_experts > 0 ? wish : "the model has no experts";
  return "";
}

std::string Scales::excluded(Mode mode) const {
  if (const std::string place = excluded_by_place(mode); !place.empty()) return place;
  if (mode == Mode::cpu_only && sum(pinned_slots_) > 0) return "--pin-layers";
  if (wishes_.n_slots && mode != Mode::expert_cache) return "--cache-slots";
  switch (wishes_.moe) {
    case MoeWish::automatic:
      break;
    case MoeWish::cache:
      return mode == Mode::expert_cache ? "" : "--moe cache";
    case MoeWish::gpu:
      return mode == Mode::all_resident || mode == Mode::streamed ? "" : "--moe gpu";
    case MoeWish::cpu:
      return mode == Mode::cpu_experts || mode == Mode::cpu_only ? "" : "--moe cpu";
  }
  return "";
}

Placement Scales::placement(int n_gpu_layers, std::vector<int> n_slots, double link_share) const {
  return {n_gpu_layers, std::move(n_slots), hardware_.vram_overhead, link_share,
          hardware_.pin_limit};
}

// Prices and times a placement, and says whether it fits.
Candidate Scales::candidate(Mode mode, const Workload& work, Placement place) const {
  Candidate c;
  c.price = price(model_, work, place);
  Forecast& f = c.forecast;
  f = {.mode = mode,
       .possible = true,
       .obstacle = "",
       .n_gpu_layers = place.n_gpu_layers,
       .n_slots = sum(place.n_slots),
       .link_share = place.link_share,
       .vram_bytes = c.price.vram.total(),
       .host_bytes = c.price.host.total(),
       .speed = predict(model_, hardware_, work, place, locality_)};
  const auto require = [&](uint64_t need, uint64_t have, std::string_view memory) {
    if (need <= have) return;
    f.possible = false;
    f.obstacle += cat(f.obstacle.empty() ? "needs " : " and ", format_bytes(need), " of ", memory,
                      " where ", format_bytes(have), " are free");
  };
  require(f.vram_bytes, vram_budget_, "VRAM");
  require(f.host_bytes, hardware_.ram_free, "RAM");
  // Without these no step runs; without a ring or foresight it is slower.
  const PinnedBytes& pinned = c.price.pinned;
  const uint64_t needed = pinned.own() - pinned.ring - pinned.foresight;
  const uint64_t experts = place.link_share > 0.0 ? c.price.host.experts : 0;
  require(needed + experts, hardware_.pin_limit, "RAM that the GPU can read");
  c.place = std::move(place);
  return c;
}

// As many slots as were wished for, or as there is room for.
Placement Scales::with_slots(const Workload& work, double link_share) const {
  const uint64_t base = price(model_, work, placement(n_gpu_layers_, no_slots())).vram.total();
  const uint64_t room = vram_budget_ > base ? vram_budget_ - base : 0;
  const SlotLimit limit = wishes_.n_slots ? SlotLimit{kNoLimit.n_bytes, *wishes_.n_slots}
                                          : SlotLimit{room, kNoLimit.n_slots};
  return placement(n_gpu_layers_, share_out(model_, rules_, limit), link_share);
}

// At least one slot for every layer, unless fewer were wished for. A dense model's layers are in
// VRAM or not, and any of them is worth its slot.
Candidate Scales::with_cache(const Workload& work) const {
  Candidate c = candidate(Mode::expert_cache, work, with_slots(work, 0.0));
  if (!c.forecast.possible) return c;
  const bool is_enough = wishes_.n_slots || (model_.is_dense && c.forecast.n_slots > 0);
  for (size_t i = 0; i < most_slots_.size() && !is_enough; ++i) {
    if (most_slots_[i] == 0 || c.place.n_slots[i] > 0) continue;
    c.forecast.possible = false;
    c.forecast.obstacle =
        cat("has room for ", c.forecast.n_slots, " experts in VRAM, less than one for every layer");
    return c;
  }
  Candidate split = candidate(Mode::expert_cache, work, with_best_split(work, c.place));
  return split.forecast.possible ? split : c;
}

// Seventeen shares are weighed, not the one that the rates of link and CPU give: what either takes
// to begin counts as much where a layer misses one or two.
Placement Scales::with_best_split(const Workload& work, Placement place) const {
  const auto speed = [&](double link_share) {
    place.link_share = link_share;
    return predict(model_, hardware_, work, place, locality_).decode;
  };
  double best = 0.0, most = kSplitGain * speed(0.0);
  for (int i = 1; i < kSplits; ++i) {
    const double share = static_cast<double>(i) / kSplits;
    if (const double decode = speed(share); decode > most) most = decode, best = share;
  }
  place.link_share = best;
  return place;
}

// The trunk does not fit: its first layers go to the CPU, as many as make the fastest step.
Candidate Scales::with_cpu_layers(const Workload& work) const {
  Candidate best;
  for (int n = n_gpu_layers_ - 1; n > 0; --n) {
    Candidate c = candidate(Mode::cpu_experts, work, placement(n, no_slots()));
    if (!c.forecast.possible) continue;
    if (!best.forecast.possible || c.forecast.speed.decode > best.forecast.speed.decode) {
      best = std::move(c);
    }
  }
  return best;
}

Candidate Scales::weigh(Mode mode, const Workload& work) const {
  switch (mode) {
    case Mode::all_resident:
      return candidate(mode, work, placement(n_gpu_layers_, most_slots_));
    case Mode::expert_cache:
      return with_cache(work);
    case Mode::streamed:
      return candidate(mode, work, with_slots(work, 1.0));
    case Mode::cpu_experts: {
      Candidate whole = candidate(mode, work, placement(n_gpu_layers_, pinned_slots_));
      const bool must_be_whole = wishes_.n_gpu_layers || sum(pinned_slots_) > 0;
      if (whole.forecast.possible || must_be_whole) return whole;
      Candidate split = with_cpu_layers(work);
      return split.forecast.possible ? split : whole;
    }
    case Mode::cpu_only:
      break;
  }
  return candidate(Mode::cpu_only, work, placement(0, no_slots()));
}

std::vector<Candidate> Scales::weigh(const Workload& work) const {
  std::vector<Candidate> all;
  for (int i = 0; i < kModes; ++i) {
    const Mode mode = static_cast<Mode>(i);
    Candidate c;
    if (mode == Mode::cpu_only || n_gpu_layers_ > 0) c = weigh(mode, work);
    c.forecast.mode = mode;
    if (const std::string wish = excluded(mode); !wish.empty()) {
      c.forecast.possible = false;
      c.forecast.obstacle = cat("is excluded: ", wish);
    }
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace sluice::policy
