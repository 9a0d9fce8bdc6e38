// Files that say the same in another way give the same logits to the bit; files that say something
// else do not.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "quant/half.h"
#include "sluice/sluice.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

using quant::Type;

Draft tiny_draft(const std::string& architecture, const std::string& mix) {
  const TempDir dir;
  write_tiny(dir / "m.gguf", architecture, mix);
  return Draft::read(dir / "m.gguf");
}

Logits logits_of(const Draft& draft) {
  const OpenModel model(draft);
  return run_alone(*model, random_tokens(6, 1));
}

// Puts q, k and v of a layer under one name: rows of q, then k, then v.
void fuse(Draft& draft, const std::string& layer, const char* kind) {
  model::test::DraftTensor fused = draft.at(layer + "attn_q" + kind);
  fused.name = layer + "attn_qkv" + kind;
  for (const char* part : {"attn_k", "attn_v"}) {
    const auto& t = draft.at(layer + part + kind);
    fused.shape.back() += t.shape.back();
    fused.data.insert(fused.data.end(), t.data.begin(), t.data.end());
  }
  for (const char* part : {"attn_q", "attn_k", "attn_v"}) draft.erase(layer + part + kind);
  draft.tensors.push_back(fused);
}

TEST(FileVariants, FusedQkvEqualsSeparateQKAndV) {
  for (const char* architecture : model::test::kAttending) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K"}) {
      Draft draft = tiny_draft(architecture, mix);
      const Logits expected = logits_of(draft);
      for (const char* layer : {"blk.0.", "blk.1."}) {
        fuse(draft, layer, ".weight");
        if (std::string_view(architecture) == "qwen2moe") fuse(draft, layer, ".bias");
      }
      expect_same_bits(expected, logits_of(draft), cat(architecture, " ", mix));
    }
  }
}

// Puts gate and up of a layer's experts into one stack: of every expert first gate, then up.
void merge_gate_and_up(Draft& draft, const std::string& layer) {
  const model::test::DraftTensor gate = draft.at(layer + "ffn_gate_exps.weight");
  const model::test::DraftTensor up = draft.at(layer + "ffn_up_exps.weight");
  model::test::DraftTensor merged = gate;
  merged.name = layer + "ffn_gate_up_exps.weight";
  merged.shape[1] *= 2;
  merged.data.clear();
  const auto n_experts = static_cast<size_t>(gate.shape[2]);
  const auto n_bytes = static_cast<std::ptrdiff_t>(gate.data.size() / n_experts);
  for (size_t e = 0; e < n_experts; ++e) {
    for (const auto* from : {&gate, &up}) {
      const auto begin = from->data.begin() + static_cast<std::ptrdiff_t>(e) * n_bytes;
      merged.data.insert(merged.data.end(), begin, begin + n_bytes);
    }
  }
  draft.erase(gate.name);
  draft.erase(up.name);
  draft.tensors.push_back(merged);
}

TEST(FileVariants, MergedGateAndUpEqualSeparateOnes) {
  for (const char* architecture : {"qwen3moe", "qwen35moe"}) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K"}) {
      Draft draft = tiny_draft(architecture, mix);
      const Logits expected = logits_of(draft);
      for (const char* layer : {"blk.0.", "blk.1."}) merge_gate_and_up(draft, layer);
      expect_same_bits(expected, logits_of(draft), cat(architecture, " ", mix));
      const OpenModel mapped(draft, Weights::mapped);
      expect_same_bits(expected, run_alone(*mapped, random_tokens(6, 1)), cat(mix, " mapped"));
    }
  }
}

// Rows of a matrix in another order: for each key head its query, key, values and z.
void fuse_inputs(Draft& draft, const std::string& layer) {
  const model::test::DraftTensor qkv = draft.at(layer + "attn_qkv.weight");
  const model::test::DraftTensor z = draft.at(layer + "attn_gate.weight");
  const int64_t n_key_heads = 2, n_value_heads = 4, n_rows = qkv.shape[1] + z.shape[1];
  const int64_t dim = z.shape[1] / n_value_heads, shared = z.shape[1] / n_key_heads;
  model::test::DraftTensor fused = qkv;
  fused.name = layer + "ssm_in.weight";
  fused.shape[1] = n_rows;
  fused.data.clear();
  const auto add = [&](const model::test::DraftTensor& from, int64_t first, int64_t n) {
    const auto row_bytes = std::ssize(from.data) / from.shape[1];
    const auto begin = from.data.begin() + first * row_bytes;
    fused.data.insert(fused.data.end(), begin, begin + n * row_bytes);
  };
  for (int64_t head = 0; head < n_key_heads; ++head) {
    add(qkv, head * dim, dim);
    add(qkv, (n_key_heads + head) * dim, dim);
    add(qkv, 2 * n_key_heads * dim + head * shared, shared);
    add(z, head * shared, shared);
  }
  draft.erase(qkv.name);
  draft.erase(z.name);
  draft.tensors.push_back(fused);
}

TEST(FileVariants, TheInputsOfARecurrentLayerMayBeOneMatrix) {
  for (const char* mix : {"F32", "Q8_0", "Q4_K"}) {
    Draft draft = tiny_draft("qwen3next", mix);
    const Logits expected = logits_of(draft);
    fuse_inputs(draft, "blk.0.");
    expect_same_bits(expected, logits_of(draft), mix);
    const OpenModel mapped(draft, Weights::mapped);
    expect_same_bits(expected, run_alone(*mapped, random_tokens(6, 1)), cat(mix, " mapped"));
    for (const bool weaves : {false, true}) {
      Placed placed(mapped, {.share = 1.0, .weaves = weaves});
      expect_same_bits(expected, placed.run(random_tokens(6, 1)), cat(mix, " on a device"));
    }
  }
}

// Halves of the taps are widened too; a pair that text does not turn stays as it is.
TEST(FileVariants, SectionsOfPositionsSayWhichPairsTurnInText) {
  Draft draft = tiny_draft("qwen35moe", "F32");
  const Logits all_turn = logits_of(draft);
  const auto sections = [&](const std::vector<int32_t>& s) {
    draft.metadata.set("qwen35moe.rope.dimension_sections", s);
    return logits_of(draft);
  };
  expect_same_bits(all_turn, sections({4, 3, 2, 0}), "every pair is time's, height's or width's");
  EXPECT_FALSE(all_turn == sections({2, 2, 2, 2})) << "pairs 6 and 7 stay";
}

TEST(FileVariants, MtpBlocksAreLeftAside) {
  for (const char* architecture : model::test::kHybrids) {
    model_file::SynthOptions options = model::test::tiny_options(architecture, "Q8_0");
    const OpenModel plain(options);
    options.config.n_mtp_blocks = 1;
    const OpenModel with_mtp(options);
    EXPECT_NE(with_mtp.file().find("blk.3.nextn.eh_proj.weight"), nullptr);
    EXPECT_EQ((*with_mtp).layers().size(), 3u);
    expect_same_bits(run_alone(*plain, random_tokens(6, 1)),
                     run_alone(*with_mtp, random_tokens(6, 1)), architecture);
    Draft broken = Draft::read(with_mtp.path());
    broken.erase("blk.3.nextn.eh_proj.weight");
    expect_contains(error_of(Errc::unsupported_model, [&] { OpenModel model(broken); }),
                    "'blk.3.nextn.eh_proj.weight' is missing");
  }
}

// As the file holds them, for whoever will run them.
TEST(FileVariants, MtpBlocksAreBoundToTheFile) {
  for (const char* architecture : model::test::kHybrids) {
    model_file::SynthOptions options = model::test::tiny_options(architecture, "Q8_0");
    options.config.n_mtp_blocks = 2;
    const OpenModel model(options);
    ASSERT_EQ((*model).mtp().size(), 2u);
    for (const model::Layer& block : (*model).mtp()) {
      const auto data = [&](const std::string& name) -> const void* {
        const gguf::Tensor* tensor =
            model.file().find(cat("blk.", block.id.value, ".", name, ".weight"));
        return tensor ? tensor->data.data() : nullptr;
      };
      SCOPED_TRACE(cat(architecture, ", block ", block.id.value));
      ASSERT_TRUE(block.mtp);
      EXPECT_EQ(block.mtp.join.data, data("nextn.eh_proj"));
      EXPECT_EQ(block.mtp.join.n_cols, 2 * int64_t{(*model).config().d_model});
      EXPECT_EQ(block.mtp.embedding_norm.weight, data("nextn.enorm"));
      EXPECT_EQ(block.mtp.hidden_norm.weight, data("nextn.hnorm"));
      EXPECT_EQ(block.mtp.output_norm.weight, data("nextn.shared_head_norm"));
      EXPECT_EQ(block.mtp.output.data, data("nextn.shared_head_head"));
      EXPECT_EQ(block.attn_out.weight.data, data("attn_output"));
      EXPECT_EQ(block.experts.down.data, data("ffn_down_exps"));
      EXPECT_EQ(block.router.weight.data, data("ffn_gate_inp"));
    }
    for (const model::Layer& layer : (*model).layers()) EXPECT_FALSE(layer.mtp);
  }
}

// The model says so, and no memory is planned for it.
TEST(FileVariants, AVisionPartIsLeftAside) {
  const Draft plain = tiny_draft("qwen35moe", "Q8_0");
  Draft seeing = plain;
  seeing.add("v.blk.0.attn_qkv.weight", Type::f32, {64, 192})
      .set(Type::f32, std::vector<float>(64 * 192, 0.1f));
  seeing.add("mm.0.weight", Type::f32, {64, 64}).set(Type::f32, std::vector<float>(4096, 0.1f));
  expect_same_bits(logits_of(plain), logits_of(seeing), "with a vision part");
  const OpenModel model(seeing), without(plain);
  EXPECT_EQ((*model).ignored(),
            "the file's vision part is ignored (2 tensors, 64.0 KiB): sluice reads text alone");
  EXPECT_EQ((*without).ignored(), "");
  EXPECT_EQ(model.shape().output_bytes, without.shape().output_bytes);
  EXPECT_EQ(sluice::Model::load(model.path(), {.n_threads = 1}).info().ignored, (*model).ignored());
  Draft blind = tiny_draft("qwen3next", "Q8_0");
  blind.add("v.patch_embd.weight", Type::f32, {64}).set(Type::f32, std::vector<float>(64, 0.1f));
  expect_contains(error_of(Errc::unsupported_model, [&] { OpenModel refused(blind); }),
                  "'v.patch_embd.weight' is not known for architecture 'qwen3next'");
}

TEST(FileVariants, AMissingOutputIsTheEmbedding) {
  for (const char* architecture : {"qwen3moe", "llama"}) {
    for (const char* mix : {"F32", "Q8_0", "Q4_K"}) {
      Draft tied = tiny_draft(architecture, mix), copied = tied;
      const Logits before = logits_of(tied);
      tied.erase("output.weight");
      copied.at("output.weight").data = copied.at("token_embd.weight").data;
      const Logits got = logits_of(tied);
      expect_same_bits(logits_of(copied), got, cat(architecture, " ", mix));
      EXPECT_FALSE(got == before) << architecture << " " << mix << ": shows nothing";
    }
  }
}

// Halves that the F32 file holds widened.
TEST(FileVariants, HalfVectorsEqualTheirWidenedCopies) {
  for (const char* architecture : model::test::kArchitectures) {
    for (const Type type : {Type::f16, Type::bf16}) {
      Draft halves = tiny_draft(architecture, "F32"), widened = halves;
      const Logits before = logits_of(widened);
      for (size_t i = 0; i < halves.tensors.size(); ++i) {
        auto& t = halves.tensors[i];
        if (t.shape.size() > 1) continue;
        std::vector<float> values = t.floats();
        t.set(type, values);
        for (size_t k = 0; k < values.size(); ++k) {
          uint16_t bits;
          std::memcpy(&bits, t.data.data() + 2 * k, 2);
          values[k] = type == Type::f16 ? quant::f16_to_f32_portable(bits)
                                        : std::bit_cast<float>(uint32_t{bits} << 16);
        }
        widened.tensors[i].set(Type::f32, values);
      }
      const Logits got = logits_of(halves);
      expect_same_bits(logits_of(widened), got, cat(architecture, " ", quant::type_name(type)));
      EXPECT_FALSE(got == before) << architecture << ": shows nothing";
    }
  }
}

TEST(FileVariants, TheOrderOfTensorsAndTheAlignmentDoNotMatter) {
  Draft draft = tiny_draft("qwen2moe", "Q4_K_M");
  const Logits expected = logits_of(draft);
  std::ranges::reverse(draft.tensors);
  expect_same_bits(expected, logits_of(draft), "reversed");
  for (const uint32_t alignment : {8u, 4096u}) {
    draft.metadata.set("general.alignment", alignment);
    expect_same_bits(expected, logits_of(draft), cat("alignment ", alignment));
  }
}

// Biases that most files lack: zeros change nothing, others do, each in its own place.
TEST(FileVariants, OptionalBiasesAreAdded) {
  for (const char* architecture : model::test::kAttending) {
    for (const auto& [name, n] : {std::pair("attn_q.bias", 128), {"attn_output.bias", 64}}) {
      Draft draft = tiny_draft(architecture, "F32");
      const std::string full = cat("blk.1.", name);
      const bool is_there =
          std::ranges::count(draft.tensors, full, &model::test::DraftTensor::name);
      auto& bias = is_there ? draft.at(full) : draft.add(full, Type::f32, {n});
      bias.set(Type::f32, std::vector<float>(static_cast<size_t>(n), 0.0f));
      const Logits zero = logits_of(draft);
      if (!is_there) {
        Draft without = draft;
        without.erase(full);
        expect_same_bits(logits_of(without), zero, cat(architecture, " ", full));
      }
      std::vector<float> one_value(static_cast<size_t>(n), 0.0f);
      one_value[5] = 0.5f;
      draft.at(full).set(Type::f32, one_value);
      EXPECT_FALSE(logits_of(draft) == zero) << architecture << " " << full << " is not added";
    }
  }
}

// A layer whose experts read both forms of their input, whichever matrix it is that differs.
TEST(FileVariants, ExpertsOfDifferentTypesGetTheirFormOfTheInput) {
  const Draft plain = tiny_draft("qwen2moe", "F32");
  const Logits before = logits_of(plain);
  for (const char* name : {"ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", "ffn_gate_shexp",
                           "ffn_up_shexp", "ffn_down_shexp"}) {
    Draft draft = plain;
    auto& t = draft.at(cat("blk.0.", name, ".weight"));
    t.set(Type::q8_0, t.floats());
    const OpenModel model(draft);
    const Logits got = run_alone(*model, random_tokens(6, 1));
    expect_same_bits(run_alone(*model, random_tokens(6, 1), 1), got, name);
    EXPECT_FALSE(got == before) << name << ": shows nothing";
    for (size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(std::isfinite(got[i])) << name << i;
  }
}

// Wide enough for all types. Matrices are in the type that `type_of` gives, vectors and the like as
// they are.
template <typename TypeOf>
Draft hybrid_draft(const char* architecture, TypeOf&& type_of) {
  model_file::SynthOptions options = model::test::tiny_options(architecture, "Q4_K");
  options.mix = model_file::QuantMix::parse("F32");
  Draft draft = Draft::read(OpenModel(options).path());
  for (auto& t : draft.tensors) {
    const bool stays = t.shape.size() < 2 || t.name.find("ffn_gate_inp") != std::string::npos ||
                       t.name.find("ssm_conv1d") != std::string::npos;
    if (!stays) t.set(type_of(t.name), t.floats());
  }
  return draft;
}

// In steps of any width, copied and mapped, on the CPU and on a device.
Logits logits_anywhere(const Draft& draft, const std::string& what) {
  const std::vector<TokenId> tokens = random_tokens(40, 1);
  const OpenModel copied(draft), mapped(draft, Weights::mapped);
  Logits expected = run_alone(*copied, tokens);
  for (const OpenModel* model : {&copied, &mapped}) {
    expect_same_bits(expected, run_alone(**model, tokens, 1), what + " one by one");
    for (const double share : {0.0, 0.3, 1.0}) {
      Placed placed(*model, {.share = share, .weaves = share == 1.0});
      expect_same_bits(expected, placed.run(tokens, 20), cat(what, ", ", share, " on a device"));
    }
  }
  for (const float logit : expected) EXPECT_TRUE(std::isfinite(logit)) << what;
  return expected;
}

// As files of hybrids have them: beta and alpha stay F32 while all else is quantised.
TEST(FileVariants, BetaAndAlphaOfRecurrentLayersMayBeF32) {
  for (const char* architecture : model::test::kHybrids) {
    const Draft plain = hybrid_draft(architecture, [](const std::string&) { return Type::q4_k; });
    const Draft draft = hybrid_draft(architecture, [](const std::string& name) {
      const bool is_gate = name.find("ssm_alpha") != std::string::npos ||
                           name.find("ssm_beta") != std::string::npos ||
                           name.find("ssm_ba") != std::string::npos;
      return is_gate ? Type::f32 : Type::q4_k;
    });
    EXPECT_FALSE(logits_anywhere(draft, architecture) ==
                 logits_anywhere(plain, cat(architecture, ", all in Q4_K")))
        << architecture << ": shows nothing";
  }
}

TEST(FileVariants, ExpertsOfHybridsMayHaveThreeTypes) {
  struct Types {
    Type gate, up, down;
  };
  for (const char* architecture : model::test::kHybrids) {
    std::vector<Logits> all;
    for (const Types& types : {Types{Type::q4_k, Type::q5_k, Type::q6_k},
                               {Type::q8_0, Type::f32, Type::q4_k},
                               {Type::f16, Type::q4_0, Type::q8_0}}) {
      const Draft draft = hybrid_draft(architecture, [&](const std::string& name) {
        return name.find("ffn_gate_") != std::string::npos   ? types.gate
               : name.find("ffn_up_") != std::string::npos   ? types.up
               : name.find("ffn_down_") != std::string::npos ? types.down
                                                             : Type::q8_0;
      });
      all.push_back(logits_anywhere(draft, cat(architecture, ", gate ", type_name(types.gate))));
    }
    EXPECT_FALSE(all[0] == all[1] || all[1] == all[2]) << architecture << ": shows nothing";
  }
}

TEST(FileVariants, RopeFactorsOfOneChangeNothing) {
  Draft draft = tiny_draft("llama", "F32");
  const Logits expected = logits_of(draft);
  std::vector<float> factors(16, 1.0f);
  draft.add("rope_freqs.weight", Type::f32, {16}).set(Type::f32, factors);
  expect_same_bits(expected, logits_of(draft), "ones");
  factors[2] = 2.0f;
  draft.at("rope_freqs.weight").set(Type::f32, factors);
  EXPECT_FALSE(logits_of(draft) == expected) << "the factors do nothing";
}

// Linear scaling by s is the same as frequencies divided by s, and none as no scaling at all.
TEST(FileVariants, RopeScalingIsRead) {
  Draft draft = tiny_draft("llama", "F32");
  const Logits plain = logits_of(draft);
  draft.metadata.set("llama.rope.scaling.factor", 4.0f);
  const Logits linear = logits_of(draft);
  draft.metadata.set("llama.rope.scaling.type", std::string("none"));
  expect_same_bits(plain, logits_of(draft), "none");
  draft.metadata.set("llama.rope.scaling.type", std::string("yarn"));
  const Logits yarn = logits_of(draft);
  EXPECT_FALSE(linear == plain);
  EXPECT_FALSE(yarn == plain);
  EXPECT_FALSE(yarn == linear);
  draft = tiny_draft("llama", "F32");
  draft.add("rope_freqs.weight", Type::f32, {16}).set(Type::f32, std::vector<float>(16, 4.0f));
  expect_same_bits(linear, logits_of(draft), "factors of 4");
}

}  // namespace
}  // namespace sluice::engine::test
