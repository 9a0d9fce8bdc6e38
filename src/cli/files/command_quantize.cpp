// sluice quantize: GGUF -> GGUF with the matrices in another type.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/files/json_text.h"
#include "cli/terminal/progress_bar.h"
#include "gguf/model_file.h"
#include "model_file/requantize.h"

namespace sluice::cli {
namespace {

struct QuantizeFlags {
  std::string in;
  std::string out;
  std::string type;
  int n_threads = 0;
  bool json = false;
};

// Writing must not touch what is being read: not any shard of it, and not under the name that the
// output has while it is incomplete.
void require_other_files(const gguf::ModelFile& in, const std::string& out) {
  for (const std::string& path : in.paths()) {
    for (const std::string& target : {out, out + ".partial"}) {
      std::error_code ignored;  // a target that is not there yet is no input
      if (!std::filesystem::equivalent(path, target, ignored)) continue;
      throw Error(Errc::bad_request,
                  cat(target, ": is the input itself; give another output file"));
    }
  }
}

void run(const QuantizeFlags& flags) {
  const model_file::QuantMix mix = model_file::QuantMix::parse(flags.type);
  const gguf::ModelFile file = gguf::ModelFile::open(flags.in);
  require_other_files(file, flags.out);
  ThreadPool pool(flags.n_threads);
  model_file::RequantizeResult result;
  {
    ProgressBar bar("quantising");
    result = model_file::requantize(file, flags.out, mix, pool, bar.updater());
  }
  if (result.n_from_quantized > 0) {
    std::fprintf(stderr,
                 "sluice: note: %d tensors were quantised already; from an F32, F16 or BF16 file "
                 "the result is more exact\n",
                 result.n_from_quantized);
  }
  if (flags.json) {
    const Json object = {{"path", flags.out},
                         {"bytes_before", result.bytes_before},
                         {"bytes_after", result.bytes_after},
                         {"n_converted", result.n_converted},
                         {"n_kept", result.n_kept}};
    std::printf("%s\n", dump(object).c_str());
  } else {
    std::printf("%s: %s, %d tensors converted, %d kept, %s -> %s\n", flags.out.c_str(),
                mix.name().c_str(), result.n_converted, result.n_kept,
                format_bytes(result.bytes_before).c_str(),
                format_bytes(result.bytes_after).c_str());
  }
}

}  // namespace

void add_quantize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("quantize", "write a model in another type");
  const auto flags = flags_for<QuantizeFlags>(*command, run);
  command->add_option("input", flags->in, "GGUF file")->required();
  command->add_option("output", flags->out, "file to write")->required();
  command->add_option("type", flags->type, "F32 F16 BF16 Q8_0 Q4_0 Q4_K Q5_K Q6_K Q4_K_M Q5_K_M")
      ->required();
  command
      ->add_option("-t,--threads", flags->n_threads,
                   "CPU threads (0: one per fast core, within the container's quota)")
      ->check(CLI::Range(0, 1024));
  command->add_flag("--json", flags->json, "print the result as JSON");
}

}  // namespace sluice::cli
