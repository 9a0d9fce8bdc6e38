// Gaps to be filled in: the request's fields, and the tokens that a model gets.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/edit.h"
#include "server/answering/answer_plan.h"
#include "server/api_error.h"
#include "server/requests/infill_fields.h"
#include "support/temp_dir.h"
#include "unit/server/demo_service.h"

namespace sluice::server {
namespace {

constexpr int kContext = 64;
constexpr TokenId kPre = 11, kSuf = 12, kMid = 13, kRep = 14, kSep = 15;

// The demo model, whose file says that it knows gaps.
const ModelService& gap_service() {
  static const test::TempDir folder;
  static const Model model = [] {
    test::EditableModel file(find_model("demo-attn"));
    file.set("tokenizer.ggml.fim_pre_token_id", static_cast<uint32_t>(kPre));
    file.set("tokenizer.ggml.fim_suf_token_id", static_cast<uint32_t>(kSuf));
    file.set("tokenizer.ggml.fim_mid_token_id", static_cast<uint32_t>(kMid));
    file.set("tokenizer.ggml.fim_rep_token_id", static_cast<uint32_t>(kRep));
    file.set("tokenizer.ggml.fim_sep_token_id", static_cast<uint32_t>(kSep));
    return Model::load(file.write(folder / "gap.gguf"), {.n_threads = 1});
  }();
  EngineOptions options;
  options.session.n_ctx = kContext;
  options.n_sequences = 1;
  static const ModelService service(model, options, "gap");
  return service;
}

std::vector<TokenId> plain(const std::string& text) {
  return gap_service().text().tokenizer().encode(text, {.add_special = false});
}

text::FillInput infill(const char* body) {
  const Json json = parse_body(body);
  return read_infill(Fields(json));
}

std::string param_of(const char* body) {
  try {
    const Json json = parse_body(body);
    read_infill(Fields(json));
    read_infill_generation(json);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.param();
  }
  return "(taken)";
}

TEST(Infill, AllFieldsArrive) {
  const text::FillInput input = infill(
      R"({"input_prefix": "a", "input_suffix": "b", "prompt": "c",
          "input_extra": [{"filename": "f", "text": "t", "time": 3}, {"text": "u"}]})");
  EXPECT_EQ(input.prefix, "a");
  EXPECT_EQ(input.suffix, "b");
  EXPECT_EQ(input.begun, "c");
  ASSERT_EQ(input.files.size(), 2U);
  EXPECT_EQ(input.files[0].name, "f");
  EXPECT_EQ(input.files[0].text, "t");
  EXPECT_EQ(input.files[1].text, "u");
}

TEST(Infill, WrongFieldsAreNamed) {
  EXPECT_EQ(param_of(R"({"input_prefix": "a"})"), "(taken)");
  EXPECT_EQ(param_of(R"({"prompt": "a"})"), "input_prefix");
  EXPECT_EQ(param_of(R"({"input_prefix": 3})"), "input_prefix");
  EXPECT_EQ(param_of(R"({"input_suffix": "a", "prompt": [1]})"), "prompt");
  EXPECT_EQ(param_of(R"({"input_suffix": "", "input_extra": "a"})"), "input_extra");
  EXPECT_EQ(param_of(R"({"input_suffix": "", "input_extra": [{}]})"), "input_extra[0].text");
  EXPECT_EQ(param_of(R"({"input_suffix": "", "input_extra": ["a"]})"), "input_extra[0]");
  EXPECT_EQ(param_of(R"({"input_suffix": "", "n": 2})"), "n");
}

TEST(Infill, TakesTheSamplersThatEditorsName) {
  const GenerationFields how = read_infill_generation(
      parse_body(R"({"samplers": ["top_k", "top_p", "infill"], "n_predict": 7, "top_k": 40})"));
  EXPECT_EQ(how.sampling.stages, (std::vector{sampler::Stage::top_k, sampler::Stage::top_p}));
  EXPECT_EQ(how.n_tokens, 7);
}

TEST(Infill, PromptIsInTheTokensOfTheModelsFile) {
  const FillPlan fill =
      plan_fill(gap_service(), {.prefix = "a b", .suffix = "c", .files = {{"f", "t"}}}, {});
  std::vector<TokenId> expected = {kRep};
  const auto add = [&](const std::vector<TokenId>& tokens) {
    expected.insert(expected.end(), tokens.begin(), tokens.end());
  };
  add(plain("myproject\n"));
  add({kSep});
  add(plain("f\nt\n"));
  add({kSep});
  add(plain("filename\n"));
  add({kPre});
  add(plain("a b"));
  add({kSuf});
  add(plain("c"));
  add({kMid});
  EXPECT_EQ(fill.plan.prompt, expected);
  EXPECT_EQ(fill.n_left_out, 0);
}

TEST(Infill, FilesMakeRoomForTheAnswer) {
  GenerationFields how;
  how.n_tokens = 16;
  text::FillInput input{.prefix = "a", .suffix = "c"};
  for (int i = 0; i < 20; ++i) input.files.push_back({"f", "1 2 3 4 5"});
  const FillPlan fill = plan_fill(gap_service(), input, how);
  EXPECT_GT(fill.n_left_out, 0);
  EXPECT_LT(fill.n_left_out, 20);
  EXPECT_LE(fill.plan.prompt.size(), static_cast<size_t>(kContext - 16));
  how.n_tokens = 0;  // editors fill the cache so
  EXPECT_LT(plan_fill(gap_service(), input, how).plan.prompt.size(), static_cast<size_t>(kContext));
}

TEST(Infill, TooLongAPrefixIsRefusedAndNotCut) {
  std::string text;
  for (int i = 0; i < kContext; ++i) text += "1 ";
  try {
    plan_fill(gap_service(), {.prefix = text}, {});
    ADD_FAILURE() << "a prompt beyond the context was taken";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.code(), "context_length_exceeded");
  }
}

TEST(Infill, ModelWithoutTheTokensSaysWhatItLacks) {
  try {
    plan_fill(demo_service(), {.prefix = "a"}, {});
    ADD_FAILURE() << "the demo model knows no gaps";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 501);
    EXPECT_NE(std::string(error.what()).find("tokenizer.ggml.fim_pre_token_id"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace sluice::server
