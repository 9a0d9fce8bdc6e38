// The two small parts that every layer is full of, RMSNorm and the rotary embedding, against their
// formulas in float64.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/cpu/rms_norm.h"
#include "backend/cpu/rope.h"
#include "unit/backend/reference.h"

namespace sluice::backend::test {
namespace {

TEST(RmsNorm, IsItsFormulaForAnyLengthAndSize) {
  for (const int64_t n : {1, 2, 7, 8, 9, 31, 33, 64, 2048}) {
    for (const float size : {1e-15f, 1e-3f, 1.0f, 1e4f, 1e15f}) {
      for (const float eps : {0.0f, 1e-6f, 1e-2f}) {
        const std::vector<float> x = random_values(n, 11, size), w = random_norm_weight(n, 12);
        const NormView norm{w.data(), eps};
        std::vector<float> y(x.size());
        cpu::rms_norm(x, norm, y.data());
        const std::string what = "n " + std::to_string(n) + " size " + std::to_string(size) +
                                 " eps " + std::to_string(eps);
        expect_within(norm_reference(x, norm), y, what);
        expect_sharp(norm_reference(x, norm), 1e-4, what);
      }
    }
  }
}

TEST(RmsNorm, MayWriteWhereItReads) {
  const std::vector<float> x = random_values(100, 13), w = random_norm_weight(100, 14);
  std::vector<float> apart(100), in_place = x;
  cpu::rms_norm(x, {w.data(), 1e-6f}, apart.data());
  cpu::rms_norm(in_place, {w.data(), 1e-6f}, in_place.data());
  expect_same_bits(apart, in_place, "in place");
}

TEST(RmsNorm, ARowOfZerosStaysZero) {
  const std::vector<float> x(40, 0.0f), w = random_norm_weight(40, 15);
  std::vector<float> y(40, 1.0f);
  cpu::rms_norm(x, {w.data(), 1e-6f}, y.data());
  expect_same_bits(x, y, "zeros");
}

struct RopeCase {
  RopePairing pairing;
  int head_dim, n_rot;
  float magnitude;
};

std::vector<float> frequencies(int n_rot, double base) {
  std::vector<float> out(static_cast<size_t>(n_rot / 2));
  for (size_t j = 0; j < out.size(); ++j) {
    out[j] = static_cast<float>(std::pow(base, -2.0 * static_cast<double>(j) / n_rot));
  }
  return out;
}

TEST(Rope, TurnsThePairsOfAHeadAndLeavesTheRest) {
  for (const RopePairing pairing : {RopePairing::adjacent, RopePairing::halves}) {
    for (const auto& [head_dim, n_rot] :
         {std::pair(64, 64), {64, 32}, {128, 128}, {6, 2}, {2, 2}, {10, 6}}) {
      for (const float magnitude : {1.0f, 1.34657f, 0.5f}) {
        for (const int32_t position : {0, 1, 2, 63, 4095, 1 << 20}) {
          const std::vector<float> turns = frequencies(n_rot, 10000.0);
          const RopeView rope{pairing, turns, magnitude};
          std::vector<float> head = random_values(head_dim, 21);
          BoundedRow expected = exactly(head);
          rope_reference(rope, position, expected);

          std::vector<float> angles(static_cast<size_t>(n_rot));
          cpu::rope_angles(rope, position, angles);
          cpu::rope_turn(pairing, angles, head.data());
          expect_within(expected, head,
                        std::string(pairing == RopePairing::halves ? "halves" : "adjacent") +
                            " n_rot " + std::to_string(n_rot) + " of " + std::to_string(head_dim) +
                            " magnitude " + std::to_string(magnitude) + " position " +
                            std::to_string(position));
        }
      }
    }
  }
}

// By hand: a quarter turn takes (1, 0) to (0, 1) and (0, 1) to (-1, 0).
TEST(Rope, AQuarterTurnGoesTheRightWay) {
  const std::vector<float> quarter = {1.57079632679f, 0.0f};
  const auto turn = [&](RopePairing pairing, std::vector<float> head) {
    std::vector<float> angles(4);
    cpu::rope_angles({pairing, quarter, 2.0f}, 1, angles);
    cpu::rope_turn(pairing, angles, head.data());
    return head;
  };
  // float32 pi/2 is off by 4.4e-8; cos is that, times the magnitude 2 and the values up to 5.
  constexpr float kBound = 1e-6f;
  const std::vector<float> adjacent = turn(RopePairing::adjacent, {1, 0, 3, 4, 5});
  const std::vector<float> halves = turn(RopePairing::halves, {1, 3, 0, 4, 5});
  const float expected_adjacent[] = {0, 2, 6, 8, 5}, expected_halves[] = {0, 6, 2, 8, 5};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(adjacent[i], expected_adjacent[i], kBound) << "adjacent, index " << i;
    EXPECT_NEAR(halves[i], expected_halves[i], kBound) << "halves, index " << i;
  }
}

// The turned q and k of two positions give the same product wherever the pair stands.
TEST(Rope, ProductsDependOnTheDistanceAlone) {
  const std::vector<float> turns = frequencies(64, 1e6);
  const std::vector<float> q = random_values(64, 31), k = random_values(64, 32);
  const auto product = [&](int32_t at_q, int32_t at_k) {
    BoundedRow expected_q = exactly(q), expected_k = exactly(k);
    rope_reference({RopePairing::halves, turns, 1.0f}, at_q, expected_q);
    rope_reference({RopePairing::halves, turns, 1.0f}, at_k, expected_k);
    std::vector<float> a = q, b = k, angles(64);
    cpu::rope_angles({RopePairing::halves, turns, 1.0f}, at_q, angles);
    cpu::rope_turn(RopePairing::halves, angles, a.data());
    cpu::rope_angles({RopePairing::halves, turns, 1.0f}, at_k, angles);
    cpu::rope_turn(RopePairing::halves, angles, b.data());
    Bounded sum;
    for (size_t i = 0; i < 64; ++i) {
      sum.value += double{a[i]} * b[i];
      sum.error += expected_q[i].error * expected_k[i].magnitude() +
                   expected_k[i].error * expected_q[i].magnitude();
    }
    return sum;
  };
  const Bounded near = product(5, 0);
  for (const int32_t start : {1, 100, 5000}) {
    const Bounded far = product(start + 5, start);
    EXPECT_NEAR(far.value, near.value, far.error + near.error) << "start " << start;
  }
  EXPECT_GT(std::abs(product(6, 0).value - near.value), 10 * near.error) << "shows nothing";
}

// The bits of the formula, whatever the vector code: a turn and a norm, one element at a time.
TEST(Rope, IsToTheBitOneRoundingForEachOperation) {
  for (const RopePairing pairing : {RopePairing::adjacent, RopePairing::halves}) {
    for (const int n_rot : {2, 6, 30, 64, 128}) {
      const std::vector<float> turns = frequencies(n_rot, 10000.0);
      std::vector<float> head = random_values(n_rot, 41), expected = head;
      std::vector<float> angles(static_cast<size_t>(n_rot));
      cpu::rope_angles({pairing, turns, 1.5f}, 77, angles);
      cpu::rope_turn(pairing, angles, head.data());
      const size_t n_pairs = turns.size();
      for (size_t j = 0; j < n_pairs; ++j) {
        const bool adjacent = pairing == RopePairing::adjacent;
        float& x0 = expected[adjacent ? 2 * j : j];
        float& x1 = expected[adjacent ? 2 * j + 1 : j + n_pairs];
        const double theta = 77.0 * turns[j];
        const float c = static_cast<float>(std::cos(theta)) * 1.5f;
        const float s = static_cast<float>(std::sin(theta)) * 1.5f;
        const volatile float x0c = x0 * c, x1s = x1 * s, x0s = x0 * s, x1c = x1 * c;
        x0 = x0c - x1s;
        x1 = x0s + x1c;
      }
      expect_same_bits(expected, head, "n_rot " + std::to_string(n_rot));
    }
  }
}

}  // namespace
}  // namespace sluice::backend::test
