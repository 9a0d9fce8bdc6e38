// See plan_table.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/plan_table.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "gguf/in_quotes.h"

namespace sluice::cli {
namespace {

using policy::Forecast;
using policy::Plan;

std::string_view holding_name(policy::HostHolding holding) {
  constexpr std::string_view kNames[] = {"pageable", "registered", "pinned"};
  return kNames[static_cast<size_t>(holding)];
}

int64_t n_experts(const Plan& plan) {
  int64_t n = 0;
  for (const auto& c : plan.classes) n += c.n_experts;
  return n;
}

// Names and sizes, in the order of the table; both outputs go through these lists.
using Lines = std::vector<std::pair<const char*, uint64_t>>;

Lines vram_lines(const policy::VramBytes& v) {
  return {{"trunk", v.trunk},   {"output", v.output},   {"kv", v.kv},
          {"state", v.state},   {"scratch", v.scratch}, {"cuda", v.cuda},
          {"tables", v.tables}, {"staging", v.staging}, {"slots", v.slots}};
}

Lines host_lines(const policy::HostBytes& h) {
  return {{"trunk", h.trunk},     {"output", h.output},   {"kv", h.kv},
          {"state", h.state},     {"scratch", h.scratch}, {"embedding", h.embedding},
          {"experts", h.experts}, {"pinned", h.pinned}};
}

Lines scratch_lines(const policy::ScratchBytes& s) {
  return {{"activations", s.activations},
          {"step block", s.step_block},
          {"pair lists", s.pair_lists},
          {"expert rows", s.expert_rows},
          {"partials", s.partials},
          {"operations", s.operations},
          {"stream", s.stream}};
}

Lines pinned_lines(const policy::PinnedBytes& p) {
  return {{"mailbox", p.mailbox}, {"step block", p.step_block}, {"results", p.results},
          {"log", p.log},         {"waves", p.waves},           {"foresight", p.foresight},
          {"ring", p.ring},       {"experts", p.experts}};
}

Json lines_json(const Lines& lines, uint64_t total) {
  Json json = {{"total_bytes", total}};
  for (const auto& [name, bytes] : lines) {
    std::string key = name;
    std::ranges::replace(key, ' ', '_');
    json[cat(key, "_bytes")] = bytes;
  }
  return json;
}

Json memory_json(const Lines& lines, uint64_t total, uint64_t budget) {
  Json json = lines_json(lines, total);
  json["budget_bytes"] = budget;
  return json;
}

Json hardware_json(const Machine& h) {
  return {{"gpu", h.gpu},
          {"vram_free_bytes", h.vram_free},
          {"vram_overhead_bytes", h.vram_overhead},
          {"ram_free_bytes", h.ram_free},
          {"gpu_gbps", h.gpu_gbps},
          {"link_gbps", h.link_gbps},
          {"cpu_gbps", h.cpu_gbps},
          {"cpu_gops", h.cpu_gops},
          {"cpu_kv_gbps", h.cpu_kv_gbps},
          {"cpu_kv_prompt_gbps", h.cpu_kv_prompt_gbps},
          {"handshake_us", h.handshake_us},
          {"experts_us", h.experts_us},
          {"launch_us", h.launch_us},
          {"readback_us", h.readback_us},
          {"sampling_us", h.sampling_us},
          {"copy_interference", h.copy_interference},
          {"graphs_mib", h.graphs_mib},
          {"n_cores", h.n_cores},
          {"gpu_source", h.gpu_source},
          {"ram_source", h.ram_source},
          {"cpu_source", h.cpu_source}};
}

Json gpus_json(const GpuList& list) {
  Json gpus = Json::array();
  for (const GpuInfo& gpu : list.gpus) {
    gpus.push_back({{"index", gpu.index},
                    {"name", gpu.name},
                    {"vram_bytes", gpu.vram_bytes},
                    {"vram_free_bytes", gpu.vram_free},
                    {"problem", gpu.problem}});
  }
  return gpus;
}

Json model_json(const PlannedModel& model) {
  const policy::ModelShape& s = model.session.shape;
  return {{"path", model.path},
          {"file_bytes", model.file_bytes},
          {"architecture", s.architecture},
          {"name", s.name},
          {"n_layers", s.n_layers()},
          {"n_experts_used", s.n_experts_used},
          {"is_dense", s.is_dense},
          {"expert_bytes", s.expert_bytes()},
          {"unused_mtp_bytes", s.mtp_bytes()}};
}

// 0: never tried.
double measured_decode(const PlannedModel& model, policy::Mode mode) {
  for (const engine::PlannedWay& way : model.session.ways) {
    if (way.plan.mode == mode) return way.measured;
  }
  return 0.0;
}

bool has_trials(const PlannedModel& model) {
  return std::ranges::any_of(model.session.ways,
                             [](const engine::PlannedWay& way) { return way.measured > 0.0; });
}

Json forecasts_json(const PlannedModel& model, const Plan& plan) {
  Json modes = Json::array();
  for (const Forecast& f : plan.forecasts) {
    Json mode = {{"mode", policy::mode_key(f.mode)}, {"possible", f.possible}};
    if (!f.possible) mode["obstacle"] = f.obstacle;
    if (f.speed.decode > 0.0) {
      mode["decode_tokens_per_second"] = f.speed.decode;
      mode["prefill_tokens_per_second"] = f.speed.prefill;
      mode["decode_tokens_per_second_at_start"] = f.at_start.decode;
      mode["prefill_tokens_per_second_at_start"] = f.at_start.prefill;
      if (const double measured = measured_decode(model, f.mode); measured > 0.0) {
        mode["measured_decode_tokens_per_second"] = measured;
      }
      mode["hit_rate"] = f.speed.hit_rate;
      Json by_rows;
      for (size_t i = 0; i < f.by_width.size(); ++i) {
        by_rows[std::to_string(policy::kWidths[i])] = f.by_width[i];
      }
      mode["verified_tokens_per_second_by_rows"] = std::move(by_rows);
      mode["n_gpu_layers"] = f.n_gpu_layers;
      mode["n_slots"] = f.n_slots;
      mode["link_share"] = f.link_share;
      mode["vram_bytes"] = f.vram_bytes;
      mode["host_bytes"] = f.host_bytes;
    }
    modes.push_back(std::move(mode));
  }
  return modes;
}

Json slots_json(const Plan& plan) {
  Json classes = Json::array();
  for (const auto& c : plan.classes) {
    classes.push_back({{"slot_bytes", c.slot_bytes},
                       {"n_layers", c.n_layers},
                       {"n_experts", c.n_experts},
                       {"n_slots", c.n_slots}});
  }
  Json layers = Json::array();
  for (const auto& layer : plan.layers) {
    layers.push_back(
        {{"on_gpu", layer.on_gpu}, {"pinned", layer.pinned}, {"n_slots", layer.n_slots}});
  }
  return {{"n_slots", plan.forecast().n_slots},
          {"n_experts", n_experts(plan)},
          {"classes", std::move(classes)},
          {"layers", std::move(layers)}};
}

void print_head(const PlannedModel& model) {
  const Machine& h = model.session.machine;
  const policy::ModelShape& s = model.session.shape;
  std::printf("%s: %s %s, %s\n", model.path.c_str(), gguf::in_quotes(s.architecture).c_str(),
              gguf::in_quotes(s.name).c_str(), format_bytes(model.file_bytes).c_str());
  if (s.is_dense) std::printf("  dense: the network of each layer is placed as its one expert\n");
  if (h.has_gpu()) {
    std::printf("  GPU   %s%s, %.0f GB/s, link %.3g GB/s (%s)\n",
                (h.gpu.empty() ? "" : h.gpu + " ").c_str(), format_bytes(h.vram_free).c_str(),
                h.gpu_gbps, h.link_gbps, h.gpu_source.c_str());
    std::printf(
        "  step  launch %.3g us, readback %.3g us, sampling %.3g us; a layer's experts %.3g us,"
        " its misses %.3g us\n",
        h.launch_us, h.readback_us, h.sampling_us, h.experts_us, h.handshake_us);
  } else if (model.gpus.gpus.empty()) {
    std::printf("  GPU   none (describe one with --hw)\n");
  }
  for (const GpuInfo& gpu : model.gpus.gpus) {
    std::printf("  GPU %d %s, %s of %s free%s%s\n", gpu.index, gpu.name.c_str(),
                format_bytes(gpu.vram_free).c_str(), format_bytes(gpu.vram_bytes).c_str(),
                gpu.problem.empty() ? "" : ": ", gpu.problem.c_str());
  }
  if (!model.device_reason.empty()) std::printf("  %s\n", model.device_reason.c_str());
  std::printf("  CPU   %s\n", describe_cpu(h).c_str());
  std::printf("  RAM   %s (%s)\n", format_bytes(h.ram_free).c_str(), h.ram_source.c_str());
}

// "VRAM  trunk 541 MiB + ... = 11.9 of 12.0 GiB", without what is nothing.
void print_memory(const char* name, const Lines& lines, uint64_t total, uint64_t budget) {
  std::printf("\n  %-8s %10s of %s\n", name, format_bytes(total).c_str(),
              format_bytes(budget).c_str());
  for (const auto& [line, bytes] : lines) {
    if (bytes > 0) std::printf("    %-10s %10s\n", line, format_bytes(bytes).c_str());
  }
}

// "    pinned: mailbox 1.2 MiB, step block 4 MiB, ...": what a line of the table sums up.
void print_parts(const char* what, const Lines& lines) {
  std::string text;
  for (const auto& [name, bytes] : lines) {
    if (bytes > 0) text += cat(text.empty() ? "" : ", ", name, " ", format_bytes(bytes));
  }
  std::printf("    %s: %s\n", what, text.c_str());
}

void print_slots(const Plan& plan, const char* what) {
  const int64_t all = n_experts(plan);
  std::printf("    room for %s: %s = %lld slots, %.0f %% of %lld %s\n", what,
              format_bytes(plan.expert_budget).c_str(),
              static_cast<long long>(plan.forecast().n_slots),
              100.0 * static_cast<double>(plan.forecast().n_slots) /
                  static_cast<double>(std::max<int64_t>(all, 1)),
              static_cast<long long>(all), what);
  for (const auto& c : plan.classes) {
    std::printf("      %lld slots of %s for %d layers\n", static_cast<long long>(c.n_slots),
                format_bytes(c.slot_bytes).c_str(), c.n_layers);
  }
}

void print_forecasts(const PlannedModel& model, const Plan& plan) {
  std::printf("\n    %-22s %12s %12s %6s %14s%s\n", "predicted", "decode t/s", "prefill t/s",
              "hits", "misses by link", has_trials(model) ? "  measured t/s" : "");
  for (const Forecast& f : plan.forecasts) {
    const std::string name(policy::mode_name(f.mode));
    const char* const mark = f.mode == plan.mode ? ">" : " ";
    if (!f.possible) {
      std::printf("  %s %-22s %s\n", mark, name.c_str(), f.obstacle.c_str());
      continue;
    }
    std::printf("  %s %-22s %12.1f %12.0f %5.0f%% %13.0f%%", mark, name.c_str(), f.speed.decode,
                f.speed.prefill, 100.0 * f.speed.hit_rate, 100.0 * f.link_share);
    const double measured = measured_decode(model, f.mode);
    if (measured > 0.0) std::printf(" %13.1f", measured);
    std::printf("\n");
  }
  const policy::Speed& start = plan.forecast().at_start;
  std::printf(
      "    these hold %d tokens into a text; %s at its start: decode %.1f, prefill %.0f t/s\n",
      plan.work.forecast_depth(), std::string(policy::mode_name(plan.mode)).c_str(), start.decode,
      start.prefill);
  std::printf("    several rows of one sequence in a step:");
  for (size_t i = 0; i < policy::kWidths.size(); ++i) {
    std::printf("%s %d: %.1f", i == 0 ? "" : ",", policy::kWidths[i], plan.forecast().by_width[i]);
  }
  std::printf(" t/s\n");
}

}  // namespace

std::string describe_cpu(const Machine& machine) {
  char rates[96];
  const int n =
      std::snprintf(rates, sizeof(rates), "%d cores, %.3g GB/s", machine.n_cores, machine.cpu_gbps);
  if (machine.cpu_kv_gbps > 0.0) {
    std::snprintf(rates + n, sizeof(rates) - static_cast<size_t>(n), ", keys and values %.3g GB/s",
                  machine.cpu_kv_gbps);
  }
  return cat(rates, " (", machine.cpu_source, ")");
}

Json plan_json(const PlannedModel& model) {
  const Plan& plan = model.session.plan();
  Json vram = memory_json(vram_lines(plan.price.vram), plan.price.vram.total(), plan.vram_budget);
  vram["expert_budget_bytes"] = plan.expert_budget;
  vram["scratch"] = lines_json(scratch_lines(plan.price.scratch), plan.price.vram.scratch);
  Json host = memory_json(host_lines(plan.price.host), plan.price.host.total(), plan.ram_budget);
  host["holding"] = holding_name(plan.holding);
  host["held_bytes"] = plan.held_bytes;
  return {{"model", model_json(model)},
          {"hardware", hardware_json(model.session.machine)},
          {"gpus", gpus_json(model.gpus)},
          {"device_reason", model.device_reason},
          {"mode", policy::mode_key(plan.mode)},
          {"reason", plan.reason},
          {"concessions", plan.concessions},
          {"n_ctx", plan.work.n_ctx},
          {"n_sequences", plan.work.n_sequences},
          {"k_type", policy::kv_type_name(plan.work.k_type)},
          {"v_type", policy::kv_type_name(plan.work.v_type)},
          {"prefill_chunk", plan.work.prefill_chunk},
          {"n_gpu_layers", plan.n_gpu_layers},
          {"link_share", plan.link_share},
          {"locality", model.session.locality_source},
          {"forecast_depth", plan.work.forecast_depth()},
          {"vram", std::move(vram)},
          {"host", std::move(host)},
          {"pinned", lines_json(pinned_lines(plan.price.pinned), plan.price.pinned.total())},
          {"experts", slots_json(plan)},
          {"modes", forecasts_json(model, plan)}};
}

void print_plan(const PlannedModel& model) {
  const Plan& plan = model.session.plan();
  const policy::ModelShape& shape = model.session.shape;
  const char* const what = shape.is_dense ? "networks" : "experts";
  print_head(model);
  const std::string k(policy::kv_type_name(plan.work.k_type));
  const std::string v(policy::kv_type_name(plan.work.v_type));
  const std::string trunk =
      plan.n_gpu_layers == 0
          ? "everything on the CPU"
          : cat(plan.n_gpu_layers, " of ", shape.n_layers(), " trunk layers on the GPU");
  std::printf("\nPlan: %s; %s; context %d%s, KV %s, prompts in chunks of %d\n",
              std::string(policy::mode_name(plan.mode)).c_str(), trunk.c_str(), plan.work.n_ctx,
              plan.work.n_sequences > 1 ? cat(" x ", plan.work.n_sequences).c_str() : "",
              (k == v ? k : cat(k, "/", v)).c_str(), plan.work.prefill_chunk);
  for (const std::string& line : plan.concessions) std::printf("  gave up: %s\n", line.c_str());
  if (plan.n_gpu_layers > 0) {
    print_memory("VRAM", vram_lines(plan.price.vram), plan.price.vram.total(), plan.vram_budget);
    print_parts("scratch", scratch_lines(plan.price.scratch));
    print_slots(plan, what);
  }
  print_memory("RAM", host_lines(plan.price.host), plan.price.host.total(), plan.ram_budget);
  if (plan.held_bytes > 0) {
    std::printf("    %s of %s %s for the GPU\n", format_bytes(plan.held_bytes).c_str(), what,
                plan.holding == policy::HostHolding::registered ? "registered in place" : "pinned");
  }
  if (plan.n_gpu_layers > 0) {
    policy::PinnedBytes own = plan.price.pinned;
    own.experts = 0;  // they have their own line
    print_parts("pinned", pinned_lines(own));
  }
  if (shape.mtp_bytes() > 0) {
    std::printf("    not loaded: MTP block, %s (--mtp)\n", format_bytes(shape.mtp_bytes()).c_str());
  }
  print_forecasts(model, plan);
  if (plan.n_gpu_layers > 0 && !shape.is_dense) {
    std::printf("    hits by the locality of routing, %s\n", model.session.locality_source.c_str());
  }
  const char* const source =
      has_trials(model) ? "Speeds come from a cost model; beside them those of trials: they decide."
      : model.session.machine.cpu_source.starts_with("measured")
          ? "Speeds come from a cost model with what was measured on this machine."
          : "Speeds come from a cost model; no step was measured.";
  std::printf("\n  Why: %s.\n  %s\n", plan.reason.c_str(), source);
}

}  // namespace sluice::cli
