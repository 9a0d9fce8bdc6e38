// See loaded_model.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/loaded_model.h"

#include "base/error.h"
#include "base/free_memory.h"

namespace sluice {
namespace engine {
namespace {

ModelInfo make_info(const gguf::ModelFile& file, const model::Config& c) {
  ModelInfo info{.path = file.metadata().origin(),
                 .architecture = c.architecture,
                 .name = c.name,
                 .n_layers = c.n_layers,
                 .d_model = c.d_model,
                 .n_vocab = c.n_vocab,
                 .n_ctx_train = c.n_ctx_train,
                 .n_experts = c.n_experts,
                 .n_experts_used = c.n_experts_used,
                 .is_dense = c.is_dense,
                 .file_bytes = file.file_bytes(),
                 .eos = {},
                 .weights = WeightMemory::mapped,
                 .ignored = {}};
  const std::string_view key = "tokenizer.ggml.eos_token_id";
  if (file.metadata().contains(key)) {
    info.eos = static_cast<TokenId>(file.metadata().get_int(key, {0, c.n_vocab - 1}));
  }
  return info;
}

}  // namespace

LoadedModel::LoadedModel(const std::string& path, const LoadOptions& options)
    : file(gguf::ModelFile::open(path)),
      model(file),
      info(make_info(file, model.config())),
      pool(std::make_unique<ThreadPool>(options.n_threads)) {
  info.ignored = model.ignored();
  info.weights = choose_memory(options.weights);
  if (info.weights == WeightMemory::copied) copy_weights(options);
  // Reading ahead what does not fit into memory would only push out its own beginning.
  if (info.weights == WeightMemory::mapped && options.progress &&
      info.file_bytes < free_memory().bytes) {
    file.populate(options.progress);
  }
}

// Memory that is free may still be refused, by a limit of this process.
void LoadedModel::copy_weights(const LoadOptions& options) {
  try {
    const uint64_t n_bytes = WovenWeights::bytes_for(model);
    woven.emplace(model, *pool, options.progress);
    held_bytes = n_bytes;
  } catch (const Error& e) {
    if (options.weights == WeightMemory::copied || e.code() != Errc::out_of_memory) throw;
    info.weights = WeightMemory::mapped;
  }
}

WeightMemory LoadedModel::choose_memory(WeightMemory wish) {
  if (wish != WeightMemory::automatic) return wish;
  const uint64_t n_bytes = WovenWeights::bytes_for(model);
  const bool fits = WovenWeights::leave_room(n_bytes, free_memory().bytes);
  return fits ? WeightMemory::copied : WeightMemory::mapped;
}

void LoadedModel::require_tokens(std::span<const TokenId> tokens) const {
  for (const TokenId token : tokens) {
    if (token >= 0 && token < info.n_vocab) continue;
    throw Error(Errc::bad_request,
                cat("token id ", token, " is out of range; expected 0 to ", info.n_vocab - 1));
  }
}

}  // namespace engine

Model Model::load(const std::string& path, const LoadOptions& options) {
  if (options.n_threads < 0 || options.n_threads > 1024) {
    throw Error(Errc::bad_request,
                cat(options.n_threads, " threads; expected 1 to 1024, or 0 for one per core"));
  }
  return Model(std::make_shared<const Impl>(path, options));
}

const ModelInfo& Model::info() const { return impl_->info; }

}  // namespace sluice
