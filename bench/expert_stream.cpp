// How experts move: what a decoded token costs where they are cached, read over the link, fetched
// ahead of their layer or computed by the CPU, on the RAM device with a clock of its own. The model
// is a small one; all rates are scaled down with its experts, so every time is as for experts of
// 2.8 MB.
//
// "trace" rows route as a generated trace says, whose locality is that of a real model. A forced
// routing cannot be foreseen, so rows with prefetch, and those they compare with, let the model
// route the same tokens as it likes ("own").
//
//   cmake --preset release -DSLUICE_BENCH=ON
//   cmake --build --preset release --target bench_expert_stream
//   build/release/bench/bench_expert_stream [--link GB/s,...] [--budget %] [--tokens N] ...
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backend/ram/ram_device.h"
#include "base/error.h"
#include "base/machine_fingerprint.h"
#include "bench_main.h"
#include "engine/device/expert_runtime.h"
#include "engine/woven_weights.h"
#include "model_file/shape.h"
#include "model_file/synth.h"
#include "policy/plan/pricing_speed.h"
#include "policy/trace/replay_account.h"
#include "policy/trace/trace_generator.h"
#include "support/link_watch.h"

namespace sluice::engine {
namespace {

constexpr double kExpertBytes = 2.8e6;  // that all times are for
constexpr double kDelayUs = 2.0;        // of a copy; an expert is three

struct Settings {
  std::vector<double> links = {3, 6, 12, 25, 55};  // GB/s
  double cpu_gbps = 60.0, gpu_gbps = 500.0;
  double budget = 30.0;   // % of all experts
  double weights = 0.03;  // standard deviation, times the root of the width
  int n_tokens = 512;     // of which the first half warms the cache
  int n_layers = 6, n_experts = 64, n_used = 6;
  bool is_wall = false;
};

enum class Ahead { none, careful, naive };

struct Mode {
  const char* name;
  policy::PolicyKind policy;
  double link_share;  // of the misses
  Ahead ahead = Ahead::none;
};

struct Result {
  ExpertStats stats;
  double seconds = 0.0;
  double recall = 0.0;
  int64_t n_delayed = 0;
  double longest_delay = 0.0;
};

double per(double n, int64_t of) { return of == 0 ? 0.0 : n / static_cast<double>(of); }

// The model and the text that all rows run.
class Lab {
 public:
  explicit Lab(const Settings& s)
      : s_(s),
        file_(write(s)),
        model_(file_),
        woven_(weave(model_)),
        shape_(model_file::read_shape(file_)) {
    policy::GeneratorOptions options{
        .shape = policy::generator_shape(s.n_layers, s.n_experts, s.n_used)};
    options.n_prefill = 0;
    options.n_decode = s.n_tokens;
    trace_ = policy::generate_trace(options);
    scale_ = static_cast<double>(shape_.layers[0].expert_bytes) / kExpertBytes;
  }

  // layer_seconds: how long a layer lasts without prefetch.
  Result run(const Mode& mode, double link_gbps, bool is_forced, double layer_seconds) const;

 private:
  static gguf::ModelFile write(const Settings& s);
  static WovenWeights weave(model::Model& model) {
    ThreadPool pool(1);
    return WovenWeights(model, pool, {});
  }
  ExpertRuntimeOptions runtime_options(const Mode& mode, double link_gbps) const;
  double hits_seconds() const;  // of a layer that misses nothing

  Settings s_;
  gguf::ModelFile file_;
  model::Model model_;
  WovenWeights woven_;
  policy::ModelShape shape_;
  policy::RoutingTrace trace_;
  double scale_;  // of all rates
};

// Shaped like a layer of Qwen3-30B-A3B, an eighth as wide: trunk and router weigh as much, next to
// an expert, as they do there, within a factor of two.
gguf::ModelFile Lab::write(const Settings& s) {
  model_file::SynthOptions o;
  o.mix = model_file::QuantMix::parse("q4_0");
  model::Config& c = o.config;
  c.architecture = "qwen3moe";
  c.n_layers = s.n_layers;
  c.d_model = c.d_ff = 256;
  c.n_heads = 8;
  c.n_kv_heads = 1;
  c.head_dim = 64;
  c.n_vocab = 1024;
  c.n_ctx_train = s.n_tokens;
  c.n_experts = s.n_experts;
  c.n_experts_used = s.n_used;
  c.norm_eps = 1e-6f;
  // Small, so that a layer changes little of what the next one sees, as in a trained model.
  o.std = static_cast<float>(s.weights / std::sqrt(c.d_model));
  ThreadPool pool(1);
  std::string name = (std::filesystem::temp_directory_path() / "sluice_bench_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw Error(Errc::bad_request, "no place for the model");
  const std::string path = name + "/model.gguf";
  write_synthetic_model(path, o, pool, {});
  gguf::ModelFile file = gguf::ModelFile::open(path);
  std::filesystem::remove_all(name);  // the mapping stays
  return file;
}

ExpertRuntimeOptions Lab::runtime_options(const Mode& mode, double link_gbps) const {
  const policy::CostModel cost{{.link_gbps = link_gbps,
                                .cpu_gbps = mode.link_share == 1.0 ? link_gbps : s_.cpu_gbps,
                                .gpu_gbps = s_.gpu_gbps,
                                .copy_interference = mode.link_share == 1.0 ? 1.0 : 0.4}};
  ExpertRuntimeOptions o;
  o.work = {.n_ctx = s_.n_tokens, .prefill_chunk = 1};
  o.cache = {.policy = mode.policy,
             .n_experts = s_.n_experts,
             .layers = {},
             .copy_cost = cost.copy_cost(),
             .wait_cost = cost.wait_cost()};
  const auto n_slots = static_cast<int>(std::lround(s_.budget * 0.01 * s_.n_experts));
  for (const policy::LayerShape& layer : shape_.layers) {
    o.cache.layers.push_back({layer.expert_bytes, n_slots, false});
  }
  o.place = {.n_gpu_layers = s_.n_layers,
             .n_slots = std::vector<int>(shape_.layers.size(), n_slots),
             .overhead_bytes = 0,
             .link_share = mode.link_share};
  return o;
}

double Lab::hits_seconds() const {
  const policy::LayerShape& layer = shape_.layers[0];
  const uint64_t n_bytes =
      layer.trunk_bytes + static_cast<uint64_t>(s_.n_used) * layer.expert_bytes;
  return policy::kGpuLayerSeconds + static_cast<double>(n_bytes) / (s_.gpu_gbps * scale_ * 1e9);
}

Result Lab::run(const Mode& mode, double link_gbps, bool is_forced, double layer_seconds) const {
  test::LinkWatch watch;
  backend::RamDevice device(
      {.n_bytes = uint64_t{1} << 30,
       .link_gbps = link_gbps * scale_,
       .delay_us = kDelayUs,
       .clock = s_.is_wall ? backend::Clock::wall : backend::Clock::virtual_time,
       .device_gbps = s_.gpu_gbps * scale_,
       .cpu_gbps = s_.cpu_gbps * scale_,
       .before_copy = {},
       .on_link_use = watch.watcher()});
  ExpertRuntimeOptions options = runtime_options(mode, link_gbps);
  options.staging = {.enabled = mode.ahead != Ahead::none,
                     .link_gbps = link_gbps * scale_,
                     .delay_us = kDelayUs,
                     .layer_seconds = layer_seconds,
                     .hits_seconds = hits_seconds()};
  if (mode.ahead == Ahead::naive) {  // all that is foreseen, on a link that is thought to be free
    options.staging = {.enabled = true,
                       .link_gbps = 1e6,
                       .layer_seconds = 1.0,
                       .hits_seconds = 1.0,
                       .max_waste = 1e6,
                       .copy_cost = 0.0};
  }
  size_t at = 0;
  if (is_forced) {
    options.reroute = [&](LayerId layer, int64_t, std::span<int32_t> experts) {
      const auto routed = trace_.steps[at].layer(layer.value);
      for (size_t i = 0; i < routed.size(); ++i) experts[i] = routed[i].expert.value;
    };
  }
  ThreadPool threads(1);
  RegisteredExperts experts(model_, device);
  ExpertRuntime runtime(experts, shape_, device, threads, options);
  if (const auto slots = runtime.staging().slots(); !slots.empty()) {
    watch.set_ahead(slots.front().data, slots.back().data + shape_.layers[0].expert_bytes);
  }
  Result before;
  for (; at < trace_.steps.size(); ++at) {
    if (at == trace_.steps.size() / 2) {
      before = {runtime.stats(), runtime.seconds(), 0.0, watch.n_delayed(), 0.0};
    }
    const StepRow row{trace_.steps[at].token % model_.config().n_vocab, {}, false};
    runtime.step({&row, 1}, policy::Phase::decode, {});
  }
  Result r{runtime.stats(), runtime.seconds() - before.seconds, runtime.staging().recall(),
           watch.n_delayed() - before.n_delayed, watch.longest_delay()};
  // What came before the warm half's end does not count.
  const ExpertStats& b = before.stats;
  ExpertStats& s = r.stats;
  s.n_tokens -= b.n_tokens, s.n_copies -= b.n_copies, s.n_prefetched -= b.n_prefetched;
  s.useful_bytes -= b.useful_bytes, s.late_bytes -= b.late_bytes, s.wasted_bytes -= b.wasted_bytes;
  for (size_t i = 0; i < s.layers.size(); ++i) {
    LayerStats& l = s.layers[i];
    const LayerStats& e = b.layers[i];
    l.n_hits -= e.n_hits, l.n_staged -= e.n_staged, l.n_link -= e.n_link, l.n_cpu -= e.n_cpu;
    l.wait_seconds -= e.wait_seconds;
  }
  return r;
}

class Table {
 public:
  explicit Table(const Lab& lab, const Settings& s) : lab_(lab), s_(s) {}

  void print_link(double link_gbps) {
    using enum policy::PolicyKind;
    const double split = link_gbps / (link_gbps + s_.cpu_gbps);
    const Mode modes[] = {{"on demand, LRU", lru, 1.0},
                          {"cache", mixture, 1.0},
                          {"cache + prefetch", mixture, 1.0, Ahead::careful},
                          {"cache + naive prefetch", mixture, 1.0, Ahead::naive},
                          {"hybrid", mixture, 0.0},
                          {"hybrid + prefetch", mixture, 0.0, Ahead::careful},
                          {"hybrid + naive prefetch", mixture, 0.0, Ahead::naive},
                          {"hybrid + split", mixture, split},
                          {"hybrid + split + prefetch", mixture, split, Ahead::careful}};
    for (const bool is_forced : {true, false}) {
      Result alone;
      for (const Mode& mode : modes) {
        if (is_forced && mode.ahead != Ahead::none) continue;
        const double layer_seconds =
            alone.seconds / static_cast<double>(std::max<int64_t>(alone.stats.n_tokens, 1)) /
            s_.n_layers;
        const Result r = lab_.run(mode, link_gbps, is_forced, layer_seconds);
        if (mode.ahead == Ahead::none) alone = r;
        print_row(link_gbps, is_forced, mode, r, alone);
      }
    }
  }

 private:
  // Copies for misses, which on demand are as many as these.
  static double of_misses(const Result& r) {
    const LayerStats all = r.stats.total();
    return per(static_cast<double>(all.n_link + r.stats.n_prefetched), all.n_calls() - all.n_hits);
  }

  void print_row(double link_gbps, bool is_forced, const Mode& mode, const Result& r,
                 const Result& alone) const {
    const int64_t n = r.stats.n_tokens;
    const LayerStats all = r.stats.total();
    const double copies =
        per(static_cast<double>(r.stats.n_copies + all.n_link + r.stats.n_prefetched), n);
    std::printf("| %g | %s | %s | %.1f | %.2f | %.2f | ", link_gbps, is_forced ? "trace" : "own",
                mode.name, 100.0 * per(static_cast<double>(all.n_hits), all.n_calls()), copies,
                of_misses(r));
    if (mode.ahead == Ahead::none) {
      std::printf("| ");
    } else {
      const auto part = [&](uint64_t bytes) {
        const uint64_t done = r.stats.useful_bytes + r.stats.late_bytes + r.stats.wasted_bytes;
        return 100.0 * per(static_cast<double>(bytes), static_cast<int64_t>(done));
      };
      std::printf("%.2f: %.0f, %.0f, %.0f | ", per(static_cast<double>(r.stats.n_prefetched), n),
                  part(r.stats.useful_bytes), part(r.stats.late_bytes), part(r.stats.wasted_bytes));
    }
    std::printf("%.1f | %.0f | ", copies * kExpertBytes * 1e-6, per(r.seconds * 1e6, n));
    if (mode.ahead == Ahead::none) {
      std::printf("| %.0f | | |\n", per(all.wait_seconds * 1e6, n));
    } else {
      std::printf("%+.1f | %.0f | %lld, %.0f | %.0f |\n", 100.0 * (r.seconds / alone.seconds - 1.0),
                  per(all.wait_seconds * 1e6, n), static_cast<long long>(r.n_delayed),
                  r.longest_delay * 1e6, 100.0 * r.recall);
    }
    std::fflush(stdout);
  }

  const Lab& lab_;
  Settings s_;
};

std::vector<double> numbers(const std::string& text, const std::string& flag) {
  std::vector<double> all;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    char* rest = nullptr;
    all.push_back(std::strtod(one.c_str(), &rest));
    if (one.empty() || *rest != '\0' || !(all.back() > 0.0)) {
      throw Error(Errc::bad_request, cat(flag, " ", text, ": expected a number above 0"));
    }
    at = end + 1;
  }
  return all;
}

Settings parse(const std::vector<std::string>& args) {
  Settings s;
  const auto real = [](double& to) { return [&to](const std::vector<double>& v) { to = v[0]; }; };
  const auto whole = [](int& to) {
    return [&to](const std::vector<double>& v) { to = static_cast<int>(v[0]); };
  };
  const std::map<std::string, std::function<void(const std::vector<double>&)>> flags = {
      {"--link", [&](const std::vector<double>& v) { s.links = v; }},
      {"--budget", real(s.budget)},
      {"--tokens", whole(s.n_tokens)},
      {"--cpu", real(s.cpu_gbps)},
      {"--gpu", real(s.gpu_gbps)},
      {"--weights", real(s.weights)},
      {"--layers", whole(s.n_layers)},
      {"--experts", whole(s.n_experts)},
      {"--used", whole(s.n_used)}};
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "--wall") {
      s.is_wall = true;
      continue;
    }
    const auto flag = flags.find(args[i]);
    if (flag == flags.end() || i + 1 == args.size()) {
      std::string known;
      for (const auto& [name, set] : flags) known += cat(name, " N, ");
      throw Error(Errc::bad_request, cat("'", args[i], "'; expected ", known, "--wall"));
    }
    flag->second(numbers(args[++i], flag->first));
  }
  if (s.n_tokens < 2 || s.n_used > s.n_experts || s.budget > 100.0) {
    throw Error(
        Errc::bad_request,
        "expected 2 tokens or more, no more experts used than there are, a budget up to 100");
  }
  return s;
}

void print_all(const Settings& s) {
  const Lab lab(s);
  std::printf("%s\n", machine_fingerprint("RAM device").c_str());
  std::printf(
      "%s clock; every time is as for experts of 2.8 MB (rates are scaled down with the "
      "experts)\n",
      s.is_wall ? "the wall's" : "virtual");
  std::printf(
      "%d layers, %d experts, %d used, %g %% of them on the device (%g GB/s), CPU %g GB/s, "
      "%d tokens after as many to warm up\n\n",
      s.n_layers, s.n_experts, s.n_used, s.budget, s.gpu_gbps, s.cpu_gbps, s.n_tokens / 2);
  std::puts(
      "| link GB/s | routing | mode | hit % | copies/token | for misses, of them | ahead/token: "
      "useful, late, wasted % | MB/token | us/token | by prefetch % | waits us | demand behind it: "
      "times, longest us | recall % |");
  std::puts("|---:|---|---|---:|---:|---:|---|---:|---:|---:|---:|---|---:|");
  Table table(lab, s);
  for (const double link : s.links) table.print_link(link);
}

}  // namespace
}  // namespace sluice::engine

int main(int argc, char** argv) {
  return sluice::bench::bench_main([&] {
    sluice::engine::print_all(sluice::engine::parse({argv + 1, argv + argc}));
    return 0;
  });
}
