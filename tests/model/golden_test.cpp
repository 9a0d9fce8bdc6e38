// Our logits against those of Hugging Face transformers, for one tiny random model of each
// architecture. tools/golden made the files; the reference ran in float64.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "sluice/sluice.h"

namespace sluice {
namespace {

constexpr float kBound = 2e-4f;        // on logits of +-13, with F32 weights and an F32 KV cache
constexpr float kHybridBound = 5e-4f;  // over 256 tokens, whose states all stand on one another

struct Golden {
  std::string model_path;
  std::vector<std::vector<TokenId>> sequences;
  std::vector<float> logits;  // [sequences, tokens, n_vocab]
};

Golden read_golden(const std::string& architecture) {
  const std::string base = std::string(SLUICE_TEST_DATA) + "/golden/" + architecture;
  std::ifstream json_file(base + ".json");
  const auto json = nlohmann::json::parse(json_file);
  Golden golden{base + ".gguf", json.at("tokens"), {}};
  std::ifstream binary(base + ".logits.bin", std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(binary), {});
  golden.logits.resize(bytes.size() / sizeof(float));
  std::memcpy(golden.logits.data(), bytes.data(), bytes.size());
  return golden;
}

// The largest difference over all positions of all sequences.
struct Difference {
  float value = 0.0f;
  size_t sequence = 0;
  int pos = 0;
  size_t id = 0;
  size_t n_compared = 0;
};

Difference compare(const Model& model, const Golden& golden, const SessionOptions& options) {
  Difference worst;
  const float* expected = golden.logits.data();
  for (size_t s = 0; s < golden.sequences.size(); ++s) {
    Session session(model, options);
    session.append(golden.sequences[s], [&](int pos, std::span<const float> logits) {
      for (size_t id = 0; id < logits.size(); ++id) {
        const float difference = std::abs(logits[id] - *expected++);
        ++worst.n_compared;
        if (!(difference <= worst.value)) {
          worst.value = difference;
          worst.sequence = s;
          worst.pos = pos;
          worst.id = id;
        }
      }
    });
  }
  return worst;
}

class GoldenTest : public testing::TestWithParam<std::tuple<std::string, int>> {};

TEST_P(GoldenTest, LogitsAreThoseOfTransformers) {
  const auto [architecture, chunk] = GetParam();
  const Golden golden = read_golden(architecture);
  const Model model = Model::load(golden.model_path);
  const Difference worst = compare(
      model, golden, {.k_type = KvType::f32, .v_type = KvType::f32, .prefill_chunk = chunk});
  EXPECT_EQ(worst.n_compared, golden.logits.size());
  const bool is_hybrid = architecture == "qwen35moe" || architecture == "qwen3next";
  EXPECT_LE(worst.value, is_hybrid ? kHybridBound : kBound)
      << "sequence " << worst.sequence << ", position " << worst.pos << ", token " << worst.id;
  RecordProperty("max_difference", std::to_string(worst.value));
}

std::string case_name(const testing::TestParamInfo<GoldenTest::ParamType>& info) {
  return std::get<0>(info.param) + "_in_chunks_of_" + std::to_string(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(Chunks, GoldenTest,
                         testing::Combine(testing::Values("qwen3moe", "qwen2moe", "olmoe", "llama",
                                                          "qwen35moe", "qwen3next"),
                                          testing::Values(1, 7, 64, 512)),
                         case_name);

}  // namespace
}  // namespace sluice
