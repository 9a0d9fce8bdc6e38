// sluice plan: what would live where, on this machine or on a described one, and how fast that
// would be.
// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/flag_checks.h"
#include "cli/model_options.h"
#include "cli/plan_table.h"
#include "cli/this_machine.h"
#include "gguf/model_file.h"
#include "model/shape.h"
#include "policy/planner.h"

namespace sluice::cli {
namespace {

struct PlanFlags {
  ModelOptions model;
  std::string hardware;
  std::string vram;
  std::string pin_layers;
  int n_gpu_layers = -1;     // -1: not said
  int64_t cache_slots = -1;  // -1: not said
  policy::Wishes wishes;
  bool json = false;
};

policy::KvType kv_type(KvType type) {
  switch (type) {
    case KvType::f32:
      return policy::KvType::f32;
    case KvType::f16:
      return policy::KvType::f16;
    case KvType::bf16:
      return policy::KvType::bf16;
    case KvType::q8_0:
      return policy::KvType::q8_0;
    case KvType::q4_0:
      return policy::KvType::q4_0;
  }
  throw Error(Errc::bad_request, "unknown KV type");
}

policy::MoeWish moe_wish(const std::string& text) {
  const std::string name = CLI::detail::to_lower(text);
  if (name == "auto") return policy::MoeWish::automatic;
  if (name == "cache") return policy::MoeWish::cache;
  if (name == "cpu") return policy::MoeWish::cpu;
  if (name == "gpu") return policy::MoeWish::gpu;
  throw CLI::ValidationError("--moe", cat("'", text, "'; expected auto, cache, cpu or gpu"));
}

// "4" is a count; "0,1,47", "3-7" and "3," are lists.
void read_pin_layers(const std::string& text, policy::Wishes& wishes) {
  const auto refuse = [&] {
    throw Error(Errc::bad_request, cat("--pin-layers is '", text.substr(0, 40),
                                       "'; expected a count such as 4, or layers: 0,1,47 or 3-7"));
  };
  const char* next = text.data();
  const char* const end = next + text.size();
  const auto number = [&] {
    int value = 0;
    const auto [stop, error] = std::from_chars(next, end, value);
    if (error != std::errc() || value < 0 || value > 100'000) refuse();
    next = stop;
    return value;
  };
  while (next < end) {
    const int first = number();
    if (next == end && wishes.pinned.empty()) {
      wishes.n_pinned = first;
      return;
    }
    int last = first;
    if (next < end && *next == '-') {
      ++next;
      last = number();
    }
    if (last < first || (next < end && *next != ',')) refuse();
    for (int i = first; i <= last; ++i) wishes.pinned.push_back(i);
    if (next < end) ++next;
  }
  if (wishes.pinned.empty()) refuse();
}

policy::Wishes wishes_of(const PlanFlags& flags) {
  policy::Wishes wishes = flags.wishes;
  const SessionOptions& session = flags.model.session;
  wishes.n_ctx = session.n_ctx;
  wishes.k_type = kv_type(session.k_type);
  wishes.v_type = kv_type(session.v_type);
  wishes.prefill_chunk = session.prefill_chunk;
  if (!flags.vram.empty()) wishes.vram_bytes = policy::parse_bytes(flags.vram, "--vram");
  if (flags.n_gpu_layers >= 0) wishes.n_gpu_layers = flags.n_gpu_layers;
  if (flags.cache_slots >= 0) wishes.n_slots = flags.cache_slots;
  if (!flags.pin_layers.empty()) read_pin_layers(flags.pin_layers, wishes);
  return wishes;
}

// A budget of VRAM without a GPU asks what one with so much would do.
policy::Hardware hardware_of(const PlanFlags& flags, const policy::Wishes& wishes) {
  policy::Hardware hardware = this_machine();
  if (flags.model.n_threads > 0) hardware.n_cores = flags.model.n_threads;
  if (!flags.hardware.empty()) hardware = policy::parse_hardware(flags.hardware, hardware);
  if (!hardware.has_gpu() && flags.hardware.empty() && wishes.vram_bytes.value_or(0) > 0) {
    hardware = policy::parse_hardware(cat("vram=", *wishes.vram_bytes, "B"), hardware);
  }
  return hardware;
}

void run(const PlanFlags& flags) {
  const policy::Wishes wishes = wishes_of(flags);
  const policy::Hardware hardware = hardware_of(flags, wishes);
  const std::string path = flags.model.file();
  const gguf::ModelFile file = gguf::ModelFile::open(path);
  const policy::ModelShape shape = model::read_shape(file);
  const policy::Plan plan = policy::make_plan(shape, hardware, wishes);
  const PlannedModel planned{path, file.file_bytes(), wishes.mtp ? policy::with_mtp(shape) : shape};
  if (flags.json) {
    std::printf("%s\n", dump(plan_json(planned, hardware, plan), 2).c_str());
  } else {
    print_plan(planned, hardware, plan);
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plan", "show what would live where, and how fast");
  auto flags = std::make_shared<PlanFlags>();  // shared: lives in the callback, after this returns
  policy::Wishes& wishes = flags->wishes;
  flags->model.add_to(*command);
  command->get_option("--ctx-size")
      ->description(cat("context of each sequence in tokens (0: what fits, ",
                        policy::kLeastAutoContext, " to ", policy::kAutoContext, ")"));
  command->add_option("--hw", flags->hardware,
                      "plan for another machine: rtx4070ti-12g+64g-ddr5, or "
                      "vram=12GiB,gpu=400GB/s,link=25GB/s,ram=64GiB,cpu=60GB/s");
  command->add_option("--vram", flags->vram, "use at most so much VRAM: 12GiB");
  command
      ->add_option_function<std::string>(
          "--moe", [&wishes](const std::string& text) { wishes.moe = moe_wish(text); },
          "where experts are: auto|cache|cpu|gpu (auto)")
      ->type_name("MODE");
  command->add_option("--n-gpu-layers", flags->n_gpu_layers, "trunk layers on the GPU, also -ngl")
      ->check(at_least(0));
  command->add_option("--n-cpu-moe", wishes.n_cpu_moe, "layers whose experts stay on the CPU")
      ->check(at_least(0));
  command->add_option("--pin-layers", flags->pin_layers,
                      "layers with all experts in VRAM: a count, or a list such as 0,1,47");
  command->add_option("--cache-slots", flags->cache_slots, "exactly so many expert slots")
      ->check(at_least(1));
  command->add_option("--parallel", wishes.n_sequences, "sequences at a time, also -np (1)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--allow-kv-quant", wishes.may_quantise_kv,
                    "quantise the KV cache to q8_0 before experts leave VRAM");
  command->add_flag("--mtp", wishes.mtp, "hold the file's MTP block too");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags] { run(*flags); });
}

}  // namespace sluice::cli
