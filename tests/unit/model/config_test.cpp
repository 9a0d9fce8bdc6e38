// Reading a model's shape from its keys: what each architecture makes of them, and every way in
// which they are refused. An error names the file, what was found and what was expected.
// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <gtest/gtest.h>

#include <functional>

#include "unit/model/draft.h"
#include "unit/model/tiny_model.h"

namespace sluice::model::test {
namespace {

using Strings = std::vector<std::string>;

// Sound keys of a small model.
gguf::Metadata sound(const std::string& architecture) {
  gguf::Metadata m("m.gguf");
  const auto set = [&](const char* key, gguf::Value value) {
    m.set(architecture + "." + key, std::move(value));
  };
  m.set("general.architecture", architecture);
  m.set("general.name", std::string("small"));
  m.set("tokenizer.ggml.tokens", Strings(300, "x"));
  set("block_count", 3u);
  set("context_length", 4096u);
  set("embedding_length", 64u);
  set("feed_forward_length", 48u);
  set("attention.head_count", 4u);
  set("attention.head_count_kv", architecture == "olmoe" ? 4u : 2u);
  set("attention.layer_norm_rms_epsilon", 1e-5f);
  set("expert_count", 8u);
  set("expert_used_count", 2u);
  return m;
}

Config read(const gguf::Metadata& m) {
  const ConfigReader in(m);
  return find_architecture(in.architecture())->read_config(in);
}

TEST(Config, ReadsTheKeysAndFillsInTheDefaults) {
  for (const char* architecture : kAttending) {
    const Config c = read(sound(architecture));
    EXPECT_EQ(c.architecture, architecture);
    EXPECT_EQ(c.name, "small");
    EXPECT_EQ(c.n_layers, 3);
    EXPECT_EQ(c.d_model, 64);
    EXPECT_EQ(c.n_heads, 4);
    EXPECT_EQ(c.head_dim, 16) << "embedding_length / head_count";
    EXPECT_EQ(c.n_vocab, 300);
    EXPECT_EQ(c.n_ctx_train, 4096);
    EXPECT_EQ(c.n_experts, 8);
    EXPECT_EQ(c.n_experts_used, 2);
    EXPECT_EQ(c.norm_eps, 1e-5f);
    EXPECT_EQ(c.rope.n_rot, 16) << "the head size";
    EXPECT_EQ(c.rope.base, 10000.0f);
    EXPECT_EQ(c.rope.factor, 1.0f);
    EXPECT_EQ(c.rope.n_ctx_original, 4096) << "context_length";
    EXPECT_EQ(c.q_cols(), 64);
    EXPECT_EQ(c.kv_cols(), c.n_kv_heads * 16);
  }
}

// Spec 3.1, 3.5 to 3.8.
TEST(Config, EachArchitectureHasItsOwnWidthsAndPairing) {
  struct Case {
    const char* architecture;
    int d_ff, d_ff_shared;
    backend::RopePairing pairing;
  };
  constexpr auto kHalves = backend::RopePairing::halves, kAdjacent = backend::RopePairing::adjacent;
  for (const Case& c : {Case{"qwen3moe", 24, 0, kHalves}, Case{"qwen2moe", 24, 48, kHalves},
                        Case{"olmoe", 48, 0, kHalves}, Case{"llama", 48, 0, kAdjacent}}) {
    const Config got = read(sound(c.architecture));
    EXPECT_EQ(got.d_ff, c.d_ff) << c.architecture;
    EXPECT_EQ(got.d_ff_shared, c.d_ff_shared) << c.architecture;
    EXPECT_EQ(got.rope.pairing, c.pairing) << c.architecture;
  }
  gguf::Metadata m = sound("qwen2moe");
  m.set("qwen2moe.expert_feed_forward_length", 40u);
  m.set("qwen2moe.expert_shared_feed_forward_length", 80u);
  EXPECT_EQ(read(m).d_ff, 40);
  EXPECT_EQ(read(m).d_ff_shared, 80);
}

TEST(Config, OptionalKeysAreHonoured) {
  gguf::Metadata m = sound("qwen3moe");
  m.set("qwen3moe.attention.key_length", uint64_t{128});  // any width of integer
  m.set("qwen3moe.attention.value_length", int32_t{128});
  m.set("qwen3moe.attention.head_count", std::vector<int32_t>{4, 4, 4});
  m.set("qwen3moe.rope.freq_base", 1e6f);
  m.set("qwen3moe.rope.scaling.type", std::string("yarn"));
  m.set("qwen3moe.rope.scaling.factor", 4.0f);
  m.set("qwen3moe.rope.scaling.original_context_length", 1024u);
  m.set("qwen3moe.rope.scaling.attn_factor", 0.5f);
  Config c = read(m);
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_EQ(c.q_cols(), 512);
  EXPECT_EQ(c.rope.n_rot, 128);
  EXPECT_EQ(c.rope.base, 1e6f);
  EXPECT_EQ(c.rope.scaling, RopeScaling::yarn);
  EXPECT_EQ(c.rope.factor, 4.0f);
  EXPECT_EQ(c.rope.n_ctx_original, 1024);
  EXPECT_EQ(c.rope.attn_factor, 0.5f);

  m = sound("llama");
  m.set("llama.rope.scale_linear", 8.0f);
  EXPECT_EQ(read(m).rope.factor, 8.0f) << "the old name";
  EXPECT_EQ(read(m).rope.scaling, RopeScaling::linear) << "the default type";
  m.set("llama.rope.scaling.factor", 0.0f);
  EXPECT_EQ(read(m).rope.factor, 1.0f) << "0 means 1";
  m.set("llama.rope.scaling.type", std::string("none"));
  EXPECT_EQ(read(m).rope.scaling, RopeScaling::none);
  EXPECT_EQ(read(without(sound("llama"), "llama.attention.head_count_kv")).n_kv_heads, 4);
  m = without(sound("llama"), "tokenizer.ggml.tokens");
  m.set("llama.vocab_size", 777u);
  EXPECT_EQ(read(m).n_vocab, 777);
}

struct Refusal {
  const char* architecture;
  const char* key;  // after "<architecture>."; a full name where it has "tokenizer" or "general"
  gguf::Value value;
  std::vector<std::string> parts;  // of the error's text
  Errc code = Errc::unsupported_model;
};

TEST(Config, RefusesWhatMakesNoModel) {
  const auto bad_file = Errc::bad_file;
  for (const Refusal& c : {
           Refusal{"llama", "block_count", 4097u, {"4097", "at most 4096"}},
           {"llama", "block_count", 0u, {"is 0", "from 1"}, bad_file},
           {"llama", "block_count", std::string("3"), {"string", "an integer"}, bad_file},
           {"llama", "context_length", int32_t{-1}, {"-1", "from 1"}, bad_file},
           {"llama", "embedding_length", uint32_t{1} << 21, {"2097152", "1048576"}, bad_file},
           {"llama", "attention.head_count", std::vector<uint32_t>{4, 4, 2}, {"differs", "2 to 4"}},
           {"llama", "attention.head_count", std::vector<uint32_t>{4, 4}, {"2", "3"}, bad_file},
           {"llama", "attention.head_count", std::vector<uint32_t>{4, 2, 4}, {"differs", "2 to 4"}},
           {"llama", "attention.head_count", std::vector<uint32_t>(4, 4), {"4", "3"}, bad_file},
           {"llama", "attention.head_count", std::vector<uint32_t>{4, 0, 4}, {"is 0"}, bad_file},
           {"llama", "attention.head_count", std::vector<uint32_t>(), {"0", "3"}, bad_file},
           {"llama", "attention.head_count_kv", std::vector<uint32_t>{2, 1, 2}, {"1 to 2"}},
           {"qwen3moe", "expert_feed_forward_length", std::vector<uint32_t>{8, 9, 8}, {"8 to 9"}},
           {"qwen2moe",
            "expert_shared_feed_forward_length",
            std::vector<uint32_t>{8, 8, 9},
            {"8 to 9"}},
           {"llama", "attention.head_count_kv", 3u, {"4 heads over 3", "a whole number"}},
           {"llama", "attention.head_count_kv", 8u, {"4 heads over 8", "a whole number"}},
           {"llama", "embedding_length", 66u, {"66", "4 heads", "llama.attention.key_length"}},
           {"llama", "attention.value_length", 8u, {"length 8", "of 16", "equal"}},
           {"llama", "attention.value_length", 32u, {"length 32", "of 16", "equal"}},
           {"olmoe", "attention.value_length", 8u, {"length 8", "of 16", "equal"}},
           {"qwen2moe", "attention.value_length", 8u, {"length 8", "of 16", "equal"}},
           {"qwen3moe", "attention.value_length", 8u, {"length 8", "of 16", "equal"}},
           {"llama", "attention.layer_norm_rms_epsilon", -1e-5f, {"-1e-05", "0 or more"}},
           {"llama", "attention.layer_norm_rms_epsilon", NAN, {"finite"}, bad_file},
           {"llama", "rope.dimension_count", 7u, {"7", "an even number", "16"}},
           {"llama", "rope.dimension_count", 18u, {"18", "up to the head size 16"}},
           {"llama", "rope.dimension_count", 8u, {"8", "the head size 16"}},
           {"qwen3moe", "rope.dimension_count", 8u, {"8", "the head size 16"}},
           {"qwen2moe", "rope.dimension_count", 8u, {"8", "the head size 16"}},
           {"olmoe", "rope.dimension_count", 8u, {"8", "the head size 16"}},
           {"llama", "rope.freq_base", 1.0f, {"base 1", "above 1"}},
           {"llama", "rope.freq_base", -5.0f, {"base -5", "above 1"}},
           {"llama", "rope.scaling.factor", -2.0f, {"factor -2", "above 0"}},
           {"llama", "rope.scaling.type", std::string("longrope"), {"'longrope'", "yarn"}},
           {"llama", "rope.scaling.type", std::string("a\nb"), {"a\\x0ab", "yarn"}},
           {"llama", "rope.scaling.type", 2u, {"u32", "string"}, bad_file},
           {"llama", "expert_count", 1025u, {"2 of 1025", "1024"}},
           {"llama", "expert_used_count", 9u, {"9 of 8", "no more used"}},
           {"llama", "expert_used_count", 0u, {"is 0", "from 1"}, bad_file},
           {"llama", "feed_forward_length", std::vector<uint32_t>{48, 40, 48}, {"40 to 48"}},
           {"olmoe", "attention.head_count_kv", 2u, {"2 key-value heads", "expected 4"}},
           {"llama", "tokenizer.ggml.tokens", Strings(), {"0 tokens", "1 to"}},
           {"llama", "tokenizer.ggml.tokens", std::string("x"), {"tokenizer.ggml.tokens", "1 to"}},
       }) {
    gguf::Metadata m = sound(c.architecture);
    const std::string key = c.key;
    m.set(key.starts_with("tokenizer") ? key : cat(c.architecture, ".", key), c.value);
    const std::string text = error_of(c.code, [&] { read(m); });
    EXPECT_TRUE(text.starts_with("m.gguf: ")) << c.architecture << " " << key << ": " << text;
    for (const std::string& part : c.parts) expect_contains(text, part, key);
  }
}

TEST(Config, NamesAMissingKey) {
  for (const char* architecture : kAttending) {
    for (const char* key :
         {"block_count", "context_length", "embedding_length", "feed_forward_length",
          "attention.head_count", "attention.layer_norm_rms_epsilon", "expert_used_count"}) {
      const std::string full = cat(architecture, ".", key);
      const std::string text =
          error_of(Errc::bad_file, [&] { read(without(sound(architecture), full)); });
      expect_contains(text, cat("m.gguf: key '", full, "' is missing"));
    }
    const auto no_vocabulary = without(sound(architecture), "tokenizer.ggml.tokens");
    expect_contains(error_of(Errc::bad_file, [&] { read(no_vocabulary); }),
                    cat("'", architecture, ".vocab_size' is missing"));
  }
}

TEST(Config, ADenseModelIsRefusedWhereTheArchitectureHasExperts) {
  for (const char* architecture : {"qwen3moe", "qwen2moe", "olmoe", "qwen35moe", "qwen3next"}) {
    const auto key = cat(architecture, ".expert_count");
    gguf::Metadata zero = sound(architecture);
    zero.set(key, uint32_t{0});
    for (const gguf::Metadata& dense : {without(sound(architecture), key), zero}) {
      const std::string text = error_of(Errc::unsupported_model, [&] { read(dense); });
      expect_contains(text, "m.gguf: a dense model");
      expect_contains(text, key);
    }
  }
}

TEST(Config, ADenseNetworkIsOneExpertThatEveryTokenUses) {
  gguf::Metadata zero = sound("qwen3");
  zero.set("qwen3.expert_count", uint32_t{0});
  for (const gguf::Metadata& dense : {without(sound("qwen3"), "qwen3.expert_count"), zero,
                                      without(sound("llama"), "llama.expert_count")}) {
    const Config c = read(dense);
    EXPECT_TRUE(c.is_dense);
    EXPECT_EQ(c.n_experts, 1);
    EXPECT_EQ(c.n_experts_used, 1);
    EXPECT_EQ(c.d_ff, dense.get_int(cat(c.architecture, ".feed_forward_length")));
    EXPECT_EQ(c.d_ff_shared, 0);
  }
  EXPECT_FALSE(read(sound("llama")).is_dense);
}

TEST(Config, ExpertsAreRefusedWhereTheArchitectureIsDense) {
  const gguf::Metadata m = sound("qwen3");
  const std::string text = error_of(Errc::unsupported_model, [&] { read(m); });
  expect_contains(text, "qwen3.expert_count is 8");
  expect_contains(text, "expected a dense model");
}

TEST(Config, AnUnknownArchitectureIsAnsweredWithTheKnownOnes) {
  for (const char* name : {"gemma3", "Llama", ""}) {
    gguf::Metadata m("m.gguf");
    m.set("general.architecture", std::string(name));
    const std::string text =
        error_of(Errc::unsupported_model, [&] { architecture_of(ConfigReader(m)); });
    expect_contains(text, cat("m.gguf: architecture '", name, "'"));
    for (const char* known : kArchitectures) expect_contains(text, known);
  }
  gguf::Metadata forged("m.gguf");
  forged.set("general.architecture", std::string("x\nsluice: all is well"));
  error_of(Errc::unsupported_model, [&] { architecture_of(ConfigReader(forged)); });
  const gguf::Metadata nothing("m.gguf");
  expect_contains(error_of(Errc::bad_file, [&] { ConfigReader in(nothing); }),
                  "m.gguf: key 'general.architecture' is missing");
}

}  // namespace
}  // namespace sluice::model::test
