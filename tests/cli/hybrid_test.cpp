// Models with recurrent layers as a user meets them: a chat goes on without computing its beginning
// again, and a file's part that sees images is named.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/edit.h"
#include "cli/models.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

TEST(Hybrid, TheDemoModelChats) {
  const Args flags = {"run", "-m", "demo-hybrid", "--lines", "--temp", "0", "-t", "1"};
  const std::string more = "What is 31 + 12?\n", first = "What is 17 + 25?\n";
  const Outcome chat = run_sluice_on(first + more, flags + Args{"--no-thinking"});
  ASSERT_TRUE(succeeded(chat));
  EXPECT_EQ(chat.out, "17 + 25 = 42.\n31 + 12 = 43.\n");
  const std::vector<int> n = prompt_tokens(chat);
  ASSERT_EQ(n.size(), 2u) << chat.err;
  EXPECT_LE(n[1], n[0] + 4) << "the new question, and the end of the message before it";
}

// The template leaves the first answer's thoughts out, so that this answer is computed again.
TEST(Hybrid, TheDemoModelChatsAndThinks) {
  const Args flags = {"run", "-m", "demo-hybrid", "--lines", "--temp", "0", "-t", "1"};
  const std::string more = "What is 31 + 12?\n", first = "What is 17 + 25?\n";
  const Outcome chat = run_sluice_on(first + more, flags + Args{"--thinking", "--hide-thinking"});
  ASSERT_TRUE(succeeded(chat));
  EXPECT_EQ(chat.out, "17 + 25 = 42.\n31 + 12 = 43.\n");
  const std::vector<int> n = prompt_tokens(chat);
  ASSERT_EQ(n.size(), 2u) << chat.err;
  constexpr int kAnswer = 12, kFrame = 8;
  EXPECT_LE(n[1], n[0] + kAnswer + kFrame);
}

TEST(Hybrid, AVisionPartIsNamedAndLeftAside) {
  const TempDir dir;
  const std::string plain = make_model(dir / "plain.gguf", {{"--arch", "qwen35moe"}});
  EditableModel edited(plain);
  edited.tensors.push_back({"v.blk.0.attn_qkv.weight",
                            {64, 192},
                            &quant::type_info(quant::Type::f32),
                            std::string(size_t{64} * 192 * sizeof(float), '\0')});
  const std::string seeing = edited.write(dir / "seeing.gguf");
  const Args flags = {"--tokens", prompt_of(4), "-n", "4", "--ignore-eos"};
  const Outcome before = run_sluice(Args{"run", "-m", plain} + flags);
  const Outcome outcome = run_sluice(Args{"run", "-m", seeing} + flags);
  ASSERT_TRUE(succeeded(outcome));
  EXPECT_EQ(outcome.out, before.out);
  const std::string line =
      "the file's vision part is ignored (1 tensors, 48.0 KiB): sluice reads text alone\n";
  EXPECT_NE(outcome.err.find(line), std::string::npos) << outcome.err;
  EXPECT_EQ(before.err.find("vision"), std::string::npos) << before.err;
}

}  // namespace
}  // namespace sluice::test
