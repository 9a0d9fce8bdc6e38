// See model_options.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/model_options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/hub_flags.h"
#include "cli/flags/named_values.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/terminal_text.h"
#include "engine/machine/session_plan.h"
#include "gguf/model_file.h"
#include "hub/repo_name.h"

namespace sluice::cli {
namespace {

constexpr Named<KvType> kKvTypes[] = {{"f32", KvType::f32},
                                      {"f16", KvType::f16},
                                      {"bf16", KvType::bf16},
                                      {"q8_0", KvType::q8_0},
                                      {"q4_0", KvType::q4_0}};
constexpr Named<WeightMemory> kWeightMemories[] = {{"auto", WeightMemory::automatic},
                                                   {"copied", WeightMemory::copied},
                                                   {"mapped", WeightMemory::mapped}};

constexpr const char* kModelIs =
    "GGUF file (of a split model the first shard), or a name that sluice list shows";

// "yarn by 4, from 32768 tokens"; "none".
std::string rope_scaling_of(const gguf::Metadata& keys, const std::string& arch) {
  const std::string scaling = arch + ".rope.scaling.";
  const float factor =
      keys.get_float_or(scaling + "factor", keys.get_float_or(arch + ".rope.scale_linear", 1.0f));
  const std::string type = keys.get_string_or(scaling + "type", factor == 1.0f ? "none" : "linear");
  if (type == "none" || factor == 0.0f) return "none";
  const int64_t from = keys.get_int_or(scaling + "original_context_length", 0);
  return cat(type, " by ", factor, from > 0 ? cat(", from ", from, " tokens") : "");
}

}  // namespace

CLI::Option* add_model_name(CLI::App& command, std::string& name) {
  CLI::Option* model = command.add_option("-m,--model,model", name, kModelIs)->group(kModelGroup);
  add_hub_flags(command, name, model);
  return model;
}

void ModelOptions::add_to(CLI::App& command, Use use) {
  const size_t n_before = command.get_options().size();
  if (sort_words) {
    add_hub_flags(command, name,
                  command.add_option("-m,--model", name, kModelIs)->group(kModelGroup));
  } else {
    CLI::Option* model = add_model_name(command, name);
    if (name.empty()) model->required();
  }
  command
      .add_option("-t,--threads", n_threads,
                  "CPU threads (0: one per fast core, within the container's quota)")
      ->transform(whole_number(0, 1024));
  command
      .add_option("-c,--ctx-size", session.n_ctx, "context in tokens (0: as trained, at most 4096)")
      ->transform(at_least(0));
  add_choice(command, "--weights", kWeightMemories, weights,
             "copied into memory, where they are read fastest, or mapped from the file: "
             "auto|copied|mapped (auto: copied where they fit)");
  add_choice(command, "--cache-type-k", kKvTypes, session.k_type,
             "type of cached keys, also -ctk: f32|f16|bf16|q8_0|q4_0 (f16)");
  add_choice(command, "--cache-type-v", kKvTypes, session.v_type,
             "type of cached values, also -ctv (f16)");
  command
      .add_option(
          "--prefill-chunk", session.prefill_chunk,
          "prompt tokens computed together, also -ub; 1 is pure decode (512 on the CPU, more "
          "where a device's memory allows)")
      ->transform(at_least(1));
  const size_t n_model = command.get_options().size();
  device.add_placement_to(command);
  if (use == Use::computing) {
    device.add_runtime_to(command);
  } else {
    device.add_kept_to(command);
  }
  const auto options = command.get_options();
  for (size_t i = n_before; i < options.size(); ++i) {
    options[i]->group(i < n_model ? kModelGroup : kPlacementGroup);
  }
  command.parse_complete_callback([this, use] {
    if (sort_words) sort_words();
    const std::string measured = device.machine_path();
    session.device = device.options(engine::this_machine(n_threads, measured));
    session.device.machine_path = measured;
    if (device.uses_sim() || use == Use::planning) {
      // A plan fetches nothing: a model that is not here has no profile either.
      const auto remote = use == Use::planning ? hub::parse_hub_name(name) : std::nullopt;
      const auto here = remote ? find_in_repos(*remote, /*usual_only=*/true) : std::nullopt;
      const std::string path = !remote ? file() : here ? here->path : "";
      session.device.profile_path = path.empty() ? "" : device.profile_path(path);
    }
  });
}

CLI::Option* ModelOptions::add_tokens_to(CLI::App& command) {
  return command.add_option("--tokens", tokens, "prompt as token ids: 1,2,3");
}

Model ModelOptions::load() const {
  LoadOptions options{.n_threads = n_threads, .weights = weights, .progress = {}};
  ProgressBar bar("loading");
  if (bar.visible()) options.progress = bar.updater();
  return Model::load(file(), options);
}

void ModelOptions::warn_of_context(const gguf::ModelFile& opened) const {
  const gguf::Metadata& keys = opened.metadata();
  const std::string arch = keys.get_string_or("general.architecture", "");
  const int64_t n_ctx_train = keys.get_int_or(arch + ".context_length", 0);
  if (n_ctx_train <= 0 || session.n_ctx <= n_ctx_train) return;
  print_warning(cat("a context of ", session.n_ctx, " tokens is more than the ", n_ctx_train,
                    " that the model was trained for, so answers may go wrong beyond; the file's "
                    "rope scaling: ",
                    rope_scaling_of(keys, arch)));
}

// The file is mapped once more, which there may be no room for, so only where there is cause.
void ModelOptions::warn_of_context(const Model& model) const {
  const int n_ctx_train = model.info().n_ctx_train;
  if (n_ctx_train > 0 && session.n_ctx > n_ctx_train) {
    warn_of_context(gguf::ModelFile::open(file()));
  }
}

Session open_session(const Model& model, SessionOptions options) {
  std::optional<ProgressBar> bar("loading the device");
  if (bar->visible()) options.progress = bar->updater();
  Session session(model, options);
  bar.reset();
  if (!model.info().ignored.empty()) print_warning(model.info().ignored);
  for (const std::string& warning : session.placement().warnings) print_warning(warning);
  return session;
}

std::vector<TokenId> ModelOptions::token_ids() const {
  std::vector<TokenId> ids;
  const char* next = tokens.data();
  const char* const end = next + tokens.size();
  while (next < end) {
    while (next < end && (*next == ' ' || *next == ',')) ++next;
    if (next == end) break;
    TokenId id = 0;
    const auto [stop, error] = std::from_chars(next, end, id);
    if (error != std::errc() || (stop != end && *stop != ',' && *stop != ' ')) {
      const std::string_view rest(next, static_cast<size_t>(end - next));
      throw Error(Errc::bad_request, cat("'", rest.substr(0, rest.find(',')).substr(0, 40),
                                         "' is no token id; expected numbers such as 1,2,3"));
    }
    ids.push_back(id);
    next = stop;
  }
  if (ids.empty()) {
    throw Error(Errc::bad_request,
                "the prompt is empty; give at least one token id, such as --tokens 1,2,3");
  }
  return ids;
}

}  // namespace sluice::cli
