// Other programs' flags in the words of this one: what becomes of each kind of row, that every row
// of the table is sound, that no flag of llama.cpp and Ollama is unknown, and the value kinds of
// flags.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/translate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/error.h"
#include "cli/command.h"
#include "cli/flags/command_line.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/foreign_flags.h"
#include "cli/flags/words.h"

namespace sluice::test {
namespace {

using Strings = std::vector<std::string>;

struct Program {
  Program() { cli::add_commands(app); }
  cli::CommandLine read(const Strings& typed) { return cli::read_command_line(app, typed); }
  std::string refusal(const Strings& typed) {
    try {
      read(typed);
    } catch (const cli::FlagRefused& refused) {
      return refused.what();
    }
    return "";
  }
  CLI::App app{"", "sluice"};
};

Strings names_of(std::string_view names) {
  Strings out;
  while (!names.empty()) {
    const size_t end = std::min(names.find(','), names.size());
    out.emplace_back(names.substr(0, end));
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return out;
}

// "-o json" -> {"-o", "json"}
Strings words_of(const std::string& name) {
  const size_t space = name.find(' ');
  if (space == std::string::npos) return {name};
  return {name.substr(0, space), name.substr(space + 1)};
}

TEST(Translate, TakesAShortFlagOfSeveralLettersAsOne) {
  Program p;
  EXPECT_EQ(p.read({"run", "-ub", "64", "-p", "hi"}).args,
            (Strings{"run", "--prefill-chunk", "64", "-p", "hi"}));
  EXPECT_EQ(p.read({"run", "-jf", "x.json"}).args, (Strings{"run", "--json-schema", "@x.json"}));
  EXPECT_EQ(p.read({"run", "-cmoe"}).args, (Strings{"run", "--moe", "cpu"}));
  EXPECT_EQ(p.read({"run", "--gpu-layers=7"}).args, (Strings{"run", "--n-gpu-layers", "7"}));
  EXPECT_EQ(p.read({"run", "-c4096", "-t8"}).args, (Strings{"run", "-c4096", "-t8"}));
  EXPECT_EQ(p.read({"run", "-hf", "user/repo"}).args, (Strings{"run", "--hf-repo", "user/repo"}));
  EXPECT_NE(p.refusal({"run", "-md", "x"}).find("-md is not supported: "), std::string::npos);
  EXPECT_NE(p.refusal({"run", "-tc", "5"}).find("-tc is no flag of sluice run"), std::string::npos);
}

TEST(Translate, LeavesValuesAlone) {
  Program p;
  const Strings typed = {"run", "-p", "-hf", "-n", "-1", "--stop", "--mlock", "--system=-fa", "-"};
  EXPECT_EQ(p.read(typed).args, typed);
  EXPECT_EQ(p.read({"run", "--", "-hf"}).args, (Strings{"run", "--", "-hf"}));
  EXPECT_TRUE(p.read(typed).notes.empty());
}

TEST(Translate, PassesOverWhatHasNoMeaningWithItsValue) {
  Program p;
  const cli::CommandLine line =
      p.read({"run", "-fa", "on", "--mlock", "-b", "512", "-fa", "m.gguf"});
  EXPECT_EQ(line.args, (Strings{"run", "m.gguf"}));
  EXPECT_EQ(line.notes.size(), 4u);
}

TEST(Translate, PutsACommandsOwnFlagFirst) {
  Program p;
  EXPECT_EQ(p.read({"bench", "-r", "3"}).args, (Strings{"bench", "-r", "3"}));
  EXPECT_EQ(p.read({"run", "-r", "User:"}).args, (Strings{"run", "--stop", "User:"}));
  EXPECT_EQ(p.read({"run", "--device", "none"}).args, (Strings{"run", "--device", "cpu"}));
  EXPECT_NE(p.refusal({"tokenize", "-ngl", "9"}).find("is no flag of sluice tokenize"),
            std::string::npos);
}

TEST(Translate, SuggestsWhatIsNear) {
  Program p;
  EXPECT_NE(p.refusal({"run", "--tmep", "1"}).find("did you mean --temp?"), std::string::npos);
  EXPECT_NE(p.refusal({"run", "--ctx-sise", "1"}).find("--ctx-size?"), std::string::npos);
  EXPECT_NE(p.refusal({"isnpect", "x"}).find("did you mean inspect?"), std::string::npos);
  EXPECT_EQ(p.refusal({"run", "--zzzzzzzzzz"}).find("did you mean"), std::string::npos);
}

TEST(Translate, KnowsCommandsByOtherNames) {
  Program p;
  EXPECT_EQ(p.read({"ls"}).args, Strings{"list"});
  EXPECT_EQ(p.read({"show", "x"}).args, (Strings{"inspect", "x"}));
  EXPECT_EQ(p.read({"-m", "x", "-p", "y"}).args, (Strings{"run", "-m", "x", "-p", "y"}));
  EXPECT_NE(p.refusal({"create", "x"}).find("sluice quantize"), std::string::npos);
}

// Every name of the table, with a value where it takes one, as its row says.
TEST(Translate, HoldsForEveryRowOfTheTable) {
  Program p;
  std::set<std::string> seen;
  for (const cli::ForeignFlag& row : cli::foreign_flags()) {
    for (const std::string& name : names_of(row.names)) {
      EXPECT_TRUE(seen.insert(cat(row.command, " ", name)).second) << name << " stands in two rows";
      EXPECT_NE(row.meaning == cli::Meaning::same, row.ours.empty()) << name;
      EXPECT_NE(row.meaning == cli::Meaning::same, !row.why.empty()) << name;
      EXPECT_EQ(std::string(row.why).find('|'), std::string::npos) << "breaks the page's table";
      Strings flag = words_of(name);
      if (row.takes == cli::Takes::value) flag.push_back("7");
      bool is_read = false;  // by some command: of two that have the flag, one reads it so
      Strings commands = {"run", "bench", "plan", "tokenize", "inspect"};
      if (!row.command.empty()) commands = {std::string(row.command)};
      for (const std::string& command : commands) {
        Strings typed = {command};
        typed.insert(typed.end(), flag.begin(), flag.end());
        const std::string refusal = p.refusal(typed);
        if (row.meaning == cli::Meaning::absent) {
          is_read |= refusal.find(cat(name, " is not supported: ", row.why)) != std::string::npos;
          continue;
        }
        if (!refusal.empty()) continue;
        const cli::CommandLine line = p.read(typed);
        if (row.meaning == cli::Meaning::none) {
          is_read |= line.args.size() == 1 && line.notes.size() == 1 &&
                     line.notes[0].starts_with(cat(name, " has no meaning here: "));
        } else {
          const std::string first(row.ours.substr(0, row.ours.find(' ')));
          is_read |= line.args.size() > 1 && line.args[1] == first && line.notes.empty();
        }
      }
      EXPECT_TRUE(is_read) << name;
    }
  }
  EXPECT_GT(seen.size(), 400u);
}

// What is wrong with how a command takes another program's flag; empty: it works, or one line says
// what to do instead. A value that is not taken with its flag would be read as a model or a prompt.
std::string problem_of(Program& p, const std::string& command, const std::string& name,
                       const std::string& value) {
  Strings typed = {command, name};
  if (!value.empty()) typed.push_back(value);
  const std::string refusal = p.refusal(typed);
  if (!refusal.empty()) {
    const bool is_named =
        refusal.starts_with(name) && (refusal.find(" is not supported: ") != std::string::npos ||
                                      refusal.find(" has it") != std::string::npos);
    return is_named ? "" : refusal;
  }
  const Strings args = p.read(typed).args;
  if (args.size() == 1) return "";  // a note
  const std::string flag = args[1].substr(0, args[1].find('='));
  const CLI::Option* option = p.app.get_subcommand(command)->get_option_no_throw(flag);
  if (!option) return flag == "-" || flag == "--help" ? "" : cat("is read as ", flag);
  const bool takes = option->get_items_expected_max() > 0;
  return takes == (args.size() > 2) ? "" : cat(flag, takes ? " wants a" : " takes no", " value");
}

// tests/data/flags/llama_cpp.txt was made of its sources: "--top-k value run,serve".
TEST(Translate, KnowsEveryFlagOfLlamaCpp) {
  Program p;
  std::ifstream file(SLUICE_TEST_DATA "/flags/llama_cpp.txt");
  int n_flags = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string name, takes, commands;
    words >> name >> takes >> commands;
    for (const std::string& command : names_of(commands)) {
      EXPECT_EQ(problem_of(p, command, name, takes == "value" ? "1" : ""), "")
          << "sluice " << command << " " << name;
      ++n_flags;
    }
  }
  EXPECT_GT(n_flags, 1000);
}

TEST(Translate, KnowsEveryFlagOfOllama) {
  Program p;
  struct Flag {
    const char* command;
    const char* name;
    const char* value;
  };
  constexpr Flag kFlags[] = {
      {"run", "--format", "json"},     {"run", "--hidethinking", ""},
      {"run", "--insecure", ""},       {"run", "--keepalive", "5m"},
      {"run", "--nowordwrap", ""},     {"run", "--think", ""},
      {"run", "--think", "true"},      {"run", "--verbose", ""},
      {"run", "--truncate", ""},       {"run", "--dimensions", "256"},
      {"run", "--experimental", ""},   {"run", "--experimental-yolo", ""},
      {"run", "--help", ""},           {"run", "--experimental-websearch", ""},
      {"inspect", "--license", ""},    {"inspect", "--modelfile", ""},
      {"inspect", "--parameters", ""}, {"inspect", "--system", ""},
      {"inspect", "--template", ""},   {"inspect", "--verbose", ""},
      {"inspect", "-v", ""},           {"pull", "--insecure", ""},
  };
  for (const Flag& flag : kFlags) {
    EXPECT_EQ(problem_of(p, flag.command, flag.name, flag.value), "")
        << "sluice " << flag.command << " " << flag.name << " " << flag.value;
  }
}

TEST(Translate, NamesTheCommandThatHasAFlag) {
  Program p;
  EXPECT_EQ(p.refusal({"inspect", "--ctx-size", "1"}),
            "--ctx-size is no flag of sluice inspect: sluice run has it");
  EXPECT_EQ(p.refusal({"serve", "-sys", "x"}),
            "-sys (here --system) is no flag of sluice serve: sluice run has it, and here each "
            "request says it (docs/serve.md)");
  EXPECT_EQ(p.refusal({"model.gguf"}),
            "'model.gguf' is no command; sluice run model.gguf chats with it");
}

TEST(Translate, KnowsWhatFlagsMeanToAServerAlone) {
  Program p;
  EXPECT_EQ(p.read({"serve", "--metrics", "-cb", "-np", "4", "--cors-origins", "*"}).args,
            (Strings{"serve", "--parallel", "4", "--cors", "*"}));
  EXPECT_EQ(p.read({"serve", "--metrics"}).notes,
            Strings{"--metrics has no meaning here: the server has it in any case"});
  EXPECT_NE(p.refusal({"run", "--metrics"}).find("this command serves nothing"), std::string::npos);
  EXPECT_NE(p.refusal({"serve", "--ssl-key-file", "x"}).find("a gateway"), std::string::npos);
}

// Every flag of every command that takes a number, with something that is none.
TEST(Messages, OfNumbersNameTheFlagTheValueAndNoTypeOfOurs) {
  int n_flags = 0;
  const auto message_of = [](const std::string& command, const std::string& flag,
                             const std::string& value) -> std::string {
    Program p;
    Strings reversed = {value, flag, command};
    try {
      p.app.parse(reversed);
    } catch (const CLI::ParseError& error) {
      return cli::describe_problem(p.app, error);
    }
    return "taken";
  };
  const Program all;
  for (const CLI::App* command : all.app.get_subcommands([](const CLI::App*) { return true; })) {
    for (const CLI::Option* option : command->get_options()) {
      const std::string type = option->get_type_name();
      if (!option->nonpositional() || (type != "INT" && type != "UINT" && type != "FLOAT"))
        continue;
      ++n_flags;
      const std::string flag = option->get_name();
      Strings bad = {"4q", "1e"};
      if (type != "FLOAT") bad.insert(bad.end(), {"1.5", "99999999999999999999999"});
      for (const std::string& value : bad) {
        const std::string message = message_of(command->get_name(), flag, value);
        EXPECT_TRUE(message.starts_with(flag)) << command->get_name() << ": " << message;
        EXPECT_NE(message.find(value), std::string::npos) << flag << ": " << message;
        for (const char* ugly : {"INT", "FLOAT", "Could not", "not in range", "[", "\n"}) {
          EXPECT_EQ(message.find(ugly), std::string::npos)
              << command->get_name() << ": " << message;
        }
      }
    }
  }
  EXPECT_GT(n_flags, 100);
}

TEST(WholeNumber, TakesThousandsAndSaysWhatIsWrong) {
  const auto read = [](std::string text, int64_t least, int64_t most) {
    const std::string problem = cli::read_whole_number(text, least, most);
    return problem.empty() ? text : problem;
  };
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  EXPECT_EQ(read("4k", 0, kMost), "4096");
  EXPECT_EQ(read("2M", 0, kMost), "2097152");
  EXPECT_EQ(read("-1", -1, kMost), "-1");
  EXPECT_EQ(read("4q", 0, kMost),
            "'4q' is no whole number; expected 0 or more, such as 4096 or 4k");
  EXPECT_EQ(read("1.5", -1, kMost), "'1.5' is no whole number; expected -1 or more");
  EXPECT_EQ(read("", 0, 8), "'' is no whole number; expected 0 to 8");
  EXPECT_EQ(read("-5", 0, kMost), "is -5; expected 0 or more");
  EXPECT_EQ(read("9", 0, 8), "is 9; expected 0 to 8");
  EXPECT_EQ(read("99999999999", 0, kMost),
            "is 99999999999; expected 0 or more, at most 2147483647");
  EXPECT_EQ(read("2097152k", 0, kMost), "is 2097152k; expected 0 or more, at most 2147483647");
  EXPECT_NE(read("99999999999999999999999", 0, kMost).find("expected 0 or more"),
            std::string::npos);
}

TEST(Words, AreAModelAPromptOrBoth) {
  const auto sorted = [](const Strings& words, bool has_model = false, bool has_text = false) {
    const cli::ModelAndText got = cli::sort_words(words, has_model, has_text);
    return cat(got.model.value_or("-"), " | ", got.text.value_or("-"));
  };
  EXPECT_EQ(sorted({"gemma4"}), "gemma4 | -");
  EXPECT_EQ(sorted({"qwen3:30b-a3b"}), "qwen3:30b-a3b | -");
  EXPECT_EQ(sorted({"a b.gguf"}), "a b.gguf | -");
  EXPECT_EQ(sorted({"What is 1 + 1?"}), "- | What is 1 + 1?");
  EXPECT_EQ(sorted({"demo", "Why?"}), "demo | Why?");
  EXPECT_EQ(sorted({"demo", "why", "is", "it"}), "demo | why is it");
  EXPECT_EQ(sorted({"hello"}, true), "- | hello");
  EXPECT_EQ(sorted({"two words"}, false, true), "two words | -");
  EXPECT_EQ(sorted({"demo"}, false, true), "demo | -");
  EXPECT_EQ(cli::sort_words({"-"}, false, false).text, "-");
  EXPECT_THROW(sorted({"x"}, true, true), Error);
  EXPECT_THROW(sorted({"demo", "x"}, false, true), Error);
}

}  // namespace
}  // namespace sluice::test
