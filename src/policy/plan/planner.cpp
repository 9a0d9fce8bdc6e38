// See planner.h. This file decides: which workload, which mode, and why; planner_weigh.cpp says
// what there is to choose from.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "policy/plan/planner_weigh.h"

namespace sluice::policy {
namespace {

// What may be asked of the model, the most comfortable first.
std::vector<Workload> workloads(const ModelShape& model, const Wishes& wishes) {
  Workload work{.n_ctx = wishes.n_ctx,
                .n_sequences = wishes.n_sequences,
                .n_kept = wishes.n_kept,
                .n_kv_tokens = wishes.n_kv_tokens,
                .k_type = wishes.k_type,
                .v_type = wishes.v_type,
                .prefill_chunk = wishes.prefill_chunk};
  if (work.n_ctx == 0) work.n_ctx = default_context(model.n_ctx_train);
  std::vector<Workload> all = {work};
  const int block = kv_block_elems(KvType::q8_0);
  const bool fits_blocks = std::ranges::all_of(model.layers, [&](const LayerShape& layer) {
    return layer.k_head_dim % block == 0 && layer.v_head_dim % block == 0;
  });
  if (wishes.may_quantise_kv && fits_blocks) {
    for (KvType* type : {&work.k_type, &work.v_type}) {
      if (*type != KvType::q4_0) *type = KvType::q8_0;
    }
    all.push_back(work);
  }
  return all;
}

// The fastest that is possible; null where none is.
const Candidate* best(const std::vector<Candidate>& candidates) {
  const Candidate* best = nullptr;
  for (const Candidate& c : candidates) {
    if (!c.forecast.possible) continue;
    if (!best || c.forecast.speed.decode > best->forecast.speed.decode) best = &c;
  }
  return best;
}

// Whether this workload costs neither layers nor experts the place they were wished in.
bool gives_up_nothing(const Scales& scales, const Wishes& wishes, const Candidate& c) {
  if (c.forecast.n_gpu_layers != scales.n_gpu_layers()) return false;
  const bool wants_all_slots = wishes.moe != MoeWish::cpu && !wishes.n_slots;
  return !wants_all_slots || c.place.n_slots == scales.most_slots();
}

std::vector<std::string> concessions(const ModelShape& model, const Wishes& wishes,
                                     const Scales& scales, const Workload& work,
                                     const Candidate& c) {
  std::vector<std::string> out;
  if (work.k_type != wishes.k_type || work.v_type != wishes.v_type) {
    out.push_back(cat("KV cache of ", kv_type_name(KvType::q8_0)));
  }
  const auto& most = scales.most_slots();
  const auto n_most = std::accumulate(most.begin(), most.end(), int64_t{0});
  if (c.forecast.n_slots < n_most) {
    const bool on_gpu = c.forecast.n_slots > 0 || c.forecast.mode == Mode::streamed;
    const char* const what = model.is_dense ? " networks" : " experts";
    out.push_back(on_gpu ? cat("only ", c.forecast.n_slots, " of ", n_most, what, " in VRAM")
                         : cat("all", what, " on the CPU"));
  }
  if (c.forecast.n_gpu_layers < scales.n_gpu_layers()) {
    out.push_back(cat(model.n_layers() - c.forecast.n_gpu_layers, " of ", model.n_layers(),
                      " trunk layers on the CPU"));
  }
  return out;
}

std::string reason(const std::vector<Candidate>& all, const Candidate& c) {
  const Candidate* next = nullptr;
  std::string obstacles;
  for (const Candidate& other : all) {
    const Forecast& f = other.forecast;
    if (&other == &c) continue;
    if (!f.possible) {
      const bool by_wish = f.obstacle.starts_with("is excluded");
      if (!by_wish) obstacles += cat("; ", mode_name(f.mode), " ", f.obstacle);
    } else if (!next || f.speed.decode > next->forecast.speed.decode) {
      next = &other;
    }
  }
  if (!next) return cat("no other way is possible", obstacles);
  const double times = c.forecast.speed.decode / next->forecast.speed.decode;
  return cat("decodes ", std::round(times * 100.0) / 100.0, " times as fast as ",
             mode_name(next->forecast.mode), " by prediction", obstacles);
}

[[noreturn]] void refuse(const std::vector<Candidate>& candidates, int n_sequences) {
  std::string text;
  for (const Candidate& c : candidates) {
    text += cat(mode_name(c.forecast.mode), " ", c.forecast.obstacle, "; ");
  }
  throw Error(Errc::out_of_memory,
              cat("no way to run this model fits: ", text, "try a shorter context (-c), ",
                  n_sequences > 1 ? "fewer sequences (-np), " : "",
                  "a smaller KV type (-ctk q8_0 -ctv q8_0) or a smaller file"));
}

void add_places(Plan& plan, const ModelShape& model, const Scales& scales, const Candidate& c) {
  const int n_cpu_layers = model.n_layers() - plan.n_gpu_layers;
  for (int i = 0; i < model.n_layers(); ++i) {
    const auto layer = static_cast<size_t>(i);
    const bool on_gpu = i >= n_cpu_layers;
    plan.layers.push_back({.on_gpu = on_gpu,
                           .pinned = scales.pinned()[layer],
                           .cached = on_gpu && scales.allowed()[layer],
                           .n_slots = c.place.n_slots[layer]});
  }
  plan.classes = size_classes(model, c.place.n_slots);
}

void add_memory(Plan& plan, const Hardware& hardware, const Scales& scales, const Candidate& c) {
  plan.price = c.price;
  plan.vram_budget = scales.vram_budget();
  plan.ram_budget = hardware.ram_free;
  if (plan.n_gpu_layers == 0) return;
  plan.expert_budget = plan.vram_budget - (c.price.vram.total() - c.price.vram.slots);
  plan.held_bytes = c.price.host.experts > 0 ? c.price.pinned.experts : 0;
  if (plan.held_bytes == 0) return;
  plan.holding = hardware.registers_in_place ? HostHolding::registered : HostHolding::pinned;
}

Plan plan_for_chunk(const ModelShape& model, const Hardware& hardware, const Wishes& wishes,
                    const LocalityCurve& locality) {
  const Scales scales(model, hardware, wishes, locality);
  const std::vector<Workload> works = workloads(model, wishes);
  std::vector<Candidate> all;
  const Candidate* chosen = nullptr;
  Plan plan;
  for (const Workload& work : works) {
    plan.work = work;
    all = scales.weigh(work);
    chosen = best(all);
    if (chosen && gives_up_nothing(scales, wishes, *chosen)) break;
  }
  if (!chosen) refuse(all, wishes.n_sequences);
  plan.mode = chosen->forecast.mode;
  plan.n_gpu_layers = chosen->forecast.n_gpu_layers;
  plan.link_share = chosen->forecast.link_share;
  add_places(plan, model, scales, *chosen);
  add_memory(plan, hardware, scales, *chosen);
  Workload start = plan.work;
  start.depth = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    Forecast& forecast = plan.forecasts[i] = all[i].forecast;
    if (forecast.speed.decode == 0.0) continue;  // it was not weighed
    forecast.at_start = predict(model, hardware, start, all[i].place, locality);
    for (size_t w = 0; w < kWidths.size(); ++w) {
      forecast.by_width[w] =
          predict_rows(model, hardware, plan.work, all[i].place, locality, {kWidths[w], 1});
    }
  }
  plan.concessions = concessions(model, wishes, scales, plan.work, *chosen);
  plan.reason = reason(all, *chosen);
  return plan;
}

// Whether a wider chunk than `plan` has is worth its scratch; `first` has the usual one.
bool pays(const Plan& wider, const Plan& plan, const Plan& first) {
  const auto same = [](const Plan& a, const Plan& b) {
    return a.mode == b.mode && a.n_gpu_layers == b.n_gpu_layers && a.work.k_type == b.work.k_type &&
           a.work.v_type == b.work.v_type;
  };
  const Speed& speed = wider.forecast().speed;
  if (!same(wider, first)) return false;
  if (speed.decode < (1.0 - kChunkLoss) * first.forecast().speed.decode) return false;
  return wider.work.prefill_chunk <= kWideChunk ||
         speed.prefill >= kChunkGain * plan.forecast().speed.prefill;
}

Plan plan_whole(const ModelShape& model, const Hardware& hardware, Wishes wishes,
                const LocalityCurve& locality) {
  if (wishes.prefill_chunk != 0) return plan_for_chunk(model, hardware, wishes, locality);
  const int n_ctx = wishes.n_ctx > 0 ? wishes.n_ctx : default_context(model.n_ctx_train);
  wishes.prefill_chunk = std::clamp(n_ctx, 1, kUsualChunk);
  const Plan first = plan_for_chunk(model, hardware, wishes, locality);
  Plan plan = first;
  while (plan.n_gpu_layers > 0 && 2 * wishes.prefill_chunk <= std::min(n_ctx, kMostChunk)) {
    wishes.prefill_chunk *= 2;
    Plan wider;
    try {
      wider = plan_for_chunk(model, hardware, wishes, locality);
    } catch (const Error&) {
      break;  // a wish for slots or layers leaves no room for it
    }
    if (!pays(wider, plan, first)) break;
    plan = std::move(wider);
  }
  return plan;
}

}  // namespace

std::string_view mode_name(Mode mode) {
  constexpr std::string_view kNames[kModes] = {"all resident", "expert cache",
                                               "GPU experts, streamed", "CPU experts", "CPU only"};
  return kNames[static_cast<size_t>(mode)];
}

std::string_view mode_key(Mode mode) {
  constexpr std::string_view kKeys[kModes] = {"all_resident", "expert_cache", "streamed",
                                              "cpu_experts", "cpu_only"};
  return kKeys[static_cast<size_t>(mode)];
}

int default_context(int n_ctx_train) { return std::min(n_ctx_train, 4096); }

Plan make_plan(const ModelShape& model, const Hardware& hardware, const Wishes& wishes,
               const LocalityCurve& locality) {
  if (!wishes.mtp) return plan_whole(model, hardware, wishes, locality);
  return plan_whole(with_mtp(model), hardware, wishes, locality);
}

}  // namespace sluice::policy
