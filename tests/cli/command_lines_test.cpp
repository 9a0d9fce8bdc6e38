// Command lines as llama.cpp's and Ollama's documentation has them, with our program's name and a
// small model in their place: each works, or ends in one line that says what to do instead. None
// prints the help by accident.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
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
    {"run -m M -sm tensor -ctk f16 -ctv f16 -p hello", kRefused, "one GPU is used"},
    {"run -m M -ts 3,1 -p hello", kRefused, "one GPU is used"},
    {"run -m M -fit off -p hello", kWell, "what fits is planned"},
    {"run -m M --version", kRefused, "sluice version"},
    {"-m M", kWell, "Hi", "hello\n"},
    {"M", kRefused, "is no command; sluice run"},
    // llama-server: what would serve for ever is only refused here.
    {"serve -m M --jinja -fa on --ssl-key-file k --ssl-cert-file c", kRefused, "a gateway"},
    {"serve -m M -c 8192 -np 4 --temp 0.6", kRefused, "each request says it"},
    {"serve --models-preset ./my-models.ini", kRefused, "--swap"},
    {"serve -m M --spec-type ngram-mod --spec-draft-n-max 64", kRefused, "speculative"},
    // The other tools.
    {"bench -m M -p 8 -n 4 -r 1 -d 0 -o md -ngl 99 -fa 1 --machine none", kWell, "|"},
    {"bench M -p 8 -n 0 -r 1 -d 0 -o json --machine none", kWell, "{"},
    {"perplexity -m M -f T -c 64 --chunks 4", kRefused, "the whole text is scored"},
    {"perplexity -m M -f T -c 64 -ngl 99", kWell, "perplexity"},
    {"bench -m M -p 0 -n 4,8 -n 16 -t 1,2 -r 1 -d 0 --machine none", kWell, "decode"},
    {"bench -m M -p 8 -n 0 -mmp 0 -nopo 1 -o csv", kRefused, "expected json or md"},
    {"quantize M O Q4_K_M", kWell, "Q4_K_M"},
    {"quantize M O q4_k_m 2", kWell, "Q4_K_M"},
    {"quantize M q4_k_m", kRefused, "model.gguf model-Q4_K_M.gguf Q4_K_M"},
    {"quantize --allow-requantize --leave-output-tensor --pure M q4_k_m 8", kRefused, "--types"},
    {"quantize --imatrix i.gguf --include-weights attn_v M O Q4_K_M", kRefused, "importance"},
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
    {"show M --template", kWell, "chat_template"},
    {"show --modelfile M", kRefused, "no Modelfiles"},
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
  for (const Args& args :
       {Args{"plan", model, "-c", "8k"}, Args{"logits", model, "-c", "8k", "--tokens", "1"},
        Args{"bench", model, "-c", "8k", "-p", "4", "-n", "0", "-d", "0", "-r", "1", "--machine",
             "none"}}) {
    const Outcome other = run_sluice(args);
    EXPECT_TRUE(succeeded(other));
    EXPECT_NE(other.err.find("more than the 4096 that"), std::string::npos) << args[0] << other;
  }
  EditableModel scaled(model);
  scaled.set("qwen3moe.rope.scaling.type", std::string("yarn"));
  scaled.set("qwen3moe.rope.scaling.factor", 4.0f);
  scaled.set("qwen3moe.rope.scaling.original_context_length", uint32_t{1024});
  const std::string yarn = scaled.write(dir / "yarn.gguf");
  EXPECT_NE(run_sluice({"run", yarn, "-p", "x", "-c", "8k"})
                .err.find("rope scaling: yarn by 4, from 1024 tokens"),
            std::string::npos);
}

TEST_F(CommandLines, AreShownFirstInTheHelp) {
  const std::string all = output_of({"help"});
  EXPECT_EQ(output_of({"--help"}), all);
  EXPECT_NE(all.find("sluice run -hf Qwen"), std::string::npos) << all;
  std::istringstream listed(all.substr(all.find("Subcommands:")));
  int n_commands = 0;
  std::string line;
  for (std::getline(listed, line); std::getline(listed, line) && !line.empty(); ++n_commands) {
    std::string name;
    std::istringstream(line) >> name;
    const std::string help = output_of({name, "--help"});
    EXPECT_EQ(output_of({"help", name}), help);
    const size_t examples = help.find("Examples:\n  sluice " + name);
    EXPECT_EQ(examples == std::string::npos, name == "version") << help;
    EXPECT_TRUE(examples == std::string::npos || examples < help.find("Usage:")) << name;
    for (const char* ugly : {"INT", "FLOAT", " in [", ":{"}) {
      EXPECT_EQ(help.find(ugly), std::string::npos) << name << " shows " << ugly;
    }
  }
  EXPECT_GE(n_commands, 17);
  const std::string run = output_of({"run", "--help"});
  for (const char* group :
       {"\nModel:\n", "\nPlacement:\n", "\nPrompt:\n", "\nOutput:\n", "\nSampling:\n"}) {
    EXPECT_NE(run.find(group), std::string::npos) << group;
  }
  const size_t at = run.find("--top-p NUMBER");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(run.find("draw from the most probable tokens", at), std::string::npos)
      << "what it does";
}

// By its place or by -m, whatever the command does with it.
TEST_F(CommandLines, TakeTheModelInTheSameWay) {
  const std::vector<std::pair<std::string, Args>> kCommands = {
      {"run", {"-p", "hello", "--temp", "0"}},
      {"plan", {}},
      {"inspect", {}},
      {"bench", {"-p", "4", "-n", "0", "-d", "0", "-r", "1", "--machine", "none"}},
      {"simulate", {"--generate", "20"}},
      {"perplexity", {"-f", dir / "text", "-c", "64"}},
      {"logits", {"--tokens", "1,2"}},
      {"tokenize", {"-p", "hello"}},
      {"quantize", {"--json", dir / "o.gguf", "Q8_0"}}};
  for (const auto& [command, flags] : kCommands) {
    for (const Args& how :
         {Args{model}, Args{"-m", model}, Args{"--model", model}, Args{"--model=" + model}}) {
      EXPECT_TRUE(succeeded(run_sluice(Args{command} + how + flags))) << command << " " << how[0];
    }
    for (const Args& how : {Args{"nosuch"}, Args{"-m", "nosuch"}}) {
      EXPECT_TRUE(refused(run_sluice(Args{command} + how + flags),
                          {"there is no model 'nosuch'", "demo-attn"}))
          << command;
    }
    ProcessOptions offline;
    offline.environment = {{"HF_HUB_OFFLINE", "1"}};
    for (const Args& how : {Args{"-hf", "user/repo"}, Args{"hf.co/user/repo:Q4_K_M"}}) {
      EXPECT_TRUE(refused(run_sluice(Args{command} + how + flags, offline), {"HF_HUB_OFFLINE"}))
          << command << " " << how[0];
    }
  }
}

TEST_F(CommandLines, OfShellsAreCompleted) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = output_of({"completions", shell});
    for (const char* part : {"perplexity", "n-cpu-moe", "sluice list --names"}) {
      EXPECT_NE(script.find(part), std::string::npos) << shell << " " << part;
    }
    // The shells themselves, where there are any.
    write_file(dir / shell, script);
    std::filesystem::create_directories(dir / "zsh.d");
    if (std::string(shell) == "zsh") write_file(dir / "zsh.d/_sluice", script);
    const std::string program = std::string("/usr/bin/") + shell;
    if (!std::filesystem::exists(program)) continue;
    const Outcome parsed = run_process({program, "-n", dir / shell});
    EXPECT_TRUE(parsed.exit_code == 0 && parsed.err.empty()) << shell << " " << parsed;
  }
  // The first Tab in zsh runs the file as the function's body.
  if (std::filesystem::exists("/usr/bin/zsh")) {
    const std::string run =
        "autoload -Uz _sluice; CURRENT=2; words=(sluice insp); "
        "_describe() { print described $1 ${#commands} }; _sluice";
    const Outcome first =
        run_process({"/usr/bin/zsh", "-f", "-c", "fpath=(" + dir / "zsh.d" + "); " + run});
    EXPECT_TRUE(first.out.starts_with("described command ")) << first;
  }
  if (std::filesystem::exists("/usr/bin/fish")) {
    const Outcome completed = run_process(
        {"/usr/bin/fish", "-c", "source " + dir / "fish" + "; complete -C 'sluice run --n-cpu'"});
    EXPECT_TRUE(completed.out.starts_with("--n-cpu-moe\t")) << completed;
  }
}

// As a person types them, with the cursor at the end.
TEST_F(CommandLines, AreCompletedByBash) {
  std::filesystem::create_directories(dir / "models/user/repo");
  std::filesystem::copy_file(model, dir / "models/user/repo/m-Q4_K_M.gguf");
  write_file(dir / "a file.txt", "");
  const std::string sluice = std::filesystem::path(SLUICE_BINARY).parent_path();
  write_file(dir / "c.bash",
             output_of({"completions", "bash"}) + "PATH=" + sluice + ":$PATH\ncd " + dir.path() +
                 "\nCOMP_LINE=$1 COMP_POINT=${#1}\n_sluice\n"
                 "(( ${#COMPREPLY[@]} == 0 )) || printf '%s\\n' \"${COMPREPLY[@]}\"\n");
  const auto completed = [&](const std::string& line) {
    ProcessOptions options;
    options.environment = {
        {"HOME", dir.path()}, {"XDG_DATA_HOME", ""}, {"SLUICE_MODELS", dir / "models"}};
    const Outcome outcome = run_process({"/bin/bash", dir / "c.bash", line}, options);
    EXPECT_EQ(outcome.err, "") << line;
    return outcome.out;
  };
  EXPECT_EQ(completed("sluice insp"), "inspect\n");
  EXPECT_EQ(completed("sluice run --n-cpu"), "--n-cpu-moe\n");
  EXPECT_EQ(completed("sluice -m x --n-cpu"), "--n-cpu-moe\n") << "flags alone are those of run";
  EXPECT_EQ(completed("sluice --vers"), "--version\n");
  EXPECT_EQ(completed("sluice inspect --n-cpu"), "");
  EXPECT_EQ(completed("sluice run demo-a"), "demo-attn\n");
  EXPECT_EQ(completed("sluice run user/r"), "user/repo:Q4_K_M\n");
  EXPECT_EQ(completed("sluice run user/repo:Q"), "Q4_K_M\n") << "bash has the rest already";
  EXPECT_EQ(completed("sluice run a"), "a file.txt\n");
  EXPECT_NE(completed("sluice run ").find("demo-attn\n"), std::string::npos);
}

TEST_F(CommandLines, StandInAManualPage) {
  const std::string man = output_of({"help", "man"});
  EXPECT_TRUE(man.starts_with(".TH SLUICE 1\n")) << man.substr(0, 100);
  EXPECT_NE(man.find("\\-\\-n\\-cpu\\-moe"), std::string::npos);
  EXPECT_NE(man.find("model.gguf \\(dqWhy is the sky blue?\\(dq\n"), std::string::npos) << "quotes";
  for (const char* command : {"run", "serve", "plan", "pull", "rm", "quantize", "completions"}) {
    EXPECT_NE(man.find(cat(".SS sluice ", command, "\n")), std::string::npos) << command;
  }
}

}  // namespace
}  // namespace sluice::test
