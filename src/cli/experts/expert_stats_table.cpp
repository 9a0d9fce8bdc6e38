// See expert_stats_table.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/experts/expert_stats_table.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/units.h"

namespace sluice::cli {
namespace {

double per(double sum, int64_t n) { return sum / static_cast<double>(std::max<int64_t>(n, 1)); }

double percent(int64_t part, int64_t all) { return per(100.0 * static_cast<double>(part), all); }

Json layer_json(const LayerStats& layer) {
  return {{"n_calls", layer.n_calls()},
          {"n_hits", layer.n_hits},
          {"n_staged", layer.n_staged},
          {"n_link", layer.n_link},
          {"n_cpu", layer.n_cpu},
          {"link_bytes", layer.link_bytes},
          {"seconds", layer.seconds},
          {"wait_seconds", layer.wait_seconds},
          {"stall_seconds", layer.stall_seconds},
          {"cpu_seconds", layer.cpu_seconds}};
}

void print_layer(std::FILE* to, const std::string& name, const LayerStats& layer,
                 int64_t n_tokens) {
  const int64_t n = layer.n_calls();
  const auto ms = [n_tokens](double seconds) { return per(1e3 * seconds, n_tokens); };
  std::fprintf(to, "  %5s %9lld %7.1f %8.1f %7.1f %7.1f %11.3f %9.4f %8.4f %8.4f %8.4f\n",
               name.c_str(), static_cast<long long>(n), percent(layer.n_hits, n),
               percent(layer.n_staged, n), percent(layer.n_link, n), percent(layer.n_cpu, n),
               per(static_cast<double>(layer.link_bytes) / 1e6, n_tokens), ms(layer.seconds),
               ms(layer.wait_seconds), ms(layer.stall_seconds), ms(layer.cpu_seconds));
}

void print_layers(std::FILE* to, const ExpertStats& stats) {
  std::fprintf(to, "  %lld tokens in %lld steps of decode\n\n",
               static_cast<long long>(stats.n_tokens), static_cast<long long>(stats.n_steps));
  std::fputs(
      "  layer     calls  hits % staged %  link %   CPU %  link MB/tok    ms/tok  wait ms stall ms "
      "  CPU ms\n",
      to);
  for (size_t i = 0; i < stats.layers.size(); ++i) {
    print_layer(to, cat(i), stats.layers[i], stats.n_tokens);
  }
  print_layer(to, "all", stats.total(), stats.n_tokens);
  std::fputs("\n", to);
}

void print_copies(std::FILE* to, const ExpertStats& stats) {
  const auto line = [to](const std::string& text) { std::fprintf(to, "  %s\n", text.c_str()); };
  line(cat("cache: ", stats.n_copies, " copies, ", format_bytes(stats.copied_bytes),
           "; prompts streamed ", format_bytes(stats.streamed_bytes)));
  if (stats.n_landed > 0) {
    line(cat(stats.n_landed, " experts stayed that had just been read over the link"));
  }
  if (stats.n_prefetched > 0) {
    line(cat("prefetch: ", stats.n_prefetched, " copies, ", format_bytes(stats.useful_bytes),
             " useful, ", format_bytes(stats.late_bytes), " late, ",
             format_bytes(stats.wasted_bytes), " wasted"));
  }
  if (stats.n_failed_copies > 0) {
    line(cat(stats.n_failed_copies, " copies failed; their experts were found elsewhere"));
  }
}

// What is placed: of a dense model, the network of each layer.
const char* noun(const PlacementInfo& placement) {
  return placement.is_dense ? "networks" : "experts";
}

// "; 17.3 GiB loaded at 48.1 GB/s"
std::string upload_words(const PlacementInfo& placement) {
  if (placement.upload_seconds == 0.0) return "";
  const double gbps = static_cast<double>(placement.upload_bytes) / placement.upload_seconds * 1e-9;
  return cat("; ", format_bytes(placement.upload_bytes), " loaded at ",
             std::round(gbps * 10.0) / 10.0, " GB/s");
}

}  // namespace

std::string describe(const PlacementInfo& placement) {
  const std::string what = noun(placement);
  if (placement.mode.empty()) return cat("all ", what, " computed by the CPU, without a device");
  return cat(placement.mode, " on ", placement.device, ": ", placement.n_gpu_layers,
             " trunk layers and ", placement.n_slots, " of ", placement.n_experts, " ", what,
             " in ", format_bytes(placement.vram_bytes),
             placement.prefetches ? ", with prefetch" : "", upload_words(placement));
}

Json placement_json(const PlacementInfo& placement) {
  return {{"device", placement.device},
          {"mode", placement.mode_key},
          {"reason", placement.reason},
          {"n_gpu_layers", placement.n_gpu_layers},
          {"n_slots", placement.n_slots},
          {"n_experts", placement.n_experts},
          {"is_dense", placement.is_dense},
          {"vram_bytes", placement.vram_bytes},
          {"upload_bytes", placement.upload_bytes},
          {"upload_seconds", placement.upload_seconds},
          {"link_share", placement.link_share},
          {"prefetches", placement.prefetches},
          {"predicted_decode", placement.predicted_decode},
          {"predicted_prefill", placement.predicted_prefill},
          {"locality", placement.locality},
          {"warnings", placement.warnings}};
}

Json expert_stats_json(const PlacementInfo& placement, const ExpertStats& stats) {
  Json layers = Json::array();
  for (const LayerStats& layer : stats.layers) layers.push_back(layer_json(layer));
  return {{"placement", placement_json(placement)},
          {"n_steps", stats.n_steps},
          {"n_tokens", stats.n_tokens},
          {"layers", std::move(layers)},
          {"total", layer_json(stats.total())},
          {"n_copies", stats.n_copies},
          {"copied_bytes", stats.copied_bytes},
          {"n_landed", stats.n_landed},
          {"streamed_bytes", stats.streamed_bytes},
          {"n_failed_copies", stats.n_failed_copies},
          {"n_prefetched", stats.n_prefetched},
          {"useful_bytes", stats.useful_bytes},
          {"late_bytes", stats.late_bytes},
          {"wasted_bytes", stats.wasted_bytes}};
}

void print_expert_stats(std::FILE* to, const PlacementInfo& placement, const ExpertStats& stats) {
  std::fprintf(to, "%s: %s\n", noun(placement), describe(placement).c_str());
  if (!placement.mode.empty()) {
    const std::string why =
        placement.is_dense ? "" : cat(", by the locality of routing, ", placement.locality);
    std::fprintf(to, "  predicted %.1f tokens/s of decode%s\n", placement.predicted_decode,
                 why.c_str());
  }
  if (stats.layers.empty()) return;
  if (stats.n_tokens > 0) print_layers(to, stats);
  print_copies(to, stats);
}

}  // namespace sluice::cli
