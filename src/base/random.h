// Random bits as a pure function of (seed, index): any part of a stream can be made alone, on any
// thread, in any order. For synthetic weights and tests, not for sampling tokens or for secrets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

// SplitMix64's finaliser: a bijection of 64 bits whose outputs pass the usual statistical tests.
constexpr uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr uint64_t random_bits(uint64_t seed, uint64_t index) {
  return mix64(seed + (index + 1) * 0x9e3779b97f4a7c15u);
}

// A seed for a named thing (FNV-1a of the name, mixed with the caller's seed).
constexpr uint64_t seed_of(std::string_view name, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return mix64(hash ^ mix64(seed));
}

// Uniform in [-1, 1), from the upper 24 bits.
constexpr float random_signed(uint64_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits >> 40) - (1 << 23)) * 0x1p-23f;
}

}  // namespace sluice
