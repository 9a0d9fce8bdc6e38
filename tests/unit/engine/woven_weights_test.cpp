// Copied or mapped, weights give the same logits to the bit; a model is copied only where it fits.
// SPDX-License-Identifier: Apache-2.0
#include "engine/woven_weights.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/units.h"
#include "sluice/sluice.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

Logits logits_with(const std::string& path, WeightMemory weights, std::span<const TokenId> tokens) {
  const Model model = Model::load(path, {.n_threads = 2, .weights = weights, .progress = {}});
  EXPECT_EQ(model.info().weights, weights);
  Session session(model, {.n_ctx = 64});
  Logits all;
  session.append(tokens, [&](int, std::span<const float> logits) {
    all.insert(all.end(), logits.begin(), logits.end());
  });
  const TokenId more[] = {7};  // and a step of one row
  session.append(more, [&](int, std::span<const float> logits) {
    all.insert(all.end(), logits.begin(), logits.end());
  });
  return all;
}

TEST(WovenWeights, GiveTheSameLogitsAsTheFile) {
  const std::vector<TokenId> tokens = random_tokens(20, 3);
  for (const char* architecture : model::test::kArchitectures) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K_M", "MXFP4"}) {
      const OpenModel model(architecture, mix);
      expect_same_bits(logits_with(model.path(), WeightMemory::mapped, tokens),
                       logits_with(model.path(), WeightMemory::copied, tokens),
                       cat(architecture, " ", mix));
    }
  }
}

TEST(WovenWeights, CountTheQuantisedMatricesOfWholeStripes) {
  const TempDir dir;
  write_tiny(dir / "m.gguf", "qwen3moe", "Q8_0");
  const gguf::ModelFile file = gguf::ModelFile::open(dir / "m.gguf");
  model::Model model(file);
  uint64_t expected = 0;
  for (const gguf::Tensor& t : file.tensors()) {
    const bool is_looked_up = t.name == "token_embd.weight";
    const bool is_quantised = !quant::is_float(static_cast<quant::Type>(t.type->id));
    if (!is_looked_up && is_quantised && t.shape[1] % 8 == 0)
      expected += (t.n_bytes + 63) / 64 * 64;
  }
  EXPECT_GT(expected, 0u);
  EXPECT_EQ(WovenWeights::bytes_for(model), expected);
}

TEST(WovenWeights, ReportProgressUpToTheEnd) {
  const OpenModel model("qwen3moe", "Q8_0");
  uint64_t last = 0, total = 0;
  Model::load(model.path(), {.n_threads = 1,
                             .weights = WeightMemory::copied,
                             .progress = [&](uint64_t done, uint64_t of) {
                               EXPECT_GT(done, last);
                               last = done, total = of;
                             }});
  EXPECT_GT(total, 0u);
  EXPECT_EQ(last, total);
}

TEST(WovenWeights, AreMadeOnlyWhereTheyLeaveRoom) {
  EXPECT_TRUE(WovenWeights::leave_room(17 * kGiB, 32 * kGiB));
  EXPECT_TRUE(WovenWeights::leave_room(28 * kGiB, 32 * kGiB));
  EXPECT_FALSE(WovenWeights::leave_room(29 * kGiB, 32 * kGiB));
  EXPECT_FALSE(WovenWeights::leave_room(7 * kGiB + kGiB / 2, 8 * kGiB));
  EXPECT_FALSE(WovenWeights::leave_room(1, kGiB));
}

TEST(WovenWeights, OfAFileThatShrinksAreRefusedInsteadOfCrashing) {
  const TempDir dir;
  write_tiny(dir / "m.gguf", "qwen3moe", "Q8_0");
  const gguf::ModelFile file = gguf::ModelFile::open(dir / "m.gguf");
  model::Model model(file);
  std::filesystem::resize_file(dir / "m.gguf", 4096);
  ThreadPool pool(2);
  const std::string error =
      error_of(Errc::bad_file, [&] { const WovenWeights woven(model, pool, {}); });
  expect_contains(error, "cannot be read");
}

}  // namespace
}  // namespace sluice::engine::test
