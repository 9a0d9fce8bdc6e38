// Import of recorded routing from CSV.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/trace_csv.h"

#include "base/error.h"
#include "unit/policy/traces.h"

namespace sluice::policy::test {
namespace {

const std::string kHead =
    "# route_trace v1\n"
    "# model=/some/where/Tiny.gguf arch=x n_layer=2 n_expert=4 n_expert_used=2\n"
    "# layer=0 expert_bytes=10 dense_bytes=7\n"
    "# layer=1 expert_bytes=20 dense_bytes=7\n"
    "turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n";

std::string error_of(const std::string& text) {
  try {
    parse_trace_csv(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_file);
    return error.what();
  }
  return "";
}

TEST(TraceCsv, RowsInAnyOrderBecomeSteps) {
  const RoutingTrace trace = parse_trace_csv(kHead +
                                             "0,1,0,0,0,3,1.0,0,10\n"
                                             "0,0,0,0,1,2,0.25,0,10\r\n"
                                             "0,0,0,1,0,1,1,0,20\n"
                                             "\n"
                                             "0,0,0,0,0,0,0.75,0,10\n");
  EXPECT_EQ(trace.header.model, "Tiny.gguf");
  EXPECT_EQ(trace.header.shape.expert_bytes, (std::vector<uint64_t>{10, 20}));
  ASSERT_EQ(trace.steps.size(), 2u);
  EXPECT_EQ(trace.steps[0].phase, Phase::prefill);
  EXPECT_EQ(trace.steps[1].phase, Phase::decode);
  const auto first = trace.steps[0].layer(0);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0], (RoutedExpert{ExpertId(0), 0.75f}));
  EXPECT_EQ(first[1], (RoutedExpert{ExpertId(2), 0.25f}));
  EXPECT_EQ(trace.steps[1].layer(1).size(), 0u);
}

// Steps are counted anew in every turn, and in prompt and answer.
TEST(TraceCsv, TurnsFollowOneAnother) {
  const RoutingTrace trace = parse_trace_csv(kHead +
                                             "1,0,0,0,0,2,1,0,10\n"
                                             "0,1,0,0,0,1,1,0,10\n"
                                             "0,0,0,0,0,0,1,0,10\n"
                                             "1,1,0,0,0,3,1,0,10\n");
  ASSERT_EQ(trace.steps.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    const RoutingStep& step = trace.steps[static_cast<size_t>(i)];
    ASSERT_EQ(step.layer(0).size(), 1u);
    EXPECT_EQ(step.layer(0)[0].expert, ExpertId(i));
    EXPECT_EQ(step.phase, i % 2 == 0 ? Phase::prefill : Phase::decode);
  }
  EXPECT_EQ(parse_trace_csv(kHead + "0,1,0,0,0,1,1\n1,1,0,0,1,2,1\n").steps.size(), 2u)
      << "of one phase and number, in two turns";
}

TEST(TraceCsv, FaultsNameTheirLine) {
  EXPECT_NE(error_of("").find("no rows"), std::string::npos);
  EXPECT_NE(error_of(kHead).find("no rows"), std::string::npos);
  EXPECT_NE(error_of("a,b\n").find("line 1: the columns are 'a,b'"), std::string::npos);
  EXPECT_NE(error_of("turn,phase,step,layer,slot,expert,weight\n").find("n_layer="),
            std::string::npos);
  EXPECT_NE(error_of(kHead + "0,1,0,0,0\n").find("line 6: column 6 is ''"), std::string::npos);
  EXPECT_NE(error_of(kHead + "0,1,x,0,0,1,1\n").find("column 3 is 'x'"), std::string::npos);
  EXPECT_NE(error_of(kHead + "0,1,-1,0,0,1,1\n").find("column 3 is '-1'"), std::string::npos);
  EXPECT_NE(error_of(kHead + "0,2,0,0,0,1,1\n").find("phase 2"), std::string::npos);
  EXPECT_NE(error_of(kHead + "0,1,0,2,0,1,1\n").find("layer 2; expected 0 to 1"),
            std::string::npos);
  EXPECT_NE(error_of(kHead + "0,1,0,0,0,4,1\n").find("expert 4"), std::string::npos);
  EXPECT_NE(error_of(kHead + "0,1,0,0,0,1,heavy\n").find("weight is 'heavy'"), std::string::npos);
  EXPECT_NE(error_of(kHead + "0,1,0,0,0,1,nan\n").find("gate"), std::string::npos);
  EXPECT_NE(error_of(kHead + "0,1,0,0,0,1,1\n0,1,0,0,1,1,1\n").find("twice"), std::string::npos);
  EXPECT_NE(error_of("# model=x n_layer=99999999 n_expert=4 n_expert_used=2\n").find("n_layer is"),
            std::string::npos);
  EXPECT_NE(error_of("# model=x n_layer=two n_expert=4\n").find("n_layer is 'two'"),
            std::string::npos);
  EXPECT_NE(error_of("# layer=0 expert_bytes=3\n").find("bytes of layer 0"), std::string::npos);
}

// The shape may not change under rows that were read with another one.
TEST(TraceCsv, ASecondShapeIsRefused) {
  const std::string rows = "0,1,0,0,0,3,1.0,0,10\n0,1,0,1,0,1,1,0,20\n";
  for (const char* shape :
       {"n_layer=1 n_expert=4", "n_layer=2 n_expert=2", "n_layer=2 n_expert=4"}) {
    const std::string again = cat("# model=x ", shape, " n_expert_used=2\n");
    EXPECT_NE(error_of(kHead + rows + again).find("line 8: n_layer= again"), std::string::npos);
    EXPECT_NE(error_of(kHead + again + rows).find("line 6: n_layer= again"), std::string::npos);
  }
}

// A whole recording, written as CSV with its last rows first.
TEST(TraceCsv, ALongTraceComesBackFromCsv) {
  for (const std::string& name : kShipped) {
    const RoutingTrace trace = shipped(name);
    std::vector<std::string> rows;
    for (size_t s = 0; s < trace.steps.size(); ++s) {
      const RoutingStep& step = trace.steps[s];
      for (int l = 0; l < trace.header.shape.n_layers; ++l) {
        for (size_t rank = 0; rank < step.layer(l).size(); ++rank) {
          const auto& [expert, weight] = step.layer(l)[rank];
          // A turn for each step, so that prompt and decode stay in their order.
          rows.push_back(cat(s, ",", static_cast<int>(step.phase), ",0,", l, ",", rank, ",",
                             expert.value, ",", weight, "\n"));
        }
      }
    }
    const RoutingShape& shape = trace.header.shape;
    std::string text = cat("# model=", name, " n_layer=", shape.n_layers,
                           " n_expert=", shape.n_experts, " n_expert_used=", shape.n_experts_used,
                           "\nturn,phase,step,layer,slot,expert,weight\n");
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) text += *row;
    const RoutingTrace read = parse_trace_csv(text);
    ASSERT_EQ(read.steps.size(), trace.steps.size());
    for (size_t s = 0; s < read.steps.size(); ++s) {
      RoutingStep expected = trace.steps[s];
      expected.token = -1;  // CSV has none
      for (size_t i = 0; i < expected.routed.size(); ++i) {
        EXPECT_NEAR(read.steps[s].routed[i].weight, expected.routed[i].weight, 1e-5);
        expected.routed[i].weight = read.steps[s].routed[i].weight;
      }
      ASSERT_EQ(read.steps[s], expected) << name << ", step " << s;
    }
  }
}

TEST(TraceCsv, TheTraceOfALargeModelIsReadWhereItIsThere) {
  const auto qwen = of_large_model("qwen3-30b-a3b");
  if (!qwen) GTEST_SKIP() << "SKIPPED: the large recording is not beside the checkout";
  EXPECT_EQ(qwen->header.shape.n_layers, 48);
  EXPECT_EQ(qwen->header.shape.expert_bytes[6], 2654208u);
  EXPECT_EQ(qwen->steps.size(), 28u + 128u);
  EXPECT_EQ(qwen->steps[0].layer(47).size(), 0u) << "the last layer routes the last token only";
  EXPECT_EQ(qwen->steps[27].layer(47).size(), 6u);
  const RoutingTrace again = decode_trace(encode_trace(*qwen));
  EXPECT_EQ(again.header, qwen->header);
  EXPECT_EQ(again.steps.size(), qwen->steps.size());
}

}  // namespace
}  // namespace sluice::policy::test
