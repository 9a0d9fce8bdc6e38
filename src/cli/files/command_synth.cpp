// sluice synth: writes a model of any shape with random weights.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/files/json_text.h"
#include "cli/flags/flag_checks.h"
#include "cli/terminal/progress_bar.h"
#include "model/architecture.h"
#include "model_file/synth.h"

namespace sluice::cli {
namespace {

// The defaults make a small model that every type of tensor fits into.
struct SynthFlags {
  std::string path;
  std::string architecture = "qwen3moe";
  std::string type = "Q4_K_M";
  bool dense = false;
  int n_experts = 0;  // 0: the usual
  int n_experts_used = 0;
  int n_kv_heads = 0;  // 0: the architecture's usual
  int head_dim = 0;
  int d_ff_shared = 0;
  int n_rot = 0;
  model::DeltaNetConfig delta_net{
      .n_taps = 4, .n_key_heads = 2, .n_value_heads = 4, .head_dim = 64};
  int n_threads = 0;
  bool json = false;
  model_file::SynthOptions options;
};

// Experts, or a dense network in their place.
void set_networks(const SynthFlags& flags, const model::Architecture& architecture,
                  model::Config& c) {
  using model::Networks;
  c.is_dense = flags.dense || architecture.networks == Networks::dense;
  if (c.is_dense && architecture.networks == Networks::experts) {
    throw Error(Errc::bad_request, cat(c.architecture, " has no dense models; leave --dense out"));
  }
  if (c.is_dense && (flags.n_experts > 0 || flags.n_experts_used > 0 || flags.d_ff_shared > 0)) {
    throw Error(Errc::bad_request, cat("a dense ", c.architecture, " has no experts; leave out ",
                                       "--experts, --experts-used and --d-ff-shared"));
  }
  if (c.is_dense) return;
  constexpr int kExperts = 16, kUsed = 4;
  c.n_experts = flags.n_experts > 0 ? flags.n_experts : kExperts;
  c.n_experts_used = flags.n_experts_used > 0 ? flags.n_experts_used : kUsed;
  c.d_ff_shared = flags.d_ff_shared > 0 ? flags.d_ff_shared : c.d_ff;
}

model_file::SynthOptions resolve(const SynthFlags& flags) {
  model_file::SynthOptions options = flags.options;
  model::Config& c = options.config;
  const auto* architecture = model::find_architecture(flags.architecture);
  if (!architecture || !architecture->can_run()) {
    throw Error(Errc::bad_request, cat("unknown architecture '", flags.architecture,
                                       "'; expected one of ", model::runnable_architectures(" ")));
  }
  c.architecture = flags.architecture;
  const bool grouped = flags.architecture != "olmoe";
  c.n_kv_heads = flags.n_kv_heads > 0            ? flags.n_kv_heads
                 : grouped && c.n_heads % 2 == 0 ? c.n_heads / 2
                                                 : c.n_heads;
  c.head_dim = flags.head_dim > 0 ? flags.head_dim : c.d_model / c.n_heads;
  set_networks(flags, *architecture, c);
  c.rope.n_rot = flags.n_rot;
  if (architecture->is_hybrid) {
    c.delta_net = flags.delta_net;
    if (flags.n_rot == 0) c.rope.n_rot = c.head_dim / 4 * 2;
  } else if (c.n_mtp_blocks > 0) {
    throw Error(Errc::bad_request, cat(c.architecture, " has no MTP blocks; leave --mtp out"));
  }
  const int n_pairs = c.rope.n_rot / 2, third = n_pairs / 3;
  if (architecture->has_rope_sections) c.rope.sections = {n_pairs - 2 * third, third, third, 0};
  options.mix = model_file::QuantMix::parse(flags.type);
  return options;
}

void run(const SynthFlags& flags) {
  const model_file::SynthOptions options = resolve(flags);
  ThreadPool pool(flags.n_threads);
  {
    ProgressBar bar("writing");
    model_file::write_synthetic_model(flags.path, options, pool, bar.updater());
  }
  const uint64_t n_bytes = std::filesystem::file_size(flags.path);
  if (flags.json) {
    const Json object = {{"path", flags.path}, {"bytes", n_bytes}};
    std::printf("%s\n", dump(object).c_str());
  } else {
    std::printf("%s: %s %s, %s\n", flags.path.c_str(), options.config.architecture.c_str(),
                options.mix.name().c_str(), format_bytes(n_bytes).c_str());
  }
}

}  // namespace

void add_synth(CLI::App& app) {
  CLI::App* command = app.add_subcommand("synth", "write a model of any shape with random weights");
  const auto flags = flags_for<SynthFlags>(*command, run);
  model::Config& c = flags->options.config;
  c = {.n_layers = 4,
       .d_model = 256,
       .n_heads = 4,
       .n_vocab = 320,
       .n_ctx_train = 4096,
       .d_ff = 256,
       .norm_eps = 1e-6f};
  command->add_option("output", flags->path, "file to write")->required();
  const auto size = [&](const char* name, int& value, const char* what) {
    command->add_option(name, value, what)->transform(at_least(1))->capture_default_str();
  };
  command->add_option("--arch", flags->architecture, "architecture")->capture_default_str();
  command->add_option("--type", flags->type, "type or mix of the matrices: Q4_K, Q4_K_M, F32, ...")
      ->capture_default_str();
  size("--layers", c.n_layers, "layers");
  size("--d-model", c.d_model, "width of the model");
  size("--heads", c.n_heads, "attention heads");
  size("--kv-heads", flags->n_kv_heads, "key-value heads (half the heads; olmoe: all)");
  size("--head-dim", flags->head_dim, "width of a head (d-model / heads)");
  command->add_flag("--dense", flags->dense, "of llama: a dense network instead of experts");
  size("--experts", flags->n_experts, "experts in each layer (16)");
  size("--experts-used", flags->n_experts_used, "experts a token uses (4)");
  size("--d-ff", c.d_ff, "width of an expert, or of the dense network");
  size("--d-ff-shared", flags->d_ff_shared,
       "width of the shared expert, where there is one (d-ff)");
  size("--rot", flags->n_rot, "turning dimensions of a head (all; of hybrids half)");
  size("--attention-every", flags->options.attention_interval,
       "of hybrids: one layer attends of so many");
  size("--key-heads", flags->delta_net.n_key_heads, "of hybrids: key heads of a recurrent layer");
  size("--value-heads", flags->delta_net.n_value_heads, "of hybrids: value heads of it");
  size("--state-dim", flags->delta_net.head_dim, "of hybrids: width of its heads");
  size("--conv-taps", flags->delta_net.n_taps, "of hybrids: taps of its convolution");
  command->add_option("--mtp", c.n_mtp_blocks, "of hybrids: blocks that predict further tokens")
      ->transform(whole_number(0, 8));
  command
      ->add_option("--form", flags->options.forms,
                   "write a rarer form of a layer: ssm_in (qwen3next), ffn_gate_up_exps")
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"ssm_in", "ffn_gate_up_exps"}));
  size("--vocab", c.n_vocab, "tokens in the vocabulary");
  size("--ctx", c.n_ctx_train, "context the model claims to be trained for");
  command->add_option("--rope-base", c.rope.base, "base of the rotary embedding")
      ->capture_default_str();
  command->add_option("--eps", c.norm_eps, "epsilon of the norms")->capture_default_str();
  command->add_option("--std", flags->options.std, "standard deviation of the weights")
      ->capture_default_str();
  command->add_option("--seed", flags->options.seed, "seed (0)")
      ->transform(whole_number(0, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  command
      ->add_option("-t,--threads", flags->n_threads,
                   "CPU threads (0: one per fast core, within the container's quota)")
      ->transform(whole_number(0, 1024));
  command->add_flag("--json", flags->json, "print what was written as JSON");
}

}  // namespace sluice::cli
