// The weights' way into a device at the start: in pieces through two small buffers, with and
// without pinned memory, woven where the host has only rows; and what a session tells of it
// meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/upload.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

using backend::MemoryKind;

std::vector<std::byte> numbered(size_t n, uint32_t seed) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(random_bits(seed, i));
  return bytes;
}

struct Seen {
  std::vector<std::pair<uint64_t, uint64_t>> told;  // done and total
  std::vector<std::byte> there;
  uint64_t pinned_meanwhile = 0, pinned_after = 0;
};

// Several sources, gaps between their places, and more than both buffers hold.
Seen bring(std::span<const std::vector<std::byte>> sources, uint64_t pin_limit) {
  constexpr uint64_t kGap = 96;
  uint64_t n_bytes = 0, n_places = 0;
  for (const auto& s : sources) n_bytes += s.size(), n_places += s.size() + kGap;
  backend::RamDevice device({.n_bytes = n_places, .pin_limit = pin_limit, .before_copy = {}});
  const backend::Buffer own = device.allocate(MemoryKind::device, n_places);
  ThreadPool threads(2);
  Seen seen;
  {
    Upload upload(device, threads, n_bytes,
                  [&](uint64_t done, uint64_t total) { seen.told.emplace_back(done, total); });
    seen.pinned_meanwhile = device.pinned_bytes();
    uint64_t at = 0;
    for (const auto& s : sources) {
      upload.add(own.data() + at, s);
      at += s.size() + kGap;
    }
    upload.finish();
    EXPECT_EQ(upload.n_bytes(), n_bytes);
  }
  seen.pinned_after = device.pinned_bytes();
  std::vector<std::byte> all(n_places);
  const auto stream = device.make_stream("back");
  stream->copy(all.data(), own.data(), n_places);
  stream->finish();
  uint64_t at = 0;
  for (const auto& s : sources) {
    seen.there.insert(seen.there.end(), all.begin() + static_cast<std::ptrdiff_t>(at),
                      all.begin() + static_cast<std::ptrdiff_t>(at + s.size()));
    at += s.size() + kGap;
  }
  return seen;
}

TEST(Upload, BringsEveryByteWhetherMemoryCanBePinnedOrNot) {
  const std::vector<std::vector<std::byte>> sources = {
      numbered(7, 1), numbered(9 * kMiB + 13, 2), numbered(300 * kKiB, 3), numbered(2 * kMiB, 4)};
  std::vector<std::byte> expected;
  for (const auto& s : sources) expected.insert(expected.end(), s.begin(), s.end());
  for (const uint64_t pin_limit : {kGiB, 3 * kMiB, uint64_t{1000}}) {
    const Seen seen = bring(sources, pin_limit);
    EXPECT_EQ(seen.there, expected) << pin_limit;
    EXPECT_EQ(seen.pinned_after, 0u);
    EXPECT_EQ(seen.pinned_meanwhile > kMiB, pin_limit > kMiB) << pin_limit;
    EXPECT_GE(seen.told.size(), 2u);
    EXPECT_TRUE(std::ranges::is_sorted(seen.told));
    EXPECT_EQ(seen.told.back(), std::pair(expected.size(), expected.size()));
  }
}

// As kernels of a GPU read them, and to the same bits.
TEST(Upload, RowsOfAMappedFileAreWovenOnTheirWay) {
  for (const char* architecture : {"qwen3moe", "qwen2moe"}) {
    for (const char* mix : {"Q4_K_M", "Q8_0", "F16"}) {
      const OpenModel woven(architecture, mix), mapped(architecture, mix, Weights::mapped);
      Place place{.share = 1.0, .weaves = true};
      Placed placed(mapped, place);
      expect_same_bits(run_alone(*woven, text()), placed.run(text()), cat(architecture, " ", mix));
      const bool is_quantised = std::string_view(mix) != "F16";
      const model::Layer& layer = placed.runtime.device_model().layers()[1];
      for (const backend::WeightView& w :
           {layer.experts.gate, layer.experts.down, layer.attn_out.weight}) {
        EXPECT_EQ(w.layout == quant::Layout::stripes, is_quantised) << mix;
      }
    }
  }
}

// No signal: an error that says what to look at.
TEST(Upload, OfAFileThatShrinksIsRefusedInsteadOfCrashing) {
  for (const char* mix : {"Q8_0", "F32"}) {
    const OpenModel mapped("qwen3moe", mix, Weights::mapped);
    std::filesystem::resize_file(mapped.path(), 4096);
    const std::string error = error_of(
        Errc::bad_file, [&] { const Placed placed(mapped, {.share = 1.0, .weaves = true}); });
    expect_contains(error, "cannot be read");
  }
}

// With all experts on the device nothing of the host's stays registered for it.
TEST(Upload, AllExpertsOnTheDeviceLeaveThoseOfTheHostAlone) {
  const OpenModel model("qwen3moe", "Q8_0");
  Place place{.share = 1.0};
  int n_leases = 0;
  place.device.on_register = [&](std::span<const std::byte>, bool) { ++n_leases; };
  Placed placed(model, place);
  EXPECT_EQ(n_leases, 0);
  EXPECT_EQ(placed.runtime.price().pinned.experts, 0u);
  EXPECT_EQ(placed.runtime.stats().n_copies, 0);
  EXPECT_GE(placed.runtime.uploaded_bytes(), placed.shape.expert_bytes());
}

}  // namespace
}  // namespace sluice::engine::test
