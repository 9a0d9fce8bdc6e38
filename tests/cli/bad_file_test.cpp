// Files that are damaged or lie: whatever the bytes, the program ends with exit code 1 and one line
// that names the file, what was found and what was expected. Never a signal, never a hang.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/random.h"
#include "cli/edit.h"
#include "cli/models.h"
#include "support/sanitizers.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

class BadFile : public testing::Test {
 protected:
  Outcome compute(const std::string& file) {
    return run_sluice({"logits", "-m", file, "--tokens", "1,2", "--json"});
  }
  // Every command that reads a model says the same.
  void expect_refusal(const std::string& file, std::vector<std::string> parts) {
    parts.push_back(file);
    EXPECT_TRUE(refused(compute(file), parts));
    EXPECT_TRUE(refused(run_sluice({"run", "-m", file, "--tokens", "1"}), parts));
    EXPECT_TRUE(refused(run_sluice({"inspect", file}), parts));
    EXPECT_TRUE(refused(run_sluice({"inspect", file, "--json"}), parts));
    EXPECT_TRUE(refused(run_sluice({"quantize", file, dir / "out.gguf", "Q8_0"}), parts));
    EXPECT_FALSE(std::filesystem::exists(dir / "out.gguf"));
    EXPECT_FALSE(std::filesystem::exists(dir / "out.gguf.partial"));
  }
  std::string write(const std::string& bytes) {
    write_file(dir / "bad.gguf", bytes);
    return dir / "bad.gguf";
  }

  TempDir dir;
};

TEST_F(BadFile, IsRefusedWhenItIsMissing) {
  expect_refusal(dir / "none.gguf", {"there is no such file", "expected a GGUF file"});
}

TEST_F(BadFile, IsRefusedWhenItIsADirectory) {
  expect_refusal(dir.path(), {"is a directory", "expected a GGUF file"});
}

// open() must not wait for somebody to write into it.
TEST_F(BadFile, IsRefusedWhenItIsAPipe) {
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  const Outcome outcome =
      run_sluice({"inspect", dir / "pipe"}, {.timeout = std::chrono::seconds(60)});
  EXPECT_TRUE(refused(outcome, {dir / "pipe", "is not a regular file", "expected a GGUF file"}));
}

TEST_F(BadFile, IsRefusedWhenItIsEmpty) {
  expect_refusal(write(""), {"is empty", "expected a GGUF file"});
}

TEST_F(BadFile, IsRefusedWhenItIsSomethingElse) {
  expect_refusal(write("version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
                 {"starts with 'vers'", "expected 'GGUF'"});
}

TEST_F(BadFile, IsRefusedInOneLineWhenItsNameHasTwo) {
  EXPECT_TRUE(refused(run_sluice({"inspect", dir / "two\nlines\x1b[31m"}),
                      {"two?lines?[31m", "there is no such file"}));
}

class DamagedFile : public BadFile {
 protected:
  std::string bytes = read_file(make_model(dir / "good.gguf"));
  // The tokens' names take most of the header; the directory of tensors begins after them.
  const size_t directory = bytes.find("token_embd.weight");
};

TEST_F(DamagedFile, IsReadWhenItIsWhole) {  // or the others would prove nothing
  ASSERT_NE(directory, std::string::npos);
  EXPECT_TRUE(succeeded(compute(write(bytes))));
}

TEST_F(DamagedFile, CutAtEachEighthSaysWhatIsMissing) {
  for (size_t i = 1; i < 8; ++i) {
    const size_t n = bytes.size() * i / 8;
    expect_refusal(write(bytes.substr(0, n)),
                   {cat("has ", n, " bytes"), "expected at least", "incomplete"});
  }
  const size_t n = bytes.size() - 1;
  expect_refusal(write(bytes.substr(0, n)), {cat("has ", n, " bytes"), "expected"});
}

TEST_F(DamagedFile, CutInItsHeaderSaysWhatIsMissing) {
  const size_t header = directory + 1200;
  ASSERT_LT(header, bytes.size() / 8);
  const size_t step = kSanitized ? 211 : 53;
  for (size_t n = 1; n < header; n += n < 40 ? 3 : step) {
    const Outcome outcome = compute(write(bytes.substr(0, n)));
    ASSERT_TRUE(refused(outcome, {dir / "bad.gguf", "bytes", "expected"})) << "cut at " << n;
  }
}

// Every bit in turn would take minutes; these are spread over the keys of the shape and over the
// directory, and another run would take the same.
TEST_F(DamagedFile, WithAFlippedBitRunsOrIsRefusedInOneLine) {
  const size_t tokens = bytes.find("tokenizer.ggml.tokens");
  ASSERT_LT(tokens, directory);
  const size_t directory_bytes = 1200;
  const int n_flips = kSanitized ? 200 : 700;
  int n_refused = 0;
  for (int i = 0; i < n_flips; ++i) {
    const uint64_t random = random_bits(2024, static_cast<uint64_t>(i));
    const size_t place = static_cast<size_t>((random >> 8) % (tokens + 40 + directory_bytes));
    const size_t at = place < tokens + 40 ? place : directory + (place - tokens - 40);
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (random & 7)));
    const Outcome outcome = compute(write(flipped));
    if (outcome.exit_code == 0) {
      EXPECT_TRUE(nlohmann::json::accept(outcome.out)) << outcome;
      continue;
    }
    ++n_refused;
    EXPECT_TRUE(refused(outcome, {dir / "bad.gguf"}))
        << "bit " << (random & 7) << " of byte " << at;
  }
  EXPECT_GT(n_refused, n_flips / 2) << "of " << n_flips << ": hardly any flip was noticed";
  EXPECT_LT(n_refused, n_flips) << "not one flip was harmless, not even in general.name";
}

TEST_F(DamagedFile, IsRefusedWhenItCountsMoreThanItHolds) {
  const auto with_count = [&](size_t at, int64_t count) {
    std::string changed = bytes;
    std::memcpy(&changed[at], &count, sizeof(count));
    return write(changed);
  };
  expect_refusal(with_count(8, int64_t{1} << 40), {"1099511627776 tensors", "expected"});
  expect_refusal(with_count(8, -1), {"-1 tensors", "expected 0 or more"});
  expect_refusal(with_count(16, int64_t{1} << 62), {"4611686018427387904 keys", "expected"});
  expect_refusal(with_count(16, std::numeric_limits<int64_t>::min()), {"keys", "0 or more"});
}

TEST_F(DamagedFile, IsRefusedForAnUnknownVersion) {
  bytes[4] = 9;
  expect_refusal(write(bytes), {"GGUF version 9", "expected 2 or 3"});
}

TEST_F(DamagedFile, IsRefusedWhenTensorsOverlap) {
  TensorLine(bytes, "blk.0.ffn_up_exps.weight").set_offset(0);
  expect_refusal(write(bytes), {"'blk.0.ffn_up_exps.weight'", "overlap", "expected separate"});
}

TEST_F(DamagedFile, IsRefusedWhenATensorLiesOutside) {
  TensorLine(bytes, "output.weight").set_offset(uint64_t{1} << 40);
  expect_refusal(write(bytes), {"'output.weight'", "beyond the end of the file", "expected"});
}

TEST_F(DamagedFile, IsRefusedWhenATensorIsImpossiblyLarge) {
  TensorLine(bytes, "output.weight").set_dim(1, int64_t{1} << 60);
  expect_refusal(write(bytes), {"'output.weight'", "1152921504606846976", "expected"});
}

TEST_F(DamagedFile, IsRefusedForATensorOfAnUnknownType) {
  TensorLine(bytes, "output.weight").set_type(77);
  expect_refusal(write(bytes), {"'output.weight'", "unknown type id 77", "expected"});
}

const std::string kNan("\0\0\xc0\x7f", 4);

TEST_F(DamagedFile, ThatHoldsNanIsRefusedWhenItReachesTheLogits) {
  for (const char* name : {"token_embd.weight", "blk.0.attn_output.weight",
                           "blk.0.ffn_down_exps.weight", "output_norm.weight", "output.weight"}) {
    EditableModel model(dir / "good.gguf");
    std::string& data = model.tensor(name).data;
    for (size_t i = 0; i < data.size(); i += 4) data.replace(i, 4, kNan);
    const std::string path = model.write(dir / "bad.gguf");
    for (const char* type : {"f16", "q4_0"}) {
      const Args flags = {"-m", path, "--tokens", "1,2,3", "-ctk", type, "-ctv", type};
      for (const char* command : {"logits", "run"}) {
        EXPECT_TRUE(refused(run_sluice(Args{command, "--json"} + flags), {path, "not finite"}))
            << name;
      }
    }
  }
}

// A softmax lies between these and the logits; what it makes of NaN is not promised, only that the
// program survives it. (inspect --check-tensors finds them; see inspect_test.cpp.)
TEST_F(DamagedFile, ThatHoldsNanBeforeASoftmaxDoesNotHarmTheProgram) {
  for (const char* name :
       {"blk.0.ffn_gate_inp.weight", "blk.0.attn_q.weight", "blk.0.attn_k_norm.weight"}) {
    EditableModel model(dir / "good.gguf");
    std::string& data = model.tensor(name).data;
    for (size_t i = 0; i < data.size(); i += 4) data.replace(i, 4, kNan);
    const std::string path = model.write(dir / "bad.gguf");
    const Outcome outcome = run_sluice({"logits", "-m", path, "--tokens", "1,2,3", "--json"});
    if (outcome.exit_code == 0) {
      EXPECT_EQ(parse_logits(outcome.out).size(), 3u) << name;
    } else {
      EXPECT_TRUE(refused(outcome, {path, "not finite"})) << name;
    }
  }
}

TEST_F(DamagedFile, ThatHoldsNanForOneTokenGivesTheOthersAndThenTheError) {
  EditableModel model(dir / "good.gguf");
  model.tensor("token_embd.weight").data.replace(7 * 256 * 4, 4, kNan);
  const std::string path = model.write(dir / "bad.gguf");
  Outcome outcome = run_sluice({"logits", "-m", path, "--tokens", "1,7,2", "--json"});
  const auto positions = parse_logits(outcome.out);
  ASSERT_EQ(positions.size(), 1u) << outcome;
  EXPECT_EQ(positions[0].token, 1);
  outcome.out.clear();
  EXPECT_TRUE(refused(outcome, {path, "position 1", "not finite"}));
}

}  // namespace
}  // namespace sluice::test
