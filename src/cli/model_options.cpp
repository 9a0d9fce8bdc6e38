// See model_options.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/model_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "cli/flag_checks.h"
#include "cli/progress_bar.h"

namespace sluice::cli {
namespace {

template <typename T>
using Named = std::pair<std::string_view, T>;

constexpr Named<KvType> kKvTypes[] = {{"f32", KvType::f32},
                                      {"f16", KvType::f16},
                                      {"bf16", KvType::bf16},
                                      {"q8_0", KvType::q8_0},
                                      {"q4_0", KvType::q4_0}};
constexpr Named<WeightMemory> kWeightMemories[] = {{"auto", WeightMemory::automatic},
                                                   {"copied", WeightMemory::copied},
                                                   {"mapped", WeightMemory::mapped}};

// A flag that takes one of some values by name, in any case.
template <typename T, size_t n>
void add_choice(CLI::App& command, const std::string& flag, const Named<T> (&names)[n], T& value,
                const std::string& what) {
  const auto parse = [&value, &names, flag](const std::string& text) {
    const std::string name = CLI::detail::to_lower(text);
    const auto* found = std::ranges::find(names, name, &Named<T>::first);
    if (found == std::end(names)) {
      std::string known;
      for (size_t i = 0; i < n; ++i) {
        known += cat(i == 0 ? "" : i + 1 < n ? ", " : " or ", names[i].first);
      }
      throw CLI::ValidationError(flag, cat("'", text, "'; expected ", known));
    }
    value = found->second;
  };
  command.add_option_function<std::string>(flag, parse, what)->type_name("TYPE");
}

}  // namespace

void ModelOptions::add_to(CLI::App& command) {
  CLI::Option* model = command.add_option(
      "-m,--model", name, "GGUF file (of a split model the first shard), or a name: demo-attn");
  if (name.empty()) model->required();
  command
      .add_option("-t,--threads", n_threads,
                  "CPU threads (0: one per fast core, within the container's quota)")
      ->check(CLI::Range(0, 1024));
  command
      .add_option("-c,--ctx-size", session.n_ctx, "context in tokens (0: as trained, at most 4096)")
      ->check(at_least(0));
  add_choice(command, "--weights", kWeightMemories, weights,
             "copied into memory, where they are read fastest, or mapped from the file: "
             "auto|copied|mapped (auto: copied where they fit)");
  add_choice(command, "--cache-type-k", kKvTypes, session.k_type,
             "type of cached keys, also -ctk: f32|f16|bf16|q8_0|q4_0 (f16)");
  add_choice(command, "--cache-type-v", kKvTypes, session.v_type,
             "type of cached values, also -ctv (f16)");
  command
      .add_option("--prefill-chunk", session.prefill_chunk,
                  "prompt tokens computed together; 1 is pure decode (512)")
      ->check(at_least(1));
}

CLI::Option* ModelOptions::add_tokens_to(CLI::App& command) {
  return command.add_option("--tokens", tokens, "prompt as token ids: 1,2,3");
}

Model ModelOptions::load() const {
  LoadOptions options{.n_threads = n_threads, .weights = weights, .progress = {}};
  ProgressBar bar("loading");
  if (bar.visible()) {
    options.progress = [&](uint64_t done, uint64_t total) { bar.update(done, total); };
  }
  return Model::load(file(), options);
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
