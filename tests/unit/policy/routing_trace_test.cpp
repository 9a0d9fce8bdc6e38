// The binary trace format: what is written comes back, in whatever pieces; what is broken is named.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/routing_trace.h"

#include "base/error.h"
#include "unit/policy/traces.h"

namespace sluice::policy::test {
namespace {

RoutingTrace small_trace() {
  RoutingTrace trace{{"tiny", generator_shape(3, 8, 2)}, {}};
  trace.header.shape.expert_bytes = {100, 200, 0};
  trace.steps = {step_of({{1, 2}, {7, 0}, {}}), step_of({{3}, {}, {5, 6}})};
  trace.steps[0].phase = Phase::prefill;
  trace.steps[0].token = 42;
  return trace;
}

std::string error_of(std::span<const std::byte> bytes) {
  try {
    decode_trace(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_file) << error.what();
    return error.what();
  }
  return "";
}

TEST(RoutingTrace, WhatIsWrittenComesBack) {
  const RoutingTrace trace = small_trace();
  const RoutingTrace read = decode_trace(encode_trace(trace));
  EXPECT_EQ(read.header, trace.header);
  EXPECT_EQ(read.steps, trace.steps);
}

TEST(RoutingTrace, GatesComeBackToThreeDigits) {
  RoutingTrace trace = small_trace();
  for (const float gate : {0.0f, 1e-4f, 0.123456f, 0.99f, 1.0f, 2.5f, 1000.0f}) {
    trace.steps[0].routed[0].weight = gate;
    const RoutingTrace read = decode_trace(encode_trace(trace));
    EXPECT_NEAR(read.steps[0].routed[0].weight, gate, gate / 256) << gate;
  }
}

TEST(RoutingTrace, PiecesOfAnySizeGiveTheSameSteps) {
  const RoutingTrace trace = generate_trace({.shape = generator_shape(5, 16, 3), .n_decode = 20});
  const std::vector<std::byte> bytes = encode_trace(trace);
  const RoutingTrace whole = decode_trace(bytes);
  for (const size_t piece : {size_t{1}, size_t{2}, size_t{7}, size_t{64}, bytes.size()}) {
    TraceReader reader;
    std::vector<RoutingStep> steps;
    RoutingStep step;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      reader.feed(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
      while (reader.next(step)) steps.push_back(step);
    }
    reader.finish();
    EXPECT_TRUE(reader.at_end());
    EXPECT_EQ(steps, whole.steps) << "pieces of " << piece;
  }
}

TEST(RoutingTrace, OneThatIsCutOffAnywhereIsRefused) {
  const std::vector<std::byte> bytes = encode_trace(small_trace());
  for (size_t n = 0; n < bytes.size(); ++n) {
    const std::string text = error_of(std::span(bytes).first(n));
    EXPECT_NE(text.find("expected"), text.npos) << n << ": " << text;
  }
}

TEST(RoutingTrace, EveryChangedByteIsReadOrRefusedButNeverCrashes) {
  const std::vector<std::byte> good = encode_trace(small_trace());
  int n_refused = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int value : {0, 1, 2, 3, 127, 128, 255}) {
      std::vector<std::byte> bytes = good;
      bytes[at] = static_cast<std::byte>(value);
      n_refused += !error_of(bytes).empty();
    }
  }
  EXPECT_GT(n_refused, 200);
}

TEST(RoutingTrace, ErrorsSayWhatWasFoundAndExpected) {
  std::vector<std::byte> bytes = encode_trace(small_trace());
  bytes[0] = std::byte{'X'};
  EXPECT_NE(error_of(bytes).find("does not begin with \"SLRT\""), std::string::npos);
  bytes = encode_trace(small_trace());
  bytes[4] = std::byte{9};
  EXPECT_NE(error_of(bytes).find("version 9; expected 1"), std::string::npos);
  bytes = encode_trace(small_trace());
  bytes[11] = std::byte{0xff};
  EXPECT_NE(error_of(bytes).find("layers"), std::string::npos);
  bytes = encode_trace(small_trace());
  bytes.push_back(std::byte{0});
  EXPECT_NE(error_of(bytes).find("1 bytes after its end"), std::string::npos);
}

TEST(RoutingTrace, AStepThatDoesNotFitTheShapeIsRefused) {
  const RoutingShape shape = generator_shape(2, 4, 2);
  const auto error = [&shape](const RoutingStep& step) -> std::string {
    try {
      check_step(shape, step, "step", 7);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error(step_of({{0, 1}, {3}})), "");
  EXPECT_EQ(error(step_of({{0, 1}, {4}})), "step 7: expert 4 in layer 1; expected 0 to 3");
  EXPECT_EQ(error(step_of({{0, 1, 2}, {}})), "step 7: 3 experts in layer 0; expected at most 2");
  EXPECT_EQ(error(step_of({{1, 1}, {}})), "step 7: expert 1 twice in layer 0; expected once");
  RoutingStep step = step_of({{0}, {}});
  step.routed[0].weight = -1.0f;
  EXPECT_NE(error(step).find("gate -1"), std::string::npos);
  step.routed[0].weight = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(error(step).find("gate"), std::string::npos);
}

}  // namespace
}  // namespace sluice::policy::test
