// What Model::load makes of a file, shared by all sessions and engines that run it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/thread_pool.h"
#include "engine/woven_weights.h"
#include "gguf/model_file.h"
#include "model/model.h"
#include "sluice/sluice.h"

namespace sluice::engine {

struct LoadedModel {
  LoadedModel(const std::string& path, const LoadOptions& options);

  // Throws Errc::bad_request where one of them is no token of the model.
  void require_tokens(std::span<const TokenId> tokens) const;

  gguf::ModelFile file;
  model::Model model;
  ModelInfo info;
  std::unique_ptr<ThreadPool> pool;
  std::optional<WovenWeights> woven;
  uint64_t held_bytes = 0;  // by them, in memory that is no longer free

 private:
  void copy_weights(const LoadOptions& options);
  WeightMemory choose_memory(WeightMemory wish);
};

}  // namespace sluice::engine

namespace sluice {

struct SLUICE_HIDDEN Model::Impl : engine::LoadedModel {
  using LoadedModel::LoadedModel;
};

}  // namespace sluice
