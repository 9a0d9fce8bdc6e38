// sluice plan: what would live where, on this machine or on a described one, and how fast that
// would be.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/files/hub_models.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/model_options.h"
#include "cli/plan/plan_table.h"
#include "cli/terminal/terminal_text.h"
#include "engine/machine/session_plan.h"
#include "gguf/model_file.h"
#include "policy/plan/hardware.h"

namespace sluice::cli {
namespace {

struct PlanFlags {
  ModelOptions model;
  int n_sequences = 1;
  bool may_quantise_kv = false;
  bool mtp = false;
  bool json = false;
};

// A budget of VRAM without a GPU asks what one with so much would do.
void describe_gpu(SessionOptions& options, int n_threads) {
  DeviceOptions& device = options.device;
  if (device.kind != DeviceKind::cpu || device.vram_bytes.value_or(0) == 0) return;
  const Machine here = engine::this_machine(n_threads, device.machine_path);
  device.kind = DeviceKind::sim;
  device.sim.is_virtual = true;
  device.sim.machine = policy::parse_hardware(cat("vram=", *device.vram_bytes, "B"), here);
}

void run(const PlanFlags& flags) {
  const DescribedModel described = describe_model(flags.model.name);
  const gguf::ModelFile& file = described.file;
  SessionOptions options = flags.model.session;
  const bool may_use_gpu = options.device.kind != DeviceKind::sim;
  const GpuList gpus = may_use_gpu ? find_gpus() : GpuList{};
  engine::PlanRequest request{.file = file,
                              .options = options,
                              .n_threads = flags.model.n_threads,
                              .weights = flags.model.weights,
                              .n_sequences = flags.n_sequences,
                              .may_quantise_kv = flags.may_quantise_kv,
                              .mtp = flags.mtp};
  const engine::DeviceChoice choice = engine::choose_device(request, nullptr, gpus);
  options.device.kind = choice.kind;
  describe_gpu(options, flags.model.n_threads);
  if (options.device.kind == DeviceKind::cuda) {
    request.gpu = &engine::usable_gpu(gpus, options.device.gpu);
  }
  const engine::SessionPlan plan = engine::plan_session(request);
  for (const std::string& warning : plan.warnings) print_warning(warning);
  flags.model.warn_of_context(file);
  const PlannedModel planned{described.path, file.file_bytes(), plan, gpus,
                             choice.has_gpu ? choice.reason : ""};
  if (!described.pull_name.empty()) {
    print_note(cat("only the model's header was fetched; sluice pull ", described.pull_name,
                   " fetches all ", format_bytes(file.file_bytes())));
  }
  if (flags.json) {
    std::printf("%s\n", dump(plan_json(planned), 2).c_str());
  } else {
    print_plan(planned);
  }
}

}  // namespace

void add_plan(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plan", "show what would live where, and how fast");
  auto flags = std::make_shared<PlanFlags>();  // shared: lives in the callback, after this returns
  flags->model.add_to(*command, ModelOptions::Use::planning);
  flags->model.device.add_description_to(*command, "--hw",
                                         "plan for another machine: rtx4070ti-12g+64g-ddr5, or "
                                         "vram=12GiB,gpu=400GB/s,link=25GB/s,ram=64GiB,cpu=60GB/s");
  command->add_option("--parallel", flags->n_sequences, "sequences at a time, also -np (1)")
      ->transform(whole_number(1, 1024));
  command->add_flag("--allow-kv-quant", flags->may_quantise_kv,
                    "quantise the KV cache to q8_0 before experts leave VRAM");
  command->add_flag("--mtp", flags->mtp, "hold the file's MTP block too");
  command->add_flag("--json", flags->json, "print JSON");
  command->callback([flags] { run(*flags); });
}

}  // namespace sluice::cli
