// Keys and tensor directories that make no model, and architectures that only plan() may see.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "model/architecture.h"
#include "unit/model_file/shape_models.h"

namespace sluice::model_file::test {
namespace {

TEST(ShapeRefusal, RefusesDirectoriesThatMakeNoModel) {
  const auto changed = [](auto change) {
    Directory d = qwen3_30b();
    change(d);
    return d.refusal();
  };
  expect_contains(changed([](Directory& d) { d.set("block_count", int64_t{47}); }), "0 to 46");
  expect_contains(changed([](Directory& d) { d.set("block_count", int64_t{49}); }),
                  "'blk.48.attn_norm.weight' is missing");
  expect_contains(changed([](Directory& d) { d.set("block_count", int64_t{5000}); }), "4096");
  expect_contains(changed([](Directory& d) { d.set("expert_count", int64_t{64}); }),
                  "'blk.0.ffn_gate_inp.weight' has shape [2048, 128]; expected [2048, 64]");
  expect_contains(changed([](Directory& d) { d.set("attention.head_count_kv", int64_t{2}); }),
                  "'blk.0.attn_k.weight' has shape [2048, 512]; expected [2048, 256]");
  expect_contains(changed([](Directory& d) { d.tensors().erase(d.tensors().begin()); }),
                  "'token_embd.weight' is missing");
  expect_contains(changed([](Directory& d) { d.add_to(-1, Type::f32, "attn_norm 4"); }),
                  "'blk.-1.attn_norm.weight' belongs to no layer");
}

// Of the parts that only such architectures have.
TEST(ShapeRefusal, RefusesKeysThatMakeNoModel) {
  struct Case {
    Directory directory;
    const char* key;
    int64_t value;
    const char* text;
    Errc code = Errc::unsupported_model;
  };
  const auto hybrid = [] { return Directory("qwen35moe", hybrid_keys(40, 256, 8)); };
  for (Case c : {
           Case{qwen3_30b(), "expert_count", 0, "a dense model (no qwen3moe.expert_count)"},
           Case{hybrid(), "nextn_predict_layers", 40, "is 40", Errc::bad_file},
           Case{hybrid(), "nextn_predict_layers", -1, "is -1", Errc::bad_file},
           Case{hybrid(), "ssm.inner_size", 4097, "4097; expected 32 value heads of 128"},
           Case{hybrid(), "ssm.group_count", 5, "32 value heads over 5 key heads of 128"},
           Case{hybrid(), "ssm.conv_kernel", 0, "is 0", Errc::bad_file},
           Case{hybrid(), "full_attention_interval", 0, "is 0", Errc::bad_file},
           Case{hybrid(), "attention.value_length", 128, "128 beside keys of 256"},
           Case{gpt_oss(), "attention.sliding_window", 0, "is 0", Errc::bad_file},
           Case{gpt_oss(), "attention.sliding_window_pattern", 0, "is 0", Errc::bad_file},
           Case{deepseek(false), "rope.dimension_count", 192, "less than the head size 192"},
           Case{deepseek(false), "leading_dense_block_count", 28, "is 28", Errc::bad_file},
           Case{deepseek(false), "expert_shared_count", 1 << 20, "is 1048576", Errc::bad_file},
       }) {
    c.directory.set(c.key, c.value);
    if (c.directory.tensors().empty()) c.directory.set("vocab_size", int64_t{100});
    expect_contains(c.directory.refusal(c.code), c.text, c.key);
  }
  const Directory unknown("gemma9", "block_count 2");
  const std::string text = unknown.refusal();
  for (const char* part : {"'gemma9' is not known", "qwen3moe", "gpt-oss", "deepseek2"}) {
    expect_contains(text, part);
  }
}

// What plans for a file says of it agrees with who runs it: the same binding asks for both.
TEST(ShapeRefusal, ArchitecturesThatCannotRunYetAreRefusedByTheModelAlone) {
  for (const char* name : {"gpt-oss", "glm4moe", "deepseek2"}) {
    gguf::Metadata metadata("m.gguf");
    metadata.set("general.architecture", std::string(name));
    const model::ConfigReader in(metadata);
    EXPECT_EQ(model::described_architecture_of(in).name, name);
    const std::string text = error_of(Errc::unsupported_model, [&] { model::architecture_of(in); });
    expect_contains(text, cat("'", name, "' is not supported yet"));
  }
}

}  // namespace
}  // namespace sluice::model_file::test
