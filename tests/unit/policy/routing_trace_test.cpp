// The binary trace format: what is written comes back, in whatever pieces; what is broken is named.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/routing_trace.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "support/error_of.h"
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

TEST(RoutingTrace, TheShippedTracesAreAsTheyWereRecordedAndComeBackByteForByte) {
  const std::array<std::array<size_t, 2>, 2> n_steps = {{{1872, 1831}, {923, 431}}};
  for (size_t t = 0; t < kShipped.size(); ++t) {
    const RoutingTrace trace = shipped(kShipped[t]);
    EXPECT_EQ(trace.header.shape.n_layers, 4);
    EXPECT_EQ(trace.header.shape.n_experts, 32);
    EXPECT_EQ(trace.header.shape.n_experts_used, 4);
    std::array<size_t, 2> found = {};
    for (const RoutingStep& step : trace.steps) {
      ++found[static_cast<size_t>(step.phase)];
      EXPECT_EQ(step.routed.size(), 16u);
    }
    EXPECT_EQ(found, n_steps[t]) << kShipped[t];
    const std::vector<std::byte> bytes = encode_trace(trace);
    const auto file = text_of(cat(SLUICE_TEST_DATA, "/traces/", kShipped[t], ".slrt"));
    EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(*file)))) << kShipped[t];
  }
}

// bfloat16 keeps the upper half of a float: to the nearest one, and from the middle between two to
// the even one.
TEST(RoutingTrace, GatesAreRoundedToNearestAndTiesToEven) {
  const std::pair<uint32_t, uint16_t> cases[] = {
      {0x3f800000, 0x3f80}, {0x3f807fff, 0x3f80},
      {0x3f808001, 0x3f81},                        // 1, below and above
      {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82},  // ties, down and up
      {0x3e808000, 0x3e80}, {0x3e838000, 0x3e84},
      {0x3f7fffff, 0x3f80},  // a carry into the exponent
      {0x00000000, 0x0000}, {0x00008000, 0x0000},
      {0x00018000, 0x0002}};
  for (const auto& [exact, rounded] : cases) {
    RoutingTrace trace = small_trace();
    trace.steps[0].routed[0].weight = std::bit_cast<float>(exact);
    const RoutingTrace read = decode_trace(encode_trace(trace));
    EXPECT_EQ(std::bit_cast<uint32_t>(read.steps[0].routed[0].weight), uint32_t{rounded} << 16)
        << std::hex << exact;
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

TEST(RoutingTrace, TheEndMarkMustCountTheStepsAndBeTheLast) {
  const std::vector<std::byte> good = encode_trace(small_trace());
  for (const uint64_t n : {0u, 1u, 3u}) {
    std::vector<std::byte> bytes = good;
    std::memcpy(bytes.data() + bytes.size() - sizeof n, &n, sizeof n);
    EXPECT_EQ(error_of(bytes), cat("routing trace: it says it has ", n, " steps; 2 were found"));
  }
  TraceReader reader;
  reader.feed(good);
  RoutingStep step;
  while (reader.next(step)) continue;
  ASSERT_TRUE(reader.at_end());
  reader.feed({});
  EXPECT_EQ(sluice::test::error_of(Errc::bad_file, [&] { reader.feed(std::span(good).first(2)); }),
            "routing trace: 2 bytes after its end; expected none");
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

// Each number of the header alone: too large, or none at all.
TEST(RoutingTrace, EveryNumberOfTheHeaderHasItsLimits) {
  const std::vector<std::byte> good = encode_trace(small_trace());
  const auto with = [&good](size_t at, uint32_t value) {
    std::vector<std::byte> bytes = good;
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return error_of(bytes);
  };
  constexpr size_t kLayersAt = 8, kExpertsAt = 12, kUsedAt = 16, kNameAt = 20;
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), text.npos) << text;
  };
  has(with(kLayersAt, kMaxLayers + 1), "1025 layers, 8 experts");
  has(with(kExpertsAt, kMaxExperts + 1), "3 layers, 4097 experts");
  has(with(kUsedAt, kMaxExpertsUsed + 1), "256 used");
  has(with(kNameAt, 4097), "a name of 4097 bytes");
  has(with(kLayersAt, 0), "the number of layers is 0");
  has(with(kExpertsAt, 0), "the number of experts is 0");
  has(with(kUsedAt, 0), "the number of experts used is 0");
  has(with(kUsedAt, 9), "the number of experts used is 9; expected 1 to 8");
  const size_t kBytesAt = 24 + 4;
  has(with(kBytesAt + 4, 0x200), "an expert of layer 0 has");
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
