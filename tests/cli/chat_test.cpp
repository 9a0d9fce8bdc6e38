// The chat through a pipe: messages by line and in blocks, the commands, and what a conversation
// remembers. (On a terminal: terminal_test.py.)
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>

#include "cli/scripted_model.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

using nlohmann::json;

class Chat : public testing::Test {
 protected:
  Outcome chat(const std::string& input, const Args& flags = {}) const {
    return run_sluice_on(input, Args{"run", "-m", scripted, "--lines"} + flags);
  }
  // A conversation as the program keeps it, at the end of this input.
  json conversation_after(const std::string& input, const Args& flags = {}) const {
    chat(input + "\n/save " + dir / "after.json", flags);
    return json::parse(read_file(dir / "after.json"));
  }
  static json message(const std::string& role, const std::string& text) {
    return {{"role", role}, {"content", text}};
  }

  TempDir dir;
  const std::string base = make_model(dir / "m.gguf");
  // Answers "Hi".
  const std::string scripted = ScriptedModel(base, {"H", "i"}).write(dir / "scripted.gguf");
};

TEST_F(Chat, AnswersLineByLineAndEndsWithItsInput) {
  const Outcome outcome = chat("hello\n\nand you?\n");
  EXPECT_TRUE(succeeded(outcome));
  EXPECT_EQ(outcome.out, "Hi\nHi\n");  // no prompts, no colours: nobody watches
  EXPECT_EQ(prompt_tokens(outcome).size(), 2u) << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 2) << outcome.err;
}

TEST_F(Chat, ReadsMessagesOfSeveralLines) {
  const json got = conversation_after(
      "one \\\ntwo \\\n\\\nthree\n"
      "\"\"\"\nfour\n\n  five \\\n\"\"\"\n"
      "\"\"\"six\nseven\"\"\"\n"
      "\"\"\"eight\"\"\"\n"
      "\"\"\"\n\"\"\"\n"            // nothing: no message
      "\"\"\"\n\nnine\n\n\"\"\"\n"  // inner empty lines stay
      "\"\"\"\n/help\n\"\"\"\n"     // no command
      "a \"\"\" b");
  std::vector<std::string> asked;
  for (const json& m : got) {
    if (m.at("role") == "user") asked.push_back(m.at("content"));
  }
  EXPECT_EQ(asked,
            (std::vector<std::string>{"one \ntwo \n\nthree", "four\n\n  five \\", "six\nseven",
                                      "eight", "\nnine\n", "/help", "a \"\"\" b"}));
}

TEST_F(Chat, TakesABlockThatIsNeverClosedAsItIs) {
  const Outcome outcome = chat("\"\"\"\nopen\nend", {"--verbose-prompt"});
  EXPECT_NE(outcome.err.find("user\nopen\nend<|im_end|>"), std::string::npos) << outcome.err;
  EXPECT_EQ(chat("\"\"\"").out, "");
}

TEST_F(Chat, ComputesOnlyWhatIsNew) {
  const Outcome outcome = chat("hi\nmore\n/regen\n/reset\nhi\nhi\n");
  // "hi": 21 tokens. Then <|im_end|> \n, the message in its frame, and the frame of the answer: 9 +
  // 4 + 12. Again: the last one of them. After a reset the first prompt again: its last one.
  EXPECT_EQ(prompt_tokens(outcome), (std::vector<int>{21, 25, 1, 1, 23})) << outcome.err;
  EXPECT_EQ(outcome.out, "Hi\nHi\nHi\nHi\nHi\n");
}

TEST_F(Chat, GivesTheAnswersThatWouldBeGivenAfresh) {
  // What the session has kept must not show: each answer is the one for the whole conversation.
  const Args greedy = {"run", "-m", base, "-n", "12", "--temp", "0"};
  const Args lines = greedy + Args{"--lines"};
  const std::string first = json::parse(output_of(greedy + Args{"-p", "one", "--json"})).at("text");
  write_file(dir / "first.json", json{message("user", "one"), message("assistant", first)}.dump());
  const Outcome kept = run_sluice_on("one\ntwo\n", lines);
  const Outcome fresh = run_sluice_on("/load " + dir / "first.json" + "\ntwo\n", lines);
  ASSERT_TRUE(succeeded(fresh));
  EXPECT_EQ(kept.out, output_of(greedy + Args{"-p", "one"}) +
                          fresh.out.substr(std::string("2 messages loaded\n").size()));
  EXPECT_LT(prompt_tokens(kept).at(1), prompt_tokens(fresh).at(0));
}

TEST_F(Chat, RegeneratesAnotherAnswerToTheSameMessage) {
  const Args flags = {"run", "-m", base, "-n", "12", "--seed", "1", "--ignore-eos", "--lines"};
  const std::string save = "/save " + dir / "c.json" + "\n";
  ASSERT_TRUE(succeeded(run_sluice_on("one\ntwo\n" + save, flags)));
  const json before = json::parse(read_file(dir / "c.json"));
  ASSERT_TRUE(succeeded(run_sluice_on("one\ntwo\n/regen\n" + save, flags)));
  const json after = json::parse(read_file(dir / "c.json"));
  ASSERT_EQ(before.size(), 4u);
  ASSERT_EQ(after.size(), 4u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(after[i], before[i]);
  EXPECT_NE(after[3].at("content"), before[3].at("content"));
  EXPECT_EQ(after[3].at("role"), "assistant");
}

TEST_F(Chat, HasNothingToRegenerateBeforeTheFirstMessage) {
  const Outcome outcome = chat("/regen\n/system x\n/regen\nhello\n");
  EXPECT_EQ(outcome.out, "Hi\n");
  EXPECT_TRUE(outcome.err.starts_with("sluice: error: there is nothing to answer again"))
      << outcome;
}

TEST_F(Chat, BeginsAnewWithOrWithoutASystemMessage) {
  EXPECT_EQ(
      conversation_after("one\n/system   be brief \ntwo"),
      (json{message("system", "be brief"), message("user", "two"), message("assistant", "Hi")}));
  EXPECT_EQ(conversation_after("one\n/reset\ntwo", {"--system", "a"}),
            (json{message("system", "a"), message("user", "two"), message("assistant", "Hi")}));
  EXPECT_EQ(conversation_after("/system\none", {"--system", "a"}),
            (json{message("user", "one"), message("assistant", "Hi")}));
  EXPECT_EQ(conversation_after("/system two\\\nlines\none").at(0), message("system", "two\nlines"));
}

TEST_F(Chat, TellsWhatItDid) {
  const Outcome outcome = chat("/stats\nhello\n/stats\n");
  EXPECT_EQ(outcome.out.find("context: 0 of 4096 tokens, KV cache "), 0u) << outcome.out;
  EXPECT_TRUE(std::regex_search(
      outcome.out, std::regex("Hi\nconversation: 2 messages; 1 answers of 2 tokens in [0-9.]+ s\n"
                              "23 prompt tokens, [0-9.]+ s to the first token, 2 tokens at "
                              "[0-9.]+ tokens/s \\(end_of_text\\)\ncontext: 25 of 4096 tokens")))
      << outcome.out;
}

TEST_F(Chat, HelpsAndQuits) {
  const Outcome outcome = chat("/help\n/quit\nhello\n");
  EXPECT_TRUE(succeeded(outcome));
  for (const char* command :
       {"/help", "/reset", "/system", "/regen", "/save", "/load", "/stats", "/quit"}) {
    EXPECT_NE(outcome.out.find(command), std::string::npos) << command;
  }
  EXPECT_EQ(outcome.out.find("Hi\n"), std::string::npos);
  EXPECT_EQ(chat("/exit\nhello\n").out, "");
}

TEST_F(Chat, SurvivesWhatItCannotDo) {
  const Outcome outcome = chat("/what\n/save\n/load\nh\xe4\n/system \xff\nhello\n/x\x1b[31m\n");
  EXPECT_EQ(outcome.exit_code, 1) << outcome;  // as something failed
  EXPECT_EQ(outcome.out, "Hi\n");
  for (const char* part :
       {"error: '/what' is no command; /help lists them\n", "error: /save needs the name of a file",
        "error: /load needs", "the prompt is not valid UTF-8 from byte 1 on",
        "the system message is not valid UTF-8", "error: '/x?[31m' is no command"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << "expected to read: " << part << outcome;
  }
  EXPECT_EQ(conversation_after("/what\nh\xe4\nhello").size(), 2u);
}

TEST_F(Chat, RefusesAMessageTooLongForTheContextAndGoesOn) {
  const json got = conversation_after(std::string(300, 'x') + "\nhello", {"-c", "64"});
  EXPECT_EQ(got, (json{message("user", "hello"), message("assistant", "Hi")}));
  const Outcome outcome = chat("hello\nhello\nhello\n/reset\nhello\n", {"-c", "64", "--no-shift"});
  EXPECT_EQ(outcome.out, "Hi\nHi\nHi\n");
  EXPECT_NE(outcome.err.find("the context holds 64; shorten it, begin anew, or"), std::string::npos)
      << outcome.err;
}

TEST_F(Chat, LeavesTheOldestMessagesOutWhereTheContextIsFull) {
  std::string input;
  for (int i = 0; i < 12; ++i) input += cat("question ", i, "\n");
  const Args small = {"-c", "128", "--system", "be brief", "--verbose-prompt"};
  const Outcome outcome = chat(input + "/stats\n/save " + dir / "all.json" + "\n", small);
  ASSERT_TRUE(succeeded(outcome));
  EXPECT_EQ(json::parse(read_file(dir / "all.json")).size(), 25u) << "the chat itself is whole";
  const std::string said = "the context of 128 tokens is full: the oldest ";
  const size_t first = outcome.err.find(said);
  ASSERT_NE(first, std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find(said, first + 1), std::string::npos) << "said once";
  EXPECT_NE(outcome.out.find("messages are left out of the context"), std::string::npos)
      << outcome.out;
  // The last prompt: the system message, then a message of the user.
  const std::string last = outcome.err.substr(outcome.err.rfind("--- prompt"));
  EXPECT_NE(last.find("system\nbe brief<|im_end|>\n<|im_start|>user\nquestion "), std::string::npos)
      << last;
  EXPECT_EQ(last.find("question 0"), std::string::npos) << last;
  EXPECT_NE(last.find("question 11"), std::string::npos) << last;
}

TEST_F(Chat, TakesBackEditsAndRetries) {
  EXPECT_EQ(conversation_after("one\ntwo\n/undo\nthree"),
            (json{message("user", "one"), message("assistant", "Hi"), message("user", "three"),
                  message("assistant", "Hi")}));
  EXPECT_EQ(conversation_after("one\ntwo\n/edit other"),
            (json{message("user", "one"), message("assistant", "Hi"), message("user", "other"),
                  message("assistant", "Hi")}));
  EXPECT_EQ(conversation_after("one\n/undo"), json::array());
  EXPECT_EQ(conversation_after("//help me").at(0), message("user", "/help me"));
  EXPECT_EQ(conversation_after("   \n\t\none").size(), 2u) << "blank lines are not sent";
  const Outcome nothing = chat("/undo\n/edit x\n/edit\n");
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_NE(nothing.err.find("there is nothing to take back"), std::string::npos) << nothing;
  EXPECT_EQ(chat("one\n/retry\n").out, "Hi\nHi\n");
}

TEST_F(Chat, ConfirmsEveryCommand) {
  const Outcome outcome = chat(
      "one\n/undo\n/clear\n/system be brief\n/set temp 0.7\n/set top-k 5\n/think off\n/think "
      "auto\n");
  ASSERT_TRUE(succeeded(outcome));
  for (const char* part : {"(taken back; 0 messages are left)\n", "(a new conversation begins)\n",
                           "(with this system message)\n", "(temp is 0.7)\n", "(top_k is 5)\n",
                           "(the model is asked not to think first)\n", "template decides"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << outcome.err;
  }
  EXPECT_EQ(outcome.out, "Hi\n");
  const Outcome listed = chat("/set temp 0.25\n/set\n");
  EXPECT_NE(listed.out.find("temp                 0.25\n"), std::string::npos) << listed.out;
  for (const auto& [line, part] : std::vector<std::pair<std::string, std::string>>{
           {"/set temp warm", "temp is 'warm'; expected a finite number"},
           {"/set top_p 3", "top_p is '3'; expected a number from 0 to 1"},
           {"/set tmep 1", "did you mean temp?"},
           {"/think maybe", "expected on, off or auto"},
           {"/udno", "did you mean /undo?"}}) {
    EXPECT_NE(chat(line + "\n").err.find(part), std::string::npos) << line << chat(line + "\n");
  }
}

TEST_F(Chat, KnowsTheWordsOfOtherChats) {
  write_file(dir / "notes.txt", "first\n");
  const Outcome outcome = chat(
      "/?\n/set parameter temperature 0.7\n/set nothink\n/set think\n/set system be brief\n/read " +
      dir / "notes.txt" + "\nsum up\n/save " + dir / "c.json" + "\n/bye\nnot sent\n");
  ASSERT_TRUE(succeeded(outcome));
  for (const char* part : {"(temp is 0.7)\n", "asked not to think", "asked to think",
                           "(with this system message)\n"}) {
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << outcome.err;
  }
  EXPECT_EQ(json::parse(read_file(dir / "c.json")),
            (json{message("system", "be brief"), message("user", "sum up\n\nfirst"),
                  message("assistant", "Hi")}));
}

TEST_F(Chat, SetsHowTokensAreChosen) {
  const Args flags = {"run", "-m", base, "-n", "12", "--seed", "1", "--ignore-eos", "--lines"};
  const std::string greedy = run_sluice_on("one\n", flags + Args{"--temp", "0"}).out;
  EXPECT_EQ(run_sluice_on("/set temp 0\none\n", flags).out, greedy);
  EXPECT_NE(run_sluice_on("one\n", flags).out, greedy);
}

TEST_F(Chat, PutsAFileBehindTheNextMessage) {
  write_file(dir / "notes.txt", "first\nsecond\n");
  const json got = conversation_after("/file " + dir / "notes.txt" + "\nsum up:\nmore");
  EXPECT_EQ(got.at(0), message("user", "sum up:\n\nfirst\nsecond"));
  EXPECT_EQ(got.at(2), message("user", "more"));
}

TEST_F(Chat, GivesTheTemplateItsVariables) {
  EditableModel edited(scripted);
  edited.set("tokenizer.chat_template", std::string("{{ tone }}|{{ messages[0].content + '\n' }}"));
  const std::string path = edited.write(dir / "edited.gguf");
  const Args args = {"run", path, "-p", "x", "--verbose-prompt", "--chat-template-kwargs"};
  EXPECT_NE(run_sluice(args + Args{R"({"tone": "calm"})"}).err.find("calm|x"), std::string::npos);
  EXPECT_TRUE(refused(run_sluice(args + Args{"calm"}), {"expected a JSON object"}));
}

TEST_F(Chat, KeepsTheConversationWhereAnAnswerFails) {
  // This template has no patience for a second message.
  EditableModel edited(scripted);
  edited.set("tokenizer.chat_template",
             std::string("{% if messages|length > 1 %}{{ raise_exception('too many') }}{% endif %}"
                         "{{ messages[0].content + '\n' }}"));
  const std::string path = edited.write(dir / "edited.gguf");
  const std::string save = "/save " + dir / "c.json" + "\n";
  const Outcome outcome =
      run_sluice_on("one\ntwo\n/regen\n" + save, {"run", "-m", path, "--lines"});
  EXPECT_EQ(outcome.exit_code, 1) << outcome;  // as something failed
  EXPECT_EQ(outcome.out, "Hi\nHi\n2 messages saved\n");
  EXPECT_NE(outcome.err.find("the template refuses: too many"), std::string::npos) << outcome.err;
  EXPECT_EQ(json::parse(read_file(dir / "c.json")),
            (json{message("user", "one"), message("assistant", "Hi")}));
}

TEST_F(Chat, SavesAndGoesOnWithAConversation) {
  const std::string file = dir / "my chat.json";  // with a space in it
  const Outcome saved = chat("/system be brief\nhällo 你好\n/save " + file + "\n");
  EXPECT_EQ(saved.out, "Hi\n3 messages saved\n");
  EXPECT_EQ(json::parse(read_file(file)),
            (json{message("system", "be brief"), message("user", "hällo 你好"),
                  message("assistant", "Hi")}));
  const Outcome loaded =
      chat("other\n/load " + file + "\nmore\n", {"--verbose-prompt", "--system", "x"});
  EXPECT_NE(loaded.err.find("<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nhällo 你好"
                            "<|im_end|>\n<|im_start|>assistant\nHi<|im_end|>\n<|im_start|>user\n"
                            "more<|im_end|>"),
            std::string::npos)
      << loaded.err;
  EXPECT_EQ(names_in(dir.path()),
            (std::vector<std::string>{"m.gguf", "my chat.json", "scripted.gguf"}));
}

TEST_F(Chat, KnowsTheHomeFolderInNamesOfFiles) {
  ProcessOptions at_home;
  at_home.environment = {{"HOME", dir.path()}};
  const std::string input = "hello\n/save ~/kept.json\n/load ~/kept.json\n";
  EXPECT_EQ(run_sluice_on(input, {"run", "-m", scripted, "--lines"}, at_home).out,
            "Hi\n2 messages saved\n2 messages loaded\n");
  EXPECT_EQ(json::parse(read_file(dir / "kept.json")).size(), 2u);
}

TEST_F(Chat, LosesNothingWhereAFileCannotBeWritten) {
  write_file(dir / "kept.json", "precious");
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);  // it stands for /dev/null and the like
  for (const std::string& place : {dir / "none/x.json", dir.path(), dir / "pipe",
                                   std::string("/proc/x.json"), std::string(5000, 'x')}) {
    const Outcome outcome = chat("hello\n/save " + place + "\n/save " + dir / "good.json" + "\n");
    EXPECT_EQ(outcome.exit_code, 1) << outcome;  // as something failed
    EXPECT_EQ(outcome.out, "Hi\n2 messages saved\n") << place;
    EXPECT_NE(outcome.err.find("sluice: error: " + place.substr(0, 100)), std::string::npos)
        << outcome.err;
  }
  EXPECT_TRUE(std::filesystem::is_fifo(dir / "pipe")) << "a file took the place of something else";
  EXPECT_EQ(read_file(dir / "kept.json"), "precious");
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"good.json", "kept.json", "m.gguf",
                                                            "pipe", "scripted.gguf"}));
}

TEST_F(Chat, LosesNothingWhereAFileCannotBeLoaded) {
  const std::string deep(200000, '[');
  for (const std::string& bytes :
       {std::string(), std::string("[{\"role\":\"user\""), std::string("{}"), std::string("[1]"),
        std::string(R"([{"role":"user"}])"), std::string(R"([{"role":1,"content":"x"}])"),
        std::string(R"([{"role":"user","content":null}])"),
        std::string("[{\"role\":\"user\",\"content\":\"\xff\"}]"), deep}) {
    write_file(dir / "bad.json", bytes);
    const json got = conversation_after("hello\n/load " + dir / "bad.json");
    EXPECT_EQ(got, (json{message("user", "hello"), message("assistant", "Hi")}))
        << bytes.substr(0, 50);
    EXPECT_NE(chat("/load " + dir / "bad.json").err.find("bad.json is no saved conversation"),
              std::string::npos);
  }
  EXPECT_NE(chat("/load " + dir / "none").err.find("none cannot be opened (No such file"),
            std::string::npos);
}

TEST_F(Chat, LoadsOfAMessageWhatItKnows) {
  // Other programs keep more in such files, however deep.
  write_file(dir / "more.json", R"([{"role":"user","content":"a","id":7},{"content":"b","role":)"
                                R"("assistant","reasoning_content":"c","x":)" +
                                    std::string(100000, '[') + std::string(100000, ']') + "}]");
  EXPECT_EQ(conversation_after("/load " + dir / "more.json"),
            (json{message("user", "a"),
                  {{"role", "assistant"}, {"content", "b"}, {"reasoning_content", "c"}}}));
}

}  // namespace
}  // namespace sluice::test
