// Synthetic models: the same options give the same bytes, what is written reads back, and a shape
// that makes no model leaves no file.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/synth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/random.h"
#include "quant/random_rows.h"
#include "unit/model/draft.h"
#include "unit/model/tiny_model.h"

namespace sluice::model_file::test {
namespace {

using namespace model::test;  // tiny models to start from

std::string synth_bytes(const SynthOptions& options, int n_threads) {
  const TempDir dir;
  ThreadPool pool(n_threads);
  write_synthetic_model(dir / "m.gguf", options, pool, {});
  return read_file(dir / "m.gguf");
}

TEST(Synth, TheSameOptionsGiveTheSameBytesOnAnyNumberOfThreads) {
  for (const char* architecture : kArchitectures) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K_M"}) {
      const SynthOptions options = tiny_options(architecture, mix);
      const std::string expected = synth_bytes(options, 1);
      for (const int n_threads : {1, 2, 3}) {
        EXPECT_TRUE(synth_bytes(options, n_threads) == expected)
            << architecture << " " << mix << ", " << n_threads << " threads";
      }
      EXPECT_FALSE(synth_bytes(tiny_options(architecture, mix, 2), 1) == expected)
          << architecture << " " << mix << ": the seed does nothing";
    }
  }
}

// A tensor depends on seed, name and type alone, not on what else the model has; and no two tensors
// of a model begin alike.
TEST(Synth, EachTensorIsDrawnFromItsOwnName) {
  const TempDir dir;
  SynthOptions options = tiny_options("qwen3moe", "Q8_0");
  ThreadPool pool(2);
  write_synthetic_model(dir / "two.gguf", options, pool, {});
  options.config.n_layers = 3;
  options.config.n_experts = 12;
  write_synthetic_model(dir / "three.gguf", options, pool, {});
  const Draft two = Draft::read(dir / "two.gguf");
  Draft three = Draft::read(dir / "three.gguf");
  for (const DraftTensor& t : two.tensors) {
    const DraftTensor& other = three.at(t.name);
    ASSERT_LE(t.data.size(), other.data.size());
    EXPECT_TRUE(std::equal(t.data.begin(), t.data.end(), other.data.begin())) << t.name;
    for (const DraftTensor& u : two.tensors) {
      if (u.name == t.name || u.type != t.type) continue;
      EXPECT_FALSE(std::equal(t.data.begin(), t.data.begin() + 64, u.data.begin()))
          << t.name << " and " << u.name;
    }
  }
}

// Longer than one piece of writing (16 MiB), and than what a thread takes at a time.
TEST(Synth, AMatrixIsOneStreamWithoutSeams) {
  SynthOptions options = tiny_options("qwen3moe", "F32");
  options.config.n_vocab = 66000;
  const TempDir dir;
  ThreadPool pool(2);
  write_synthetic_model(dir / "m.gguf", options, pool, {});
  const gguf::ModelFile file = gguf::ModelFile::open(dir / "m.gguf");
  for (const char* name : {"token_embd.weight", "blk.0.ffn_up_exps.weight"}) {
    const gguf::Tensor& t = *file.find(name);
    std::vector<std::byte> expected(t.n_bytes);
    quant::random_row_blocks(quant::Type::f32, seed_of(name, options.seed), 0,
                             static_cast<int64_t>(t.n_bytes / 4), options.std, expected.data());
    const auto differs = std::ranges::mismatch(expected, t.data);
    EXPECT_TRUE(differs.in1 == expected.end())
        << name << " from byte " << differs.in1 - expected.begin() << " of " << t.n_bytes;
  }
}

TEST(Synth, WhatIsWrittenBindsAndSaysWhatWasAsked) {
  for (const char* architecture : kArchitectures) {
    for (const char* mix : {"F32", "F16", "Q8_0", "MXFP4", "Q4_K_M", "IQ4_XS"}) {
      const TempDir dir;
      const SynthOptions options = tiny_options(architecture, mix);
      write_tiny(dir / "m.gguf", architecture, mix);
      const gguf::ModelFile file = gguf::ModelFile::open(dir / "m.gguf");
      const model::Model model(file);
      const model::Config &got = model.config(), &asked = options.config;
      EXPECT_EQ(got.architecture, asked.architecture);
      EXPECT_EQ(got.n_layers, asked.n_layers);
      EXPECT_EQ(got.d_model, asked.d_model);
      EXPECT_EQ(got.n_heads, asked.n_heads);
      EXPECT_EQ(got.n_kv_heads, asked.n_kv_heads);
      EXPECT_EQ(got.head_dim, asked.head_dim);
      EXPECT_EQ(got.n_vocab, asked.n_vocab);
      EXPECT_EQ(got.n_ctx_train, asked.n_ctx_train);
      EXPECT_EQ(got.n_experts, asked.n_experts);
      EXPECT_EQ(got.n_experts_used, asked.n_experts_used);
      EXPECT_EQ(got.d_ff, asked.d_ff);
      EXPECT_EQ(got.d_ff_shared, asked.d_ff_shared);
      EXPECT_EQ(got.norm_eps, asked.norm_eps);
      EXPECT_EQ(file.metadata().get_int("general.file_type"), options.mix.file_type());
      for (const gguf::Tensor& t : file.tensors()) {
        const MixContext context{asked.n_layers, asked.n_experts};
        EXPECT_EQ(t.type->name, quant::type_name(options.mix.type_of(t.name, t.shape, context)))
            << t.name;
      }
    }
  }
}

// Norms lie in [0.8, 1.2], so that they are neither neutral nor harmful.
TEST(Synth, NormsAreNearOneAndBiasesNearZero) {
  const TempDir dir;
  write_tiny(dir / "m.gguf", "qwen2moe", "F32");
  Draft draft = Draft::read(dir / "m.gguf");
  bool differs = false;
  for (const float w : draft.at("blk.0.attn_norm.weight").floats()) {
    EXPECT_NEAR(w, 1.0f, 0.2001f);
    differs |= w != 1.0f;
  }
  EXPECT_TRUE(differs);
  // Uniform with the standard deviation of the matrices, 0.25 here: at most sqrt(3) times that.
  for (const float b : draft.at("blk.0.attn_q.bias").floats()) EXPECT_NEAR(b, 0.0f, 0.4331f);
}

TEST(Synth, ReportsProgressUpToTheWhole) {
  const TempDir dir;
  ThreadPool pool(2);
  uint64_t last = 0, total = 0;
  write_synthetic_model(dir / "m.gguf", tiny_options("llama", "F32"), pool,
                        [&](uint64_t done, uint64_t of) {
                          EXPECT_GT(done, last);
                          EXPECT_TRUE(total == 0 || of == total);
                          last = done;
                          total = of;
                        });
  uint64_t n_bytes = 0;
  for (const DraftTensor& t : Draft::read(dir / "m.gguf").tensors) n_bytes += t.data.size();
  EXPECT_EQ(last, n_bytes);
  EXPECT_EQ(total, n_bytes);
}

TEST(Synth, RefusesWhatMakesNoModelAndLeavesNoFile) {
  struct Case {
    void (*change)(SynthOptions&);
    const char* part;
    Errc code = Errc::bad_request;
  };
  for (const Case& c : {
           Case{[](SynthOptions& o) { o.config.n_vocab = 258; }, "258"},
           Case{[](SynthOptions& o) { o.std = 0.0f; }, "deviation of 0"},
           Case{[](SynthOptions& o) { o.std = -1.0f; }, "deviation of -1"},
           Case{[](SynthOptions& o) { o.std = NAN; }, "deviation of nan"},
           Case{[](SynthOptions& o) { o.std = 100.0f; }, "below 100"},
           // The reader's own checks, in its words.
           Case{[](SynthOptions& o) { o.config.n_kv_heads = 3; }, "4 heads over 3",
                Errc::unsupported_model},
           Case{[](SynthOptions& o) { o.config.n_layers = 0; }, "block_count", Errc::bad_file},
           Case{[](SynthOptions& o) { o.config.d_ff = -1; }, "feed_forward_length", Errc::bad_file},
           Case{[](SynthOptions& o) { o.config.n_experts_used = 11; }, "11 of 10",
                Errc::unsupported_model},
       }) {
    const TempDir dir;
    SynthOptions options = tiny_options("qwen3moe", "F32");
    c.change(options);
    ThreadPool pool(1);
    const std::string text =
        error_of(c.code, [&] { write_synthetic_model(dir / "m.gguf", options, pool, {}); });
    expect_contains(text, c.part);
    EXPECT_TRUE(std::filesystem::is_empty(dir.path())) << c.part;
  }
}

}  // namespace
}  // namespace sluice::model_file::test
