// Copied or mapped, weights give the same logits to the bit; every byte of every expert stands in
// its slot; a model is copied only where it fits.
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

model_file::SynthOptions sized(const char* mix, int d_model, int d_ff) {
  model_file::SynthOptions options = model::test::tiny_options("qwen3moe", mix);
  options.config.d_model = d_model;
  options.config.d_ff = d_ff;
  return options;
}

// Every architecture and kind of mix; fused inputs; then, of one and three blocks a row, matrices
// that do not end on 16 bytes (24 rows of 51 bytes), that are no whole stripes (20 rows), and plain
// numbers of both kinds. Where d_ff is no multiple of 32, gate and up are quantised and down is
// not.
std::vector<model_file::SynthOptions> all_kinds() {
  std::vector<model_file::SynthOptions> all;
  for (const char* architecture : model::test::kArchitectures) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K_M", "MXFP4"}) {
      all.push_back(model::test::tiny_options(architecture, mix));
    }
  }
  for (const char* mix : {"F32", "Q8_0"}) {
    all.push_back(model::test::tiny_options("qwen3next", mix));
    all.back().forms = {"ssm_in", "ffn_gate_up_exps"};
  }
  all.push_back(sized("MXFP4", 96, 24));
  all.push_back(sized("MXFP4", 32, 24));
  all.push_back(sized("Q8_0", 64, 20));
  all.push_back(sized("F16", 36, 5));
  return all;
}

std::string describe(const model_file::SynthOptions& o) {
  return cat(o.config.architecture, " ", o.mix.name(), " [", o.config.d_model, ", ", o.config.d_ff,
             "]");
}

TEST(WovenWeights, GiveTheSameLogitsAsTheFile) {
  const std::vector<TokenId> tokens = random_tokens(20, 3);
  for (const model_file::SynthOptions& options : all_kinds()) {
    const OpenModel model(options);
    expect_same_bits(logits_with(model.path(), WeightMemory::mapped, tokens),
                     logits_with(model.path(), WeightMemory::copied, tokens), describe(options));
  }
}

// The matrix as it was in the file.
std::vector<std::byte> rows_of(const backend::WeightView& w) {
  std::vector<std::byte> rows(w.data, w.data + w.matrix_bytes());
  if (w.layout == quant::Layout::rows) return rows;
  for (int64_t r = 0; r < w.n_rows; ++r) {
    quant::unweave_row(w.type, w.n_cols, w.row(r / 8 * 8), static_cast<int>(r % 8),
                       rows.data() + static_cast<uint64_t>(r) * w.row_bytes());
  }
  return rows;
}

TEST(WovenWeights, HoldEveryByteOfAnExpertInOneAlignedPiece) {
  bool some_have_gaps = false, some_are_mixed = false;
  for (const model_file::SynthOptions& options : all_kinds()) {
    SCOPED_TRACE(describe(options));
    const OpenModel woven(options), file(options, Weights::mapped);
    for (size_t i = 0; i < (*woven).layers().size(); ++i) {
      const backend::ExpertsView& slots = (*woven).layers()[i].experts;
      const backend::ExpertsView& stacks = (*file).layers()[i].experts;
      const backend::ExpertLayout layout(slots);
      EXPECT_EQ(layout.n_bytes, woven.shape().layers[i].expert_bytes) << "as the planner prices it";
      for (int32_t e = 0; e < slots.gate.n_mats; ++e) {
        const backend::ExpertMatrices found = slots.expert(e), expected = stacks.expert(e);
        EXPECT_EQ(found.gate.data, slots.slots + static_cast<uint64_t>(e) * layout.stride);
        const std::byte* end = found.gate.data;  // of what stands before
        for (const auto part : {&backend::ExpertMatrices::gate, &backend::ExpertMatrices::up,
                                &backend::ExpertMatrices::down}) {
          const backend::WeightView& w = found.*part;
          EXPECT_EQ(reinterpret_cast<uintptr_t>(w.data) % 16, 0u);
          EXPECT_TRUE(w.data >= end && w.data < end + 16);
          EXPECT_EQ(w.layout == quant::Layout::stripes,
                    !quant::is_float(w.type) && w.n_rows % 8 == 0);
          EXPECT_TRUE(rows_of(w) == rows_of(expected.*part)) << "expert " << e;
          some_have_gaps |= w.data > end;
          end = w.data + w.matrix_bytes();
        }
        EXPECT_LE(end, found.gate.data + layout.stride);
        some_are_mixed |= found.gate.layout != found.down.layout;
      }
    }
  }
  EXPECT_TRUE(some_have_gaps && some_are_mixed);
}

// Memory is registered page by page, so no page belongs to two layers.
TEST(WovenWeights, BeginEveryLayersExpertsOnAPage) {
  const OpenModel model("qwen3moe", "Q8_0");
  const backend::ExpertsView &first = (*model).layers()[0].experts,
                             &second = (*model).layers()[1].experts;
  const uint64_t n_bytes = 10 * backend::ExpertLayout(first).stride;
  const auto apart = static_cast<uint64_t>(second.slots - first.slots);
  EXPECT_GE(apart, n_bytes);
  EXPECT_EQ(apart % 4096, 0u);
}

// Quantised matrices of whole stripes on cache lines; routed experts, whatever they are, in slots.
TEST(WovenWeights, CountWhatTheyCopyWithAllGaps) {
  for (const model_file::SynthOptions& options : all_kinds()) {
    const OpenModel written(options, Weights::mapped);
    const gguf::ModelFile& file = written.file();
    model::Model model(file);
    const auto n_experts = static_cast<uint64_t>(options.config.n_experts);
    uint64_t expected = 0;
    std::vector<uint64_t> layers(static_cast<size_t>(options.config.n_layers), 0);
    for (const gguf::Tensor& t : file.tensors()) {
      const bool is_looked_up = t.name == "token_embd.weight";
      const bool is_quantised = !quant::is_float(static_cast<quant::Type>(t.type->id));
      const bool is_network = options.config.is_dense &&
                              t.name.find(".ffn_") != std::string::npos &&
                              t.name.find("norm") == std::string::npos;
      if (is_network || t.name.find("_exps.") != std::string::npos) {
        layers.at(static_cast<size_t>(t.name[4] - '0')) += (t.n_bytes / n_experts + 15) / 16 * 16;
      } else if (!is_looked_up && is_quantised && t.shape[1] % 8 == 0) {
        expected = (expected + 63) / 64 * 64 + t.n_bytes;
      }
    }
    for (const uint64_t expert_bytes : layers) {
      expected = (expected + 4095) / 4096 * 4096 + n_experts * ((expert_bytes + 255) / 256 * 256);
    }
    EXPECT_GT(expected, 0u);
    EXPECT_EQ(WovenWeights::bytes_for(model), expected) << describe(options);
  }
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
