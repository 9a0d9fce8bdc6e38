// Which type each tensor of a written model gets: names, substitutes for short rows, and the rules
// of Q4_K_M as the spec's section 2.2 states them.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/quant_mix.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/error.h"
#include "unit/model/tiny_model.h"

namespace sluice::model_file::test {
namespace {

using namespace model::test;  // tiny models to start from

using quant::Type;

struct Named {
  std::string name;
  std::vector<int64_t> shape;
};

// The matrices and vectors of Qwen3-30B-A3B (and, with 8 experts, of a model like Mixtral).
std::vector<Named> tensors_of(int n_layers, int64_t n_experts) {
  std::vector<Named> out = {{"token_embd.weight", {2048, 151936}},
                            {"output_norm.weight", {2048}},
                            {"output.weight", {2048, 151936}}};
  for (int i = 0; i < n_layers; ++i) {
    const auto add = [&](const char* name, std::vector<int64_t> shape) {
      out.push_back({cat("blk.", i, ".", name, ".weight"), std::move(shape)});
    };
    add("attn_norm", {2048});
    add("attn_q", {2048, 4096});
    add("attn_k", {2048, 512});
    add("attn_v", {2048, 512});
    add("attn_q_norm", {128});
    add("attn_k_norm", {128});
    add("attn_output", {4096, 2048});
    add("ffn_norm", {2048});
    add("ffn_gate_inp", {2048, n_experts});
    add("ffn_gate_exps", {2048, 768, n_experts});
    add("ffn_up_exps", {2048, 768, n_experts});
    add("ffn_down_exps", {768, 2048, n_experts});
  }
  return out;
}

Type type_of(const char* mix, const std::string& tensor, std::vector<int64_t> shape = {256, 256},
             MixContext context = {48, 128}) {
  return QuantMix::parse(mix).type_of(tensor, shape, context);
}

TEST(QuantMix, KnowsEveryTypeAndTheTwoMixesInAnyCase) {
  for (const Type type : quant::supported_types()) {
    const QuantMix mix = QuantMix::parse(quant::type_name(type));
    EXPECT_EQ(mix.base(), type);
    EXPECT_EQ(mix.name(), quant::type_name(type));
  }
  EXPECT_EQ(QuantMix::parse("q4_k_m").name(), "Q4_K_M");
  EXPECT_EQ(QuantMix::parse("q4_K_m").base(), Type::q4_k);
  EXPECT_EQ(QuantMix::parse("Q5_K_M").base(), Type::q5_k);
}

// llama.cpp's numbers of the file types, which other tools show.
TEST(QuantMix, NamesItsFileType) {
  for (const auto& [name, id] : {std::pair("F32", 0u),
                                 {"F16", 1u},
                                 {"Q4_0", 2u},
                                 {"Q8_0", 7u},
                                 {"Q2_K", 10u},
                                 {"Q4_K", 14u},
                                 {"Q4_K_M", 15u},
                                 {"Q5_K_M", 17u},
                                 {"Q6_K", 18u},
                                 {"BF16", 32u},
                                 {"MXFP4", 38u}}) {
    EXPECT_EQ(QuantMix::parse(name).file_type(), id) << name;
  }
}

TEST(QuantMix, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  for (const char* name : {"", "Q4", "Q4_K_S", "IQ2_XXS", "Q4_K_M "}) {
    const std::string text = error_of(Errc::bad_request, [&] { QuantMix::parse(name); });
    expect_contains(text, cat("'", name, "'"));
    expect_contains(text, "Q4_K_M");
    expect_contains(text, "MXFP4");
  }
}

TEST(QuantMix, VectorsAndRoutersStayF32) {
  for (const char* mix : {"Q4_K_M", "Q8_0", "F16", "MXFP4"}) {
    EXPECT_EQ(type_of(mix, "blk.0.attn_norm.weight", {2048}), Type::f32) << mix;
    EXPECT_EQ(type_of(mix, "blk.0.attn_q.bias", {2048}), Type::f32) << mix;
    EXPECT_EQ(type_of(mix, "blk.0.ffn_gate_inp.weight", {2048, 128}), Type::f32) << mix;
    EXPECT_EQ(type_of(mix, "blk.0.ffn_gate_inp_shexp.weight", {2048, 1}), Type::f32) << mix;
    EXPECT_NE(type_of(mix, "blk.0.ffn_gate_exps.weight", {2048, 64, 8}), Type::f32) << mix;
  }
}

// Spec 2.2: Q4_K -> Q5_0, Q5_K -> Q5_1, Q6_K -> Q8_0, Q2_K and Q3_K -> Q4_0, IQ4_XS -> IQ4_NL where
// blocks of 256 do not divide a row; plain halves where those of 32 do not either.
TEST(QuantMix, ShortRowsGetTheUsualSubstitutes) {
  struct Case {
    const char* mix;
    Type whole, short_rows, odd_rows;
  };
  for (const Case& c : {
           Case{"Q2_K", Type::q2_k, Type::q4_0, Type::f16},
           Case{"Q3_K", Type::q3_k, Type::q4_0, Type::f16},
           Case{"Q4_K", Type::q4_k, Type::q5_0, Type::f16},
           Case{"Q5_K", Type::q5_k, Type::q5_1, Type::f16},
           Case{"Q6_K", Type::q6_k, Type::q8_0, Type::f16},
           Case{"IQ4_XS", Type::iq4_xs, Type::iq4_nl, Type::f16},
           Case{"Q8_0", Type::q8_0, Type::q8_0, Type::f16},
           Case{"MXFP4", Type::mxfp4, Type::mxfp4, Type::f16},
           Case{"BF16", Type::bf16, Type::bf16, Type::bf16},
           Case{"F32", Type::f32, Type::f32, Type::f32},
           Case{"Q4_K_M", Type::q4_k, Type::q5_0, Type::f16},
       }) {
    EXPECT_EQ(type_of(c.mix, "blk.9.ffn_up_exps.weight", {2048, 64, 16}), c.whole) << c.mix;
    EXPECT_EQ(type_of(c.mix, "blk.9.ffn_up_exps.weight", {2880, 64, 16}), c.short_rows) << c.mix;
    EXPECT_EQ(type_of(c.mix, "blk.9.ffn_up_exps.weight", {2050, 64, 16}), c.odd_rows) << c.mix;
  }
  EXPECT_EQ(type_of("Q4_K_M", "output.weight", {2880, 100}), Type::q8_0) << "Q6_K's substitute";
}

// Spec 2.2: F32 241, Q4_K 289, Q6_K 49 (24 ffn_down_exps, 24 attn_v, output).
TEST(QuantMix, Qwen3_30B_A3BInQ4_K_MHasTheTypesOfTheRealFile) {
  const QuantMix mix = QuantMix::parse("Q4_K_M");
  std::map<Type, int> n_of;
  int n_down = 0, n_v = 0;
  for (const Named& t : tensors_of(48, 128)) {
    const Type type = mix.type_of(t.name, t.shape, {48, 128});
    ++n_of[type];
    if (type != Type::q6_k) continue;
    n_down += t.name.find("ffn_down_exps") != std::string::npos;
    n_v += t.name.find("attn_v") != std::string::npos;
  }
  EXPECT_EQ(n_of, (std::map<Type, int>{{Type::f32, 241}, {Type::q4_k, 289}, {Type::q6_k, 49}}));
  EXPECT_EQ(n_down, 24);
  EXPECT_EQ(n_v, 24);
  EXPECT_EQ(mix.type_of("output.weight", std::vector<int64_t>{2048, 151936}, {48, 128}),
            Type::q6_k);
}

// The first and the last eighth of the layers, and every third between, counted from the eighth.
TEST(QuantMix, MixesSpendTheirBitsOnTheSameLayersOfVAndDown) {
  for (const int n_layers : {1, 2, 16, 24, 27, 48}) {
    for (int i = 0; i < n_layers; ++i) {
      const int eighth = n_layers / 8;
      bool more = i < eighth || i >= 7 * n_layers / 8;
      for (int third = eighth + 2; third < n_layers; third += 3) more |= i == third;
      const MixContext context{n_layers, 64};
      for (const auto& [mix, base] : {std::pair("Q4_K_M", Type::q4_k), {"Q5_K_M", Type::q5_k}}) {
        for (const char* part : {"attn_v", "ffn_down_exps", "ffn_down_shexp", "attn_qkv"}) {
          EXPECT_EQ(type_of(mix, cat("blk.", i, ".", part, ".weight"), {256, 8}, context),
                    more ? Type::q6_k : base)
              << mix << " " << part << " layer " << i << " of " << n_layers;
        }
        for (const char* part : {"attn_q", "attn_k", "attn_output", "ffn_up_exps"}) {
          EXPECT_EQ(type_of(mix, cat("blk.", i, ".", part, ".weight"), {256, 8}, context), base)
              << mix << " " << part << " layer " << i << " of " << n_layers;
        }
      }
    }
  }
}

// Eight experts mean Mixtral: attn_k and attn_v Q8_0, attn_output Q5_K, the rest as ever.
TEST(QuantMix, MixtralKeepsItsSmallAttentionFiner) {
  std::map<std::string, std::map<Type, int>> by_part;
  for (const Named& t : tensors_of(32, 8)) {
    const size_t dot = t.name.find('.', 4);
    const std::string part = t.name.starts_with("blk.") ? t.name.substr(dot + 1) : t.name;
    ++by_part[part][QuantMix::parse("Q4_K_M").type_of(t.name, t.shape, {32, 8})];
  }
  using Counts = std::map<Type, int>;
  EXPECT_EQ(by_part["attn_k.weight"], (Counts{{Type::q8_0, 32}}));
  EXPECT_EQ(by_part["attn_v.weight"], (Counts{{Type::q8_0, 32}}));
  EXPECT_EQ(by_part["attn_output.weight"], (Counts{{Type::q5_k, 32}}));
  EXPECT_EQ(by_part["attn_q.weight"], (Counts{{Type::q4_k, 32}}));
  EXPECT_EQ(by_part["ffn_gate_exps.weight"], (Counts{{Type::q4_k, 32}}));
  EXPECT_EQ(by_part["ffn_down_exps.weight"], (Counts{{Type::q4_k, 16}, {Type::q6_k, 16}}));
  EXPECT_EQ(by_part["output.weight"], (Counts{{Type::q6_k, 1}}));
  EXPECT_EQ(by_part["token_embd.weight"], (Counts{{Type::q4_k, 1}}));
}

}  // namespace
}  // namespace sluice::model_file::test
