// A tiny model, opened, and a stepper with threads of its own that collects logits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/random.h"
#include "engine/step/stepper.h"
#include "engine/woven_weights.h"
#include "model_file/shape.h"
#include "unit/backend/expect.h"
#include "unit/model/draft.h"
#include "unit/model/tiny_model.h"

namespace sluice::engine::test {

using backend::test::expect_same_bits;
using model::test::Draft;
using model::test::error_of;
using model::test::expect_contains;
using model::test::TempDir;
using model::test::write_tiny;

enum class Weights { woven, mapped };  // as Model::load copies them, or in the file

class OpenModel {
 public:
  OpenModel(const std::string& architecture, const std::string& mix,
            Weights weights = Weights::woven)
      : OpenModel([&](const std::string& path) { write_tiny(path, architecture, mix); }, weights) {}
  explicit OpenModel(const model_file::SynthOptions& options, Weights weights = Weights::woven)
      : OpenModel(
            [&](const std::string& path) {
              ThreadPool pool(1);
              write_synthetic_model(path, options, pool, {});
            },
            weights) {}
  explicit OpenModel(const Draft& draft, Weights weights = Weights::woven)
      : OpenModel([&](const std::string& path) { draft.write(path); }, weights) {}

  const model::Model& operator*() const { return model_; }
  const gguf::ModelFile& file() const { return file_; }
  policy::ModelShape shape() const { return model_file::read_shape(file_); }
  std::string path() const { return dir_ / "m.gguf"; }

 private:
  template <typename Write>
  requires std::is_invocable_v<Write, std::string> OpenModel(const Write& write, Weights weights)
      : file_((write(dir_ / "m.gguf"), gguf::ModelFile::open(dir_ / "m.gguf"))), model_(file_) {
    ThreadPool pool(1);
    if (weights == Weights::woven) woven_.emplace(model_, pool, WovenWeights::Progress{});
  }

  TempDir dir_;
  gguf::ModelFile file_;
  model::Model model_;
  std::optional<WovenWeights> woven_;
};

inline std::vector<TokenId> random_tokens(size_t n, uint64_t seed) {
  std::vector<TokenId> tokens(n);
  for (size_t i = 0; i < n; ++i) tokens[i] = static_cast<TokenId>(random_bits(seed, i) % 261);
  return tokens;
}

struct RunOptions {
  int n_threads = 2;
  int max_rows = 64;
  KvOptions kv{.n_sequences = 1, .n_ctx = 96, .page_tokens = 16};
};

// The logits of a sequence's tokens, one after another.
using Logits = std::vector<float>;

class Runner {
 public:
  explicit Runner(const model::Model& model, const RunOptions& options = {})
      : pool_(options.n_threads),
        stepper_(model, backend::make_cpu_ops(pool_), options.kv, options.max_rows) {}

  Stepper& stepper() { return stepper_; }

  // One step; what row i gives is appended to *outs[i].
  void step(std::span<const StepRow> rows, std::span<Logits* const> outs) {
    stepper_.step(rows, policy::Phase::prefill, {[&](int64_t row, std::span<const float> logits) {
                    Logits& out = *outs[static_cast<size_t>(row)];
                    out.insert(out.end(), logits.begin(), logits.end());
                  }});
  }

  // The tokens of one sequence, `chunk` at a time, with the logits of each.
  Logits append(std::span<const TokenId> tokens, size_t chunk, SequenceId sequence = {}) {
    Logits all;
    for (size_t begin = 0; begin < tokens.size(); begin += chunk) {
      std::vector<StepRow> rows;
      for (const TokenId token : tokens.subspan(begin, std::min(chunk, tokens.size() - begin))) {
        rows.push_back({token, sequence, true});
      }
      step(rows, std::vector<Logits*>(rows.size(), &all));
    }
    return all;
  }

 private:
  ThreadPool pool_;
  Stepper stepper_;
};

inline Logits run_alone(const model::Model& model, std::span<const TokenId> tokens,
                        size_t chunk = 64, const RunOptions& options = {}) {
  return Runner(model, options).append(tokens, chunk);
}

}  // namespace sluice::engine::test
