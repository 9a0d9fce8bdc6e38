// A small file cannot make the program take much memory, whatever it claims; and where memory is
// short, the program says so instead of being killed.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/units.h"
#include "cli/models.h"
#include "support/sanitizers.h"
#include "support/temp_dir.h"
#include "unit/gguf/file_bytes.h"

namespace sluice::test {
namespace {

using gguf::test::FileBytes;

struct Liar {
  std::string name;
  std::string bytes;
};

void PrintTo(const Liar& liar, std::ostream* to) { *to << liar.name; }

// The keys of a model, each as large as it may be, and not one tensor.
std::string largest_model() {
  FileBytes file(0, 11);
  file.key("general.architecture", gguf::test::kString).text("llama");
  const auto size = [&](const std::string& name, uint32_t value) {
    file.key("llama." + name, gguf::test::kU32).put(value);
  };
  size("block_count", 4096);
  size("context_length", 1u << 30);
  size("embedding_length", 1u << 20);
  size("attention.head_count", 1u << 20);
  size("attention.key_length", 1u << 20);
  file.key("llama.attention.layer_norm_rms_epsilon", gguf::test::kF32).put(1e-6f);
  size("vocab_size", 1u << 20);
  size("expert_count", 1024);
  size("expert_used_count", 1024);
  size("feed_forward_length", 1u << 20);
  return file.str();
}

std::vector<Liar> liars() {
  constexpr int64_t kHuge = int64_t{1} << 62;
  constexpr uint64_t k2To30 = uint64_t{1} << 30;  // the most a string or an array may have
  const auto one_key = [] { return FileBytes(0, 1); };
  std::vector<Liar> out = {
      {"many_tensors", FileBytes(kHuge, 0).str()},
      {"many_keys", FileBytes(0, kHuge).str()},
      {"as_many_tensors_as_bytes", FileBytes(1000, 0).str()},
      {"as_many_keys_as_bytes", FileBytes(0, 1000).str()},
      {"a_long_key", one_key().put(k2To30).str()},
      {"a_long_string", one_key().key("k", gguf::test::kString).put(k2To30).str()},
      {"a_long_array", one_key().array("k", gguf::test::kU8, k2To30).str()},
      {"a_long_array_of_doubles", one_key().array("k", gguf::test::kF64, k2To30).str()},
      {"a_long_array_of_strings", one_key().array("k", gguf::test::kString, k2To30).str()},
      {"an_array_of_empty_strings", one_key().array("k", gguf::test::kString, 100).str()},
      {"a_large_tensor",
       FileBytes(1, 0).tensor("token_embd.weight", {int64_t{1} << 40}, 0, 0).str()},
      {"many_shards", FileBytes(0, 3)
                          .key("split.count", gguf::test::kU16)
                          .put(uint16_t{65535})
                          .key("split.no", gguf::test::kU16)
                          .put(uint16_t{0})
                          .key("split.tensors.count", gguf::test::kI32)
                          .put(int32_t{0x7fffffff})
                          .str()},
      {"the_largest_model", largest_model()},
  };
  for (Liar& liar : out) liar.bytes.resize(1024, '\0');
  return out;
}

class Liars : public testing::TestWithParam<Liar> {};

TEST_P(Liars, TakeLittleMemory) {
  const TempDir dir;
  const std::string path = dir / "liar-00001-of-65535.gguf";
  write_file(path, GetParam().bytes);
  constexpr uint64_t kBound = 64 * kMiB;
  for (const Args& args : {Args{"inspect", path, "--metadata", "--tensors", "--check-tensors"},
                           Args{"logits", "-m", path, "--tokens", "1"},
                           Args{"quantize", path, dir / "q.gguf", "F16"}}) {
    const Outcome outcome = run_sluice(args);
    EXPECT_TRUE(kSanitized || outcome.peak_rss_bytes < kBound)
        << outcome.peak_rss_bytes << " bytes at the peak; expected less than " << kBound << "\n"
        << outcome;
    EXPECT_GT(outcome.peak_rss_bytes, kMiB) << "not a real measurement";
    const bool may_succeed = args[0] != "logits";  // there is nothing to compute with
    if (outcome.exit_code != 0 || !may_succeed) {
      EXPECT_TRUE(refused(outcome, {path}));
    }
  }
  if (kSanitized)
    GTEST_SKIP() << "refused as they should be, but a sanitizer's own memory is many "
                    "times the bound";
}

INSTANTIATE_TEST_SUITE_P(Each, Liars, testing::ValuesIn(liars()),
                         [](const auto& test) { return test.param.name; });

// 954 GiB of cache. The kernel may refuse it, or grant what will never be touched; both are fine,
// since a session touches only the pages of the tokens it has.
TEST(HugeContext, IsRefusedOrHarmless) {
  const TempDir dir;
  const std::string path = make_model(dir / "m.gguf");
  const Outcome outcome =
      run_sluice({"run", "-m", path, "--tokens", "1,2", "-n", "2", "--json", "-c", "2000000000"});
  if (outcome.exit_code == 0) {
    EXPECT_EQ(nlohmann::json::parse(outcome.out).at("stats").at("n_prefill_tokens"), 2);
  } else {
    EXPECT_TRUE(refused(outcome, {"cannot allocate", "GiB", "smaller context (-c)"}));
  }
}

Outcome run_in_one_gib(const Args& args) {
  return run_sluice(args, {.timeout = std::chrono::seconds(100), .in_child = [] {
                             const rlimit limit{kGiB, kGiB};
                             if (::setrlimit(RLIMIT_AS, &limit) != 0) ::_exit(99);
                           }});
}

constexpr char kNeedsAddressSpace[] = "a sanitizer needs terabytes of address space";

TEST(HugeContext, WithoutRoomForItIsRefused) {
  if (kSanitized) GTEST_SKIP() << kNeedsAddressSpace;
  const TempDir dir;
  const std::string path = make_model(dir / "m.gguf");
  const Args args = {"logits", "-m", path, "--tokens", "1,2", "-t", "1"};
  EXPECT_TRUE(succeeded(run_in_one_gib(args)));
  // Too large in turn: the cache, the most that -c takes, and the rows of a chunk.
  for (const Args& flags : {Args{"-c", "4000000"}, Args{"-c", "2147483647"},
                            Args{"-c", "200000", "--prefill-chunk", "2000000"}}) {
    EXPECT_TRUE(refused(run_in_one_gib(args + flags), {"memory", "smaller context (-c)"}));
  }
}

// Half a gigabyte fits once, but not twice: weights stay in the file unless the user insists.
TEST(LargeWeights, WithoutRoomForACopyStayInTheFile) {
  if (kSanitized) GTEST_SKIP() << kNeedsAddressSpace;
  const TempDir dir;
  const std::string path = make_model(dir / "m.gguf", {{"--type", "Q4_K"},
                                                       {"--layers", "2"},
                                                       {"--d-model", "1024"},
                                                       {"--d-ff", "2048"},
                                                       {"--experts", "80"}});
  const Args args = {"logits", "-m", path, "--tokens", "1,2", "-t", "1"};
  const Outcome usual = run_in_one_gib(args);
  EXPECT_TRUE(succeeded(usual));
  EXPECT_TRUE(refused(run_in_one_gib(args + Args{"--weights", "copied"}),
                      {"no room for a copy", "MiB", "--weights mapped"}));
  EXPECT_EQ(usual.out, run_sluice(args + Args{"--weights", "copied"}).out);
}

// The copy has taken its memory when the device is planned for: the experts that stay with the CPU
// are in it, and are not asked for a second time. 400 MiB in the file, as many copied, 1 GiB in
// all.
TEST(LargeWeights, AreCountedOnceWhenADeviceIsPlannedFor) {
  if (kSanitized) GTEST_SKIP() << kNeedsAddressSpace;
  const TempDir dir;
  const std::string path = make_model(dir / "m.gguf", {{"--type", "Q4_K"},
                                                       {"--layers", "2"},
                                                       {"--d-model", "1024"},
                                                       {"--d-ff", "2048"},
                                                       {"--experts", "58"}});
  const Args args = {"logits",          "-m", path,        "--tokens", "1,2", "-t", "1", "-c", "64",
                     "--prefill-chunk", "2",  "--weights", "copied"};
  const Outcome on_device =
      run_in_one_gib(args + Args{"--device", "sim", "--moe", "cpu", "--vram", "64MiB", "--machine",
                                 "none", "--profile", "none"});
  EXPECT_TRUE(succeeded(on_device));
  EXPECT_EQ(on_device.out, run_sluice(args).out);
}

TEST(ManyThreads, WithoutRoomForThemAreRefused) {
  if (kSanitized) GTEST_SKIP() << kNeedsAddressSpace;
  const TempDir dir;
  const std::string path = make_model(dir / "m.gguf");
  for (const Args& args :
       {Args{"logits", "-m", path, "--tokens", "1"}, Args{"synth", dir / "s.gguf"},
        Args{"quantize", path, dir / "q.gguf", "F16"}}) {
    EXPECT_TRUE(refused(run_in_one_gib(args + Args{"-t", "1024"}), {"thread"}));
  }
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"m.gguf"}));
}

}  // namespace
}  // namespace sluice::test
