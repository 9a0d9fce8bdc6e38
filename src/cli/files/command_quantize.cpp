// sluice quantize: GGUF -> GGUF with the matrices in another type.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/files/json_text.h"
#include "cli/files/model_registry.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/hub_flags.h"
#include "cli/flags/model_options.h"
#include "cli/terminal/progress_bar.h"
#include "gguf/model_file.h"
#include "model_file/requantize.h"
#include "quant/encode.h"

namespace sluice::cli {
namespace {

struct QuantizeFlags {
  std::vector<std::string> words;
  std::string in;
  std::string out;
  std::string type;
  int n_threads = 0;
  bool json = false;
  bool types = false;
};

void print_types() {
  for (const std::string_view name : model_file::QuantMix::names()) {
    const model_file::QuantMix mix = model_file::QuantMix::parse(name);
    if (!quant::can_encode(mix.base())) continue;
    const quant::TypeInfo& type = quant::type_info(mix.base());
    const double bits =
        8.0 * static_cast<double>(type.block_bytes) / static_cast<double>(type.block_elems);
    const bool is_mix = name != type.name;
    std::printf("%-8s %5.2f bits a weight%s\n", std::string(name).c_str(), bits,
                is_mix ? ", and more in the matrices that need it" : "");
  }
}

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

// The model unless a flag gave it, the output, its type; llama.cpp takes a number of threads
// behind.
void take_words(QuantizeFlags& flags) {
  std::span<const std::string> rest = flags.words;
  const auto next = [&] {
    std::string word = rest.empty() ? "" : rest.front();
    if (!rest.empty()) rest = rest.subspan(1);
    return word;
  };
  if (flags.in.empty()) flags.in = next();
  flags.out = next();
  flags.type = next();
  const std::string threads = next();
  if (flags.type.empty() || !rest.empty()) {
    throw CLI::ValidationError(
        "expected a model, the file to write and its type, as in sluice quantize model.gguf "
        "model-Q4_K_M.gguf Q4_K_M");
  }
  if (threads.empty()) return;
  std::string number = threads;
  const std::string problem = read_whole_number(number, 0, 1024);
  if (!problem.empty()) throw CLI::ValidationError("threads", problem);
  flags.n_threads = std::stoi(number);
}

void run(const QuantizeFlags& flags) {
  if (flags.types) return print_types();
  const model_file::QuantMix mix = model_file::QuantMix::parse(flags.type);
  const gguf::ModelFile file = gguf::ModelFile::open(find_model(flags.in));
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
  CLI::Option* model =
      command->add_option("-m,--model", flags->in, "GGUF file, or a name that sluice list shows")
          ->group(kModelGroup);
  add_hub_flags(*command, flags->in, model);
  command
      ->add_option("words", flags->words,
                   "the model, the file to write and its type: F32 F16 BF16 Q8_0 Q4_0 Q4_K Q5_K "
                   "Q6_K Q4_K_M Q5_K_M")
      ->type_name("MODEL OUTPUT TYPE");
  command->add_flag("--types", flags->types, "list the types that it can write");
  command
      ->add_option("-t,--threads", flags->n_threads,
                   "CPU threads (0: one per fast core, within the container's quota)")
      ->transform(whole_number(0, 1024));
  command->add_flag("--json", flags->json, "print the result as JSON");
  command->parse_complete_callback([flags] {
    if (!flags->types) take_words(*flags);
  });
}

}  // namespace sluice::cli
