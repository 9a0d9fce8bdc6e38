// sluice plan: what would live where, on this machine or on a described one, and how fast that
// would be.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/command.h"
#include "cli/flags/model_options.h"
#include "cli/plan/plan_table.h"
#include "gguf/model_file.h"
#include "model_file/shape.h"
#include "policy/plan/planner.h"

namespace sluice::cli {
namespace {

struct PlanFlags {
  ModelOptions model;
  std::string hardware;
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

policy::MoeWish moe_wish(ExpertPlace place) {
  switch (place) {
    case ExpertPlace::automatic:
      return policy::MoeWish::automatic;
    case ExpertPlace::cache:
      return policy::MoeWish::cache;
    case ExpertPlace::cpu:
      return policy::MoeWish::cpu;
    case ExpertPlace::gpu:
      return policy::MoeWish::gpu;
  }
  throw Error(Errc::bad_request, "unknown place of experts");
}

policy::Wishes wishes_of(const PlanFlags& flags) {
  policy::Wishes wishes = flags.wishes;
  const SessionOptions& session = flags.model.session;
  wishes.n_ctx = session.n_ctx;
  wishes.k_type = kv_type(session.k_type);
  wishes.v_type = kv_type(session.v_type);
  wishes.prefill_chunk = session.prefill_chunk;
  const DeviceOptions& device = session.device;
  wishes.vram_bytes = device.vram_bytes;
  wishes.moe = moe_wish(device.moe);
  wishes.n_gpu_layers = device.n_gpu_layers;
  wishes.n_cpu_moe = device.n_cpu_moe;
  wishes.n_pinned = device.n_pinned_layers;
  wishes.pinned = device.pinned_layers;
  wishes.n_slots = device.n_slots;
  return wishes;
}

// A budget of VRAM without a GPU asks what one with so much would do.
policy::Hardware hardware_of(const PlanFlags& flags, const policy::Wishes& wishes) {
  policy::Hardware hardware = flags.model.machine();
  if (flags.model.device.uses_sim()) return flags.model.device.machine(hardware);
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
  const policy::ModelShape shape = model_file::read_shape(file);
  const policy::Plan plan = policy::make_plan(shape, hardware, wishes);
  PlannedModel planned{path, file.file_bytes(), wishes.mtp ? policy::with_mtp(shape) : shape, {}};
  const DeviceOptions& device = flags.model.session.device;
  if (device.kind == DeviceKind::sim && !device.sim.is_virtual) {
    planned.measured = measured_speeds(device.machine_path, device.sim, flags.model.n_threads,
                                       shape.name, planned.file_bytes);
  }
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
  flags->model.add_to(*command, ModelOptions::Use::planning);
  command->get_option("--ctx-size")
      ->description(cat("context of each sequence in tokens (0: what fits, ",
                        policy::kLeastAutoContext, " to ", policy::kAutoContext, ")"));
  command
      ->add_option("--hw", flags->hardware,
                   "plan for another machine: rtx4070ti-12g+64g-ddr5, or "
                   "vram=12GiB,gpu=400GB/s,link=25GB/s,ram=64GiB,cpu=60GB/s")
      ->excludes(command->get_option("--device"), command->get_option("--sim-machine"));
  command->add_option("--parallel", wishes.n_sequences, "sequences at a time, also -np (1)")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--allow-kv-quant", wishes.may_quantise_kv,
                    "quantise the KV cache to q8_0 before experts leave VRAM");
  command->add_flag("--mtp", wishes.mtp, "hold the file's MTP block too");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags] { run(*flags); });
}

}  // namespace sluice::cli
