// See routing_profile.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/routing_profile.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "base/random.h"
#include "policy/trace/byte_codec.h"

namespace sluice::policy {

namespace {

constexpr char kMagic[4] = {'S', 'L', 'R', 'P'};
constexpr uint32_t kVersion = 1;
constexpr size_t kHeader = sizeof kMagic + 3 * sizeof(uint32_t) + sizeof(double);

uint64_t checksum(std::span<const std::byte> bytes) {
  return seed_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kVersion);
}

template <typename... Args>
[[noreturn]] void fail(const Args&... args) {
  throw Error(Errc::bad_file,
              cat("routing profile: ", args..., "; delete the file, it will be made anew"));
}

}  // namespace

RoutingProfile::RoutingProfile(int n_layers, int n_experts)
    : n_layers_(n_layers),
      n_experts_(n_experts),
      uses_(static_cast<size_t>(n_layers) * static_cast<size_t>(n_experts), 0.0f) {
  CHECK(n_layers >= 1 && n_layers <= kMaxLayers && n_experts >= 1 && n_experts <= kMaxExperts);
}

void RoutingProfile::add_run(std::span<const uint32_t> uses, uint64_t n_steps) {
  CHECK(uses.size() == uses_.size());
  const double fade = n_steps_ > kMemorySteps ? kMemorySteps / n_steps_ : 1.0;
  n_steps_ = n_steps_ * fade + static_cast<double>(n_steps);
  for (size_t i = 0; i < uses_.size(); ++i) {
    uses_[i] = uses_[i] * static_cast<float>(fade) + static_cast<float>(uses[i]);
  }
}

std::vector<float> RoutingProfile::rates() const {
  std::vector<float> rates(uses_.size(), 0.0f);
  if (n_steps_ <= 0.0) return rates;
  for (size_t i = 0; i < rates.size(); ++i) {
    rates[i] = std::min(1.0f, uses_[i] / static_cast<float>(n_steps_));
  }
  return rates;
}

std::vector<std::byte> RoutingProfile::encode() const {
  std::vector<std::byte> bytes;
  put_bytes(bytes, kMagic, sizeof kMagic);
  put(bytes, kVersion);
  put(bytes, static_cast<uint32_t>(n_layers_));
  put(bytes, static_cast<uint32_t>(n_experts_));
  put(bytes, n_steps_);
  put_bytes(bytes, uses_.data(), uses_.size() * sizeof(float));
  put(bytes, checksum(bytes));
  return bytes;
}

RoutingProfile RoutingProfile::decode(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeader || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    fail("it does not begin with \"SLRP\" and a header of ", kHeader, " bytes");
  }
  size_t pos = sizeof kMagic;
  if (const auto version = take<uint32_t>(bytes, pos); version != kVersion) {
    fail("version ", version, "; expected ", kVersion);
  }
  const auto n_layers = take<uint32_t>(bytes, pos);
  const auto n_experts = take<uint32_t>(bytes, pos);
  if (n_layers < 1 || n_layers > kMaxLayers || n_experts < 1 || n_experts > kMaxExperts) {
    fail(n_layers, " layers of ", n_experts, " experts; expected 1 to ", kMaxLayers, " of 1 to ",
         kMaxExperts);
  }
  const auto n_steps = take<double>(bytes, pos);
  const size_t n_bytes = size_t{n_layers} * n_experts * sizeof(float);
  if (bytes.size() != kHeader + n_bytes + sizeof(uint64_t)) {
    fail(bytes.size(), " bytes; expected ", kHeader + n_bytes + sizeof(uint64_t), " for ", n_layers,
         " layers of ", n_experts, " experts");
  }
  size_t sum_pos = kHeader + n_bytes;
  if (take<uint64_t>(bytes, sum_pos) != checksum(bytes.first(kHeader + n_bytes))) {
    fail("its checksum does not match its content");
  }
  RoutingProfile profile(static_cast<int>(n_layers), static_cast<int>(n_experts));
  profile.n_steps_ = n_steps;
  std::memcpy(profile.uses_.data(), bytes.data() + pos, n_bytes);
  const bool sane = std::all_of(profile.uses_.begin(), profile.uses_.end(),
                                [](float n) { return std::isfinite(n) && n >= 0.0f; });
  if (!sane || !std::isfinite(n_steps) || n_steps < 0.0) {
    fail("counts that are negative or no numbers");
  }
  return profile;
}

}  // namespace sluice::policy
