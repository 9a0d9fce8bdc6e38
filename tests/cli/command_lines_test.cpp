// Command lines as llama.cpp's and Ollama's documentation has them, with our program's name and a
// small model in their place: each works, or ends in one line that says what to do instead. None
// prints the help by accident.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>

#include "cli/scripted_model.h"
#include "support/temp_dir.h"

namespace sluice::test {
namespace {

enum class Ends { well, in_refusal };

struct Line {
  const char* typed;  // after "sluice"; words in '...' are one
  Ends ends;
  const char* says = "";  // part of its output or of its refusal
  const char* input = nullptr;
};

constexpr auto kWell = Ends::well;
constexpr auto kRefused = Ends::in_refusal;

// M is the model's file.
constexpr Line kLines[] = {
    // llama-cli and llama-completion.
    {"run -m M -p 'I believe the meaning of life is' -n 128", kWell, "Hi"},
    {"-m M -p 'I believe the meaning of life is' -n 128", kWell, "Hi"},
    {"run -m M -cnv -p 'You are a helpful assistant'", kWell, "-cnv has no meaning"},
    {"run -m M -no-cnv -p 'Once upon a time' -n 4", kWell},
    {"run -m M --no-conversation -p hello -n 4", kWell},
    {"run -m M -sys 'You are a pirate' -p hello", kWell, "Hi"},
    {"run -m M --system-prompt 'You are a pirate' -p hello", kWell, "Hi"},
    {"run -m M -st -p hello", kWell, "Hi"},
    {"run -m M -ngl 99 -p hello", kWell, "changes nothing"},
    {"run -m M --gpu-layers 99 -p hello", kWell, "Hi"},
    {"run -m M --n-gpu-layers all -p hello", kWell, "Hi"},
    {"run -m M -ngl 99 -cmoe -p hello", kWell, "Hi"},
    {"run -m M -ngl 99 -ncmoe 20 -p hello", kWell, "Hi"},
    {"run -m M -ngl 99 -ot exps=CPU -p hello", kWell, "Hi"},
    {"run -m M -ngl 99 -ot blk.1.*=CUDA0 -p hello", kRefused, "--n-cpu-moe"},
    {"run -m M -fa on -ctk q8_0 -ctv q8_0 -p hello", kWell, "-fa has no meaning"},
    {"run -m M -fa -p hello", kWell, "Hi"},
    {"run -m M --flash-attn auto -p hello", kWell, "Hi"},
    {"run -m M -c 4096 -b 2048 -ub 512 -p hello", kWell, "-b has no meaning"},
    {"run -m M -c 4k -p hello", kWell, "Hi"},
    {"run -m M --temp 0.7 --top-k 20 --top-p 0.8 --min-p 0 -p hello", kWell, "Hi"},
    {"run -m M --temperature 0.6 --typical 1.0 -p hello", kWell, "Hi"},
    {"run -m M --jinja --color -ngl 99 -fa -sm row -p hello", kRefused, "one GPU is used"},
    {"run -m M --jinja --color -p hello", kWell, "Hi"},
    {"run -m M --mlock --no-mmap -t 2 -tb 2 -p hello", kWell, "--mlock has no meaning"},
    {"run -m M --grammar-file G -p hello", kWell, "yes"},
    {"run -m M -j '{\"type\": \"boolean\"}' -p hello", kWell},
    {"run -m M -jf S -p hello", kWell},
    {"run -m M --json-schema-file S -p hello", kWell},
    {"run -m M -r User: -p hello", kWell, "Hi"},
    {"run -m M --repeat-penalty 1.1 --repeat-last-n 64 -s 42 -p hello", kWell, "Hi"},
    {"run -m M --seed 42 --n-predict 8 --ignore-eos -p hello", kWell},
    {"run -m M --dry-multiplier 0.5 --dry-sequence-breaker x -p hello", kWell, "Hi"},
    {"run -m M --samplers 'top_k;temperature' -l 15+1 -p hello", kWell, "Hi"},
    {"run -m M -f P --no-display-prompt --no-warmup", kWell, "Hi"},
    {"run -m M --verbose-prompt --simple-io -p hello", kWell, "Hi"},
    {"run -hf ggml-org/gemma-3-1b-it-GGUF", kRefused, "HF_HUB_OFFLINE", "hello"},
    {"run -hf unsloth/Qwen3-30B-A3B-GGUF:Q4_K_M -p hello", kRefused, "HF_HUB_OFFLINE"},
    {"run -mu https://example.com/x.gguf", kRefused, "-hf user/repo"},
    {"run -m M -md draft.gguf --draft-max 16 -p hello", kRefused, "-md is not supported"},
    {"run -m M --mmproj x.gguf --image a.png -p hello", kRefused, "text alone"},
    {"run -m M --lora x.gguf -p hello", kRefused, "merge it"},
    {"run -m M --rope-scaling yarn --rope-scale 4 -p hello", kRefused, "model file names"},
    {"run -m M --chat-template chatml -p hello", kRefused, "--raw"},
    {"run -m M -e -p 'a\\nb'", kRefused, "in bash write"},
    {"run -m M --reasoning-budget 0 -p hello", kWell, "Hi"},
    {"run -m M --list-devices", kRefused, "sluice plan"},
    {"run -m M -dev none -p hello", kWell, "Hi"},
    {"run -m M --numa distribute --prio 2 -p hello", kWell, "Hi"},
    {"run -m M --override-kv x=int:1 -p hello", kRefused, "change the file"},
    {"run -m M --log-disable -lv 3 -v -p hello", kWell, "Hi"},
    {"run -m M -np 4 -p hello", kRefused, "--parallel"},
    // The other tools.
    {"bench -m M -p 8 -n 4 -r 1 -d 0 -o md -ngl 99 -fa 1 --machine none", kWell, "|"},
    {"bench M -p 8 -n 0 -r 1 -d 0 -o json --machine none", kWell, "{"},
    {"perplexity -m M -f T -c 64 --chunks 4", kRefused, "the whole text is scored"},
    {"perplexity -m M -f T -c 64 -ngl 99", kWell, "perplexity"},
    {"quantize M O Q4_K_M", kWell, "Q4_K_M"},
    {"tokenize -m M -p hello --ids", kWell, ","},
    {"tokenize -m M --stdin --no-parse-special", kWell, "\"h\"", "hi"},
    // Ollama.
    {"run M", kWell, "Hi", "hello\nthere\n"},
    {"run M 'Why is the sky blue?'", kWell, "Hi"},
    {"run M 'Why is the sky blue?' --verbose", kWell, "Hi"},
    {"run M why is the sky blue", kWell, "Hi"},
    {"run M 'Summarize this file:'", kWell, "Hi", "a file\n"},
    {"run M hello --format json", kWell},
    {"run M --think=false hello", kWell, "Hi"},
    {"run M --think hello", kWell},
    {"run M --hidethinking --keepalive 5m --nowordwrap hello", kWell, "Hi"},
    {"run gemma4", kRefused, "there is no model 'gemma4'"},
    {"run gemma4 'Why is the sky blue?'", kRefused, "there is no model 'gemma4'"},
    {"run hf.co/unsloth/Qwen3-30B-A3B-GGUF:Q4_K_M", kRefused, "HF_HUB_OFFLINE", "hello"},
    {"ls", kWell, "demo-attn"},
    {"list", kWell, "demo-attn"},
    {"show M", kWell, "architecture"},
    {"pull gemma4", kRefused, "expected user/repo"},
    {"ps", kRefused, "no model stays loaded"},
    {"stop gemma4", kRefused, "no model stays loaded"},
    {"rm gemma4", kRefused, "there is no model"},
    {"create mymodel -f ./Modelfile", kRefused, "sluice quantize"},
    {"-v", kWell, "sluice "},
    {"help", kWell, "Examples"},
    {"help run", kWell, "sluice run model.gguf"},
    {"version", kWell, "sluice "},
};

class CommandLines : public testing::Test {
 protected:
  // Splits at spaces outside '...', and puts the test's files in.
  Args words(const std::string& typed) const {
    Args args;
    std::string word;
    bool quoted = false, has_word = false;
    for (const char c : typed + " ") {
      if (c == '\'') {
        quoted = !quoted;
        has_word = true;
      } else if (c == ' ' && !quoted) {
        if (has_word) args.push_back(word);
        word.clear();
        has_word = false;
      } else {
        word += c;
        has_word = true;
      }
    }
    for (std::string& arg : args) {
      if (arg == "M") arg = model;
      if (arg == "G") arg = dir / "g.gbnf";
      if (arg == "S") arg = dir / "s.json";
      if (arg == "P" || arg == "T") arg = dir / "text";
      if (arg == "O") arg = dir / "out.gguf";
    }
    return args;
  }

  void SetUp() override {
    write_file(dir / "g.gbnf", "root ::= \"yes\"");
    write_file(dir / "s.json", R"({"type": "boolean"})");
    std::string text;
    for (int i = 0; i < 40; ++i) text += "some words. ";
    write_file(dir / "text", text);
  }

  TempDir dir;
  const std::string model =
      ScriptedModel(make_model(dir / "m.gguf"), {"H", "i"}).write(dir / "scripted.gguf");
};

TEST_F(CommandLines, AsPeopleTypeThemWorkOrSayWhatToDo) {
  EXPECT_GE(std::size(kLines), 60u);
  for (const Line& line : kLines) {
    const Args args = words(line.typed);
    ProcessOptions options;
    options.environment = {{"HF_HUB_OFFLINE", "1"}};  // no test reaches the network
    const Outcome outcome =
        line.input ? run_sluice_on(line.input, args, options) : run_sluice(args, options);
    SCOPED_TRACE(line.typed);
    if (line.ends == Ends::well) {
      EXPECT_TRUE(succeeded(outcome));
      EXPECT_NE((outcome.out + outcome.err).find(line.says), std::string::npos) << outcome;
      const bool asks = args[0] == "help";
      EXPECT_EQ(outcome.out.find("Usage:") != std::string::npos, asks) << "the help, by accident";
    } else {
      EXPECT_NE(outcome.exit_code, 0) << outcome;
      EXPECT_EQ(outcome.out, "");
      const size_t n_lines = static_cast<size_t>(std::ranges::count(outcome.err, '\n'));
      size_t n_notes = 0;
      std::istringstream lines(outcome.err);
      for (std::string l; std::getline(lines, l);) n_notes += l.starts_with("sluice: note: ");
      EXPECT_EQ(n_lines - n_notes, 1u) << outcome;
      EXPECT_NE(outcome.err.find(line.says), std::string::npos) << outcome;
    }
  }
}

TEST_F(CommandLines, ThatMeanTheSameGiveTheSameAnswer) {
  const Args seeded = {"--seed", "7", "-n", "12", "--ignore-eos"};
  const std::string expected = output_of(Args{"run", "-m", dir / "m.gguf", "-p", "hello"} + seeded);
  for (const Args& same :
       {Args{"run", dir / "m.gguf", "-p", "hello"}, Args{"run", dir / "m.gguf", "hello"},
        Args{"-m", dir / "m.gguf", "-p", "hello"}, Args{"run", "hello", "-m", dir / "m.gguf"}}) {
    EXPECT_EQ(output_of(same + seeded), expected) << same[0] << " " << same[1];
  }
}

TEST_F(CommandLines, PutPipedTextBehindThePrompt) {
  const auto prompt = [](const Outcome& outcome) {
    const size_t begin = outcome.err.find("<|im_start|>user\n") + 17;
    return outcome.err.substr(begin, outcome.err.find("<|im_end|>", begin) - begin);
  };
  const Args shown = {"run", model, "--verbose-prompt"};
  EXPECT_EQ(prompt(run_sluice_on("a\nb\n", shown + Args{"-p", "Sum up:"})), "Sum up:\n\na\nb");
  EXPECT_EQ(prompt(run_sluice_on("a\nb\n", shown + Args{"Sum up:"})), "Sum up:\n\na\nb");
  EXPECT_EQ(prompt(run_sluice_on("a\nb\n", shown)), "a\nb");
  EXPECT_EQ(prompt(run_sluice_on("", shown + Args{"-p", "alone"})), "alone");
  EXPECT_TRUE(refused(run_sluice_on("", {"run", model}), {"the prompt is empty"}));
}

TEST_F(CommandLines, EndInFailureWhereATurnFailed) {
  const Outcome good = run_sluice_on("one\ntwo\n", {"run", model, "--lines"});
  EXPECT_TRUE(succeeded(good));
  EXPECT_EQ(good.out, "Hi\nHi\n");
  const Outcome bad = run_sluice_on("one\nh\xe4\ntwo\n", {"run", model, "--lines"});
  EXPECT_EQ(bad.exit_code, 1) << bad;
  EXPECT_EQ(bad.out, "Hi\nHi\n");
}

TEST_F(CommandLines, MayAskForMoreContextThanTrainedWithAWarning) {
  const Outcome outcome = run_sluice({"run", model, "-p", "x", "-c", "8k"});
  ASSERT_TRUE(succeeded(outcome));
  EXPECT_NE(outcome.err.find("a context of 8192 tokens is more than the 4096 that the model was "
                             "trained for"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("rope scaling: none"), std::string::npos) << outcome.err;
  EXPECT_EQ(run_sluice({"run", model, "-p", "x", "-c", "4096"}).err.find("warning"),
            std::string::npos);
}

TEST_F(CommandLines, OfShellsAreCompleted) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = output_of({"completions", shell});
    for (const char* part : {"perplexity", "n-cpu-moe", "sluice list --names"}) {
      EXPECT_NE(script.find(part), std::string::npos) << shell << " " << part;
    }
  }
  write_file(dir / "c.bash", output_of({"completions", "bash"}) +
                                 "COMP_WORDS=(sluice run --n-cpu); COMP_CWORD=2; _sluice\n"
                                 "echo \"${COMPREPLY[@]}\"\n"
                                 "COMP_WORDS=(sluice insp); COMP_CWORD=1; _sluice\n"
                                 "echo \"${COMPREPLY[@]}\"\n");
  EXPECT_EQ(run_process({"/bin/bash", dir / "c.bash"}).out, "--n-cpu-moe\ninspect\n");
  const std::string man = output_of({"help", "man"});
  EXPECT_TRUE(man.starts_with(".TH SLUICE 1\n")) << man.substr(0, 100);
  EXPECT_NE(man.find("\\-\\-n\\-cpu\\-moe"), std::string::npos);
}

}  // namespace
}  // namespace sluice::test
