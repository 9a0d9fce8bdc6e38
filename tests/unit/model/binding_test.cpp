// Binding a file's tensors to a model: what each architecture makes of a sound file, and that a
// file with a tensor missing, misshapen, of a wrong type or too many is refused by that tensor's
// name.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "quant/half.h"
#include "unit/model/draft.h"
#include "unit/model/tiny_model.h"

namespace sluice::model::test {
namespace {

using model_file::SynthOptions;
using quant::Type;

// Writes the draft and binds it, which must fail; the file's path leads the text and is cut off.
std::string refusal(const Draft& draft) {
  const TempDir dir;
  const std::string path = dir / "m.gguf";
  draft.write(path);
  const gguf::ModelFile file = gguf::ModelFile::open(path);
  const std::string text = error_of(Errc::unsupported_model, [&] { Model model(file); });
  EXPECT_TRUE(text.starts_with(path + ": ")) << text;
  return text.substr(std::min(text.size(), path.size() + 2));
}

Draft tiny_draft(const std::string& architecture) {
  const TempDir dir;
  write_tiny(dir / "tiny.gguf", architecture, "F32");
  return Draft::read(dir / "tiny.gguf");
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t n : shape) text += cat(text.empty() ? "" : ", ", n);
  return "[" + text + "]";
}

bool is_bias(const std::string& name) {
  return name.ends_with(".bias") && !name.ends_with("ssm_dt.bias");
}

// The layers are bound by one function: the first one's tensors and those outside are enough.
bool is_of_second_layer(const DraftTensor& t) { return t.name.starts_with("blk.1."); }

// Spec 3.5 to 3.8, as the views the math gets.
TEST(Binding, GivesEachArchitectureItsRules) {
  struct Case {
    const char* architecture;
    backend::HeadNorm head_norm;
    bool renormalize, has_bias, has_shared;
  };
  using backend::HeadNorm;
  for (const Case& c : {Case{"qwen3moe", HeadNorm::per_head, true, false, false},
                        Case{"qwen2moe", HeadNorm::none, false, true, true},
                        Case{"olmoe", HeadNorm::whole, false, false, false},
                        Case{"llama", HeadNorm::none, true, false, false}}) {
    const TempDir dir;
    write_tiny(dir / "m.gguf", c.architecture, "F32");
    const gguf::ModelFile file = gguf::ModelFile::open(dir / "m.gguf");
    const Model model(file);
    const Config& config = model.config();
    ASSERT_EQ(model.layers().size(), 2u);
    EXPECT_EQ(model.architecture().name, c.architecture);
    for (int i = 0; i < 2; ++i) {
      const Layer& layer = model.layers()[static_cast<size_t>(i)];
      EXPECT_EQ(layer.id, LayerId(i));
      EXPECT_EQ(layer.attention.head_norm, c.head_norm) << c.architecture;
      EXPECT_EQ(layer.attention.q_norm.weight != nullptr, c.head_norm != HeadNorm::none);
      EXPECT_EQ(layer.attention.rope.frequencies.size(), 16u);
      EXPECT_EQ(layer.router.renormalize, c.renormalize) << c.architecture;
      EXPECT_EQ(layer.router.n_used, config.n_experts_used);
      EXPECT_EQ(layer.router.shared_gate != nullptr, c.has_shared) << c.architecture;
      EXPECT_EQ(static_cast<bool>(layer.experts.shared_down), c.has_shared) << c.architecture;
      for (const backend::Projection& p : layer.qkv) {
        EXPECT_EQ(p.bias != nullptr, c.has_bias) << c.architecture;
        EXPECT_EQ(p.weight.n_cols, config.d_model);
      }
      EXPECT_EQ(layer.attn_out.weight.n_rows, config.d_model);
      EXPECT_EQ(layer.experts.gate.n_mats, config.n_experts);
      EXPECT_EQ(layer.experts.down.n_cols, config.d_ff);
      const auto bytes = [&](const char* name) {
        return file.find(cat("blk.", i, ".", name, ".weight"))->data.data();
      };
      EXPECT_EQ(layer.qkv[0].weight.data, bytes("attn_q"));
      EXPECT_EQ(layer.qkv[1].weight.data, bytes("attn_k"));
      EXPECT_EQ(layer.qkv[2].weight.data, bytes("attn_v"));
      EXPECT_EQ(layer.experts.gate.data, bytes("ffn_gate_exps"));
      EXPECT_EQ(layer.experts.up.data, bytes("ffn_up_exps"));
      EXPECT_EQ(layer.experts.down.data, bytes("ffn_down_exps"));
      EXPECT_EQ(layer.router.weight.data, bytes("ffn_gate_inp"));
    }
  }
}

// The router of a dense network gives its one expert a weight of exactly 1: it is a row of zeros.
TEST(Binding, MakesADenseNetworkTheOneExpertOfItsLayer) {
  for (const char* architecture : kDense) {
    const TempDir dir;
    write_tiny(dir / "m.gguf", architecture, "F32");
    const gguf::ModelFile file = gguf::ModelFile::open(dir / "m.gguf");
    const Model model(file);
    const Config& c = model.config();
    for (const Layer& layer : model.layers()) {
      const auto bytes = [&](const char* name) {
        return file.find(cat("blk.", layer.id.value, ".", name, ".weight"))->data.data();
      };
      EXPECT_EQ(layer.experts.gate.data, bytes("ffn_gate"));
      EXPECT_EQ(layer.experts.up.data, bytes("ffn_up"));
      EXPECT_EQ(layer.experts.down.data, bytes("ffn_down"));
      EXPECT_EQ(layer.experts.gate.n_mats, 1);
      EXPECT_EQ(layer.experts.gate.n_rows, c.d_ff);
      EXPECT_FALSE(layer.experts.shared_gate);
      const backend::WeightView& router = layer.router.weight;
      EXPECT_EQ(layer.router.n_used, 1);
      ASSERT_EQ(router.type, Type::f32);
      ASSERT_EQ(router.n_cols, c.d_model);
      ASSERT_EQ(router.n_rows, 1);
      const auto* const row = reinterpret_cast<const float*>(router.data);
      EXPECT_TRUE(std::all_of(row, row + c.d_model, [](float w) { return w == 0.0f; }));
    }
  }
}

TEST(Binding, TakesLlamaWithoutExperts) {
  SynthOptions options = tiny_options("llama", "F32");
  options.config.is_dense = true;
  const TempDir dir;
  ThreadPool pool(1);
  write_synthetic_model(dir / "m.gguf", options, pool, {});
  const gguf::ModelFile file = gguf::ModelFile::open(dir / "m.gguf");
  const Model model(file);
  EXPECT_TRUE(model.config().is_dense);
  EXPECT_EQ(model.layers()[1].experts.up.data, file.find("blk.1.ffn_up.weight")->data.data());
}

// Biases are formally optional, and so is the output where it may be tied.
TEST(Binding, NamesAMissingTensorAndItsShape) {
  for (const char* architecture : kArchitectures) {
    const Draft sound = tiny_draft(architecture);
    const bool may_tie = find_architecture(architecture)->may_tie_output;
    for (const DraftTensor& t : sound.tensors) {
      if (is_of_second_layer(t)) continue;
      Draft draft = sound;
      draft.erase(t.name);
      if (is_bias(t.name) || (t.name == "output.weight" && may_tie)) {
        const TempDir dir;
        draft.write(dir / "m.gguf");
        EXPECT_NO_THROW(Model model(gguf::ModelFile::open(dir / "m.gguf"))) << t.name;
        continue;
      }
      const std::string text = refusal(draft);
      expect_contains(text, cat("tensor '", t.name, "' is missing"), architecture);
      expect_contains(text, "expected one of shape " + shape_text(t.shape), architecture);
    }
  }
}

TEST(Binding, NamesATensorOfAnotherShape) {
  for (const char* architecture : kArchitectures) {
    const Draft sound = tiny_draft(architecture);
    for (size_t i = 0; i < sound.tensors.size(); ++i) {
      if (is_of_second_layer(sound.tensors[i])) continue;
      Draft draft = sound;
      DraftTensor& t = draft.tensors[i];
      const std::string expected = shape_text(t.shape);
      std::vector<int64_t> shape = t.shape;
      ++shape.back();
      t.reshape(shape);
      const std::string text = refusal(draft);
      expect_contains(text, cat("tensor '", t.name, "' has shape ", shape_text(shape)));
      expect_contains(text, "expected " + expected, t.name);
    }
  }
}

TEST(Binding, TrailingDimensionsOfOneMeanNothing) {
  Draft draft = tiny_draft("qwen2moe");
  draft.at("blk.0.ffn_gate_inp_shexp.weight").reshape({64, 1});
  draft.at("output_norm.weight").reshape({64, 1, 1});
  const TempDir dir;
  draft.write(dir / "m.gguf");
  const gguf::ModelFile file = gguf::ModelFile::open(dir / "m.gguf");
  EXPECT_NO_THROW(Model model(file));
  draft.at("output_norm.weight").reshape({1, 64});
  expect_contains(refusal(draft), "has shape [1, 64]; expected [64]");
}

TEST(Binding, NamesATypeItCannotComputeWith) {
  for (const char* architecture : kArchitectures) {
    const Draft sound = tiny_draft(architecture);
    for (size_t i = 0; i < sound.tensors.size(); ++i) {
      if (is_of_second_layer(sound.tensors[i])) continue;
      Draft draft = sound;
      draft.tensors[i].retype(*quant::find_type_info(24));
      const std::string text = refusal(draft);
      expect_contains(text, cat("tensor '", draft.tensors[i].name, "' is of type I8"));
      expect_contains(text, "quantisation");
    }
  }
}

TEST(Binding, AVectorMustBeOfPlainNumbers) {
  Draft draft = tiny_draft("qwen3moe");
  draft.at("blk.1.attn_norm.weight").retype(quant::type_info(Type::q8_0));
  const std::string text = refusal(draft);
  expect_contains(text, "tensor 'blk.1.attn_norm.weight' is of type Q8_0");
  expect_contains(text, "expected F32, F16 or BF16");
}

TEST(Binding, ATensorThatNobodyAsksForIsRefused) {
  for (const char* name : {"blk.0.ffn_gate_up_exps.weight", "blk.2.attn_norm.weight",
                           "blk.0.ffn_gate_inp.bias", "rope_freqs.weight", "output.bias"}) {
    Draft draft = tiny_draft("qwen3moe");
    draft.add(name, Type::f32, {16});
    const std::string text = refusal(draft);
    expect_contains(text, cat("tensor '", name, "' is not known for architecture 'qwen3moe'"));
  }
  Draft forged = tiny_draft("qwen3moe");
  forged.add("x\ny", Type::f32, {16});
  expect_contains(refusal(forged), "tensor 'x\\x0ay' is not known");
}

TEST(Binding, SeparateAndFusedQkvTogetherAreOneTooMany) {
  Draft draft = tiny_draft("qwen3moe");
  draft.add("blk.0.attn_qkv.weight", Type::f32, {64, 256});
  expect_contains(refusal(draft), "tensor 'blk.0.attn_q.weight' is not known");
}

TEST(Binding, FormsThatCannotRunAreNamed) {
  Draft apart = tiny_draft("llama");
  apart.add("blk.1.ffn_gate.0.weight", Type::f32, {64, 96});
  expect_contains(refusal(apart), "a tensor for every single expert, which sluice cannot run");
}

TEST(Binding, HalfVectorsAreWidenedAndTheRestIsReadInPlace) {
  for (const Type type : {Type::f16, Type::bf16}) {
    Draft draft = tiny_draft("qwen3moe");
    DraftTensor& norm = draft.at("blk.1.ffn_norm.weight");
    norm.set(type, norm.floats());
    const TempDir dir;
    draft.write(dir / "m.gguf");
    const gguf::ModelFile file = gguf::ModelFile::open(dir / "m.gguf");
    Model bound(file);
    const Model model = std::move(bound);
    for (size_t i = 0; i < 64; ++i) {
      uint16_t bits;
      std::memcpy(&bits, norm.data.data() + 2 * i, 2);
      const float expected = type == Type::f16 ? quant::f16_to_f32_portable(bits)
                                               : std::bit_cast<float>(uint32_t{bits} << 16);
      EXPECT_EQ(model.layers()[1].ffn_norm.weight[i], expected)
          << quant::type_name(type) << " index " << i;
    }
    EXPECT_EQ(reinterpret_cast<const std::byte*>(model.layers()[0].ffn_norm.weight),
              file.find("blk.0.ffn_norm.weight")->data.data());
  }
}

// rope_freqs.weight divides the frequencies, for llama alone; a moved model keeps them.
TEST(Binding, RopeFactorsDivideTheFrequenciesOfLlama) {
  Draft draft = tiny_draft("llama");
  std::vector<float> factors(16);
  for (size_t j = 0; j < 16; ++j) factors[j] = 1.0f + static_cast<float>(j);
  draft.add("rope_freqs.weight", Type::f32, {16}).set(Type::f32, factors);
  const TempDir dir;
  draft.write(dir / "m.gguf");
  const gguf::ModelFile file = gguf::ModelFile::open(dir / "m.gguf");
  Model bound(file);
  const Model model = std::move(bound);
  const std::vector<float> plain = rope_frequencies(model.config().rope);
  for (const Layer& layer : model.layers()) {
    ASSERT_EQ(layer.attention.rope.frequencies.size(), 16u);
    for (size_t j = 0; j < 16; ++j) {
      EXPECT_EQ(layer.attention.rope.frequencies[j], plain[j] / factors[j]) << "pair " << j;
    }
  }
}

}  // namespace
}  // namespace sluice::model::test
