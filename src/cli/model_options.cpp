// See model_options.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/model_options.h"

#include <charconv>
#include <map>

#include "base/error.h"
#include "cli/progress_bar.h"

namespace sluice::cli {
namespace {

const std::map<std::string, KvType> kKvTypes = {{"f32", KvType::f32},
                                                {"f16", KvType::f16},
                                                {"bf16", KvType::bf16},
                                                {"q8_0", KvType::q8_0},
                                                {"q4_0", KvType::q4_0}};

}  // namespace

void ModelOptions::add_to(CLI::App& command) {
  command.add_option("-m,--model", path, "GGUF file; of a split model the first shard")->required();
  command.add_option("--tokens", tokens, "prompt as token ids: 1,2,3")->required();
  command.add_option("-t,--threads", n_threads, "CPU threads (0: all cores)")
      ->check(CLI::Range(0, 1024));
  command
      .add_option("-c,--ctx-size", session.n_ctx, "context in tokens (0: as trained, at most 4096)")
      ->check(CLI::NonNegativeNumber);
  const auto kv_type =
      CLI::CheckedTransformer(kKvTypes, CLI::ignore_case).description("f32|f16|bf16|q8_0|q4_0");
  command.add_option("--cache-type-k", session.k_type, "type of cached keys, also -ctk (f16)")
      ->transform(kv_type);
  command.add_option("--cache-type-v", session.v_type, "type of cached values, also -ctv (f16)")
      ->transform(kv_type);
  command
      .add_option("--prefill-chunk", session.prefill_chunk,
                  "prompt tokens computed together; 1 is pure decode (512)")
      ->check(CLI::PositiveNumber);
}

Model ModelOptions::load() const {
  LoadOptions options{.n_threads = n_threads, .progress = {}};
  ProgressBar bar("loading");
  if (bar.visible()) {
    options.progress = [&](uint64_t done, uint64_t total) { bar.update(done, total); };
  }
  return Model::load(path, options);
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
