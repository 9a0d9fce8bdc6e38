// sluice run: answers one prompt, or chats. With --tokens it continues plain token ids.
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/experts/expert_watch.h"
#include "cli/files/json_text.h"
#include "cli/files/text_file.h"
#include "cli/flags/flag_checks.h"
#include "cli/flags/model_options.h"
#include "cli/flags/sampling_flags.h"
#include "cli/flags/words.h"
#include "cli/run/chat.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/style.h"
#include "cli/terminal/terminal_text.h"
#include "text/utf8.h"

namespace sluice::cli {
namespace {

struct RunOptions {
  ModelOptions model;
  ExpertWatchFlags experts;
  SamplingFlags sampling;
  ChatOptions chat;
  std::vector<std::string> words;  // the model, the prompt
  std::string prompt;              // "-": standard input
  std::string prompt_file;
  std::string system_file;
  bool has_prompt = false;
  bool lines = false;
  bool has_tokens = false;
  bool raw = false;
  bool parse_special = false;
  bool thinking = false;
  bool no_thinking = false;
  bool hide_thinking = false;
  bool no_wrap = false;
  bool no_shift = false;
  std::string template_variables;  // a JSON object
  bool json = false;
};

double per_second(int64_t n, double seconds) {
  return seconds > 0.0 ? static_cast<double>(n) / seconds : 0.0;
}

Json to_json(const Stats& stats) {
  return {{"n_prefill_tokens", stats.n_prefill_tokens},
          {"prefill_seconds", stats.prefill_seconds},
          {"n_decode_tokens", stats.n_decode_tokens},
          {"decode_seconds", stats.decode_seconds},
          {"prefill_tokens_per_second", per_second(stats.n_prefill_tokens, stats.prefill_seconds)},
          {"decode_tokens_per_second", per_second(stats.n_decode_tokens, stats.decode_seconds)},
          {"kv_bytes", stats.kv_bytes}};
}

void print_stats(const Stats& stats, StopReason reason) {
  std::fprintf(stderr,
               "stopped by %s; prompt %lld tokens at %.1f tokens/s, decode %lld tokens at %.1f "
               "tokens/s, KV cache %s\n",
               chat::describe(reason), static_cast<long long>(stats.n_prefill_tokens),
               per_second(stats.n_prefill_tokens, stats.prefill_seconds),
               static_cast<long long>(stats.n_decode_tokens),
               per_second(stats.n_decode_tokens, stats.decode_seconds),
               format_bytes(stats.kv_bytes).c_str());
}

// Token ids in, token ids out, greedily: for tests, and for comparing engines.
void run_tokens(const RunOptions& options) {
  const std::vector<TokenId> prompt = options.model.token_ids();
  SessionOptions session_options = options.model.session;
  ExpertWatch watch(options.experts, options.model.file(), session_options);
  const Model model = options.model.load();
  Session session = open_session(model, session_options);
  options.model.warn_of_context(model);
  const auto print_token = [&](TokenId token) {
    if (options.json) return true;
    std::printf("%d ", token);
    return std::fflush(stdout) == 0;  // the output is lost; main() reports it
  };
  GenerateOptions generate;
  if (options.chat.dialogue.answer.n_tokens >= 0)
    generate.n_tokens = options.chat.dialogue.answer.n_tokens;
  const bool can_end = model.info().eos && !options.sampling.user.ignore_eos;
  if (can_end) generate.end_tokens = {*model.info().eos};
  PromptBar bar;
  generate.prompt.progress = bar.updater();
  const GenerateResult result = session.generate(prompt, generate, print_token);
  if (options.json) {
    const Json object = {{"tokens", result.tokens},
                         {"stop_reason", chat::describe(result.reason)},
                         {"stats", to_json(session.stats())}};
    std::printf("%s\n", dump(object).c_str());
  } else {
    std::printf("\n");
    if (!std::ferror(stdout)) print_stats(session.stats(), result.reason);
  }
  watch.finish(stderr, session);
}

// The end of a file's last line is no part of the prompt.
std::string file_text(const std::string& path) {
  std::string text = read_text_file(path);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// What was given, and behind it what is piped in.
std::string prompt_of(const RunOptions& options) {
  const bool names_input = options.prompt == "-" || options.prompt_file == "-";
  std::string prompt =
      options.prompt_file.empty() || names_input ? options.prompt : file_text(options.prompt_file);
  if (names_input || !options.has_prompt) {
    prompt = file_text("-");
  } else if (has_piped_input() && !options.lines) {
    const std::string piped = file_text("-");
    if (!piped.empty()) prompt += cat(prompt.empty() ? "" : "\n\n", piped);
  }
  if (prompt.empty()) {
    throw Error(Errc::bad_request,
                "the prompt is empty; expected some text (or none of -p and -f, "
                "for a chat)");
  }
  text::require_utf8(prompt, "the prompt");
  return prompt;
}

void print_answer(const RunOptions& options, const Chat& chat, const chat::Answer& answer,
                  const Session& session, uint32_t seed) {
  if (!options.json) {
    std::fprintf(stderr, "%s\n", dimmed_on_stderr(cat("[", describe(answer), "]")).c_str());
    return;
  }
  Json object = {{"text", answer.text},
                 {"thinking", answer.thinking},
                 {"tokens", answer.tokens},
                 {"stop_reason", answer.stop_reason},
                 {"seed", seed},
                 {"first_token_seconds", answer.first_token_seconds},
                 {"stats", to_json(session.stats())}};
  if (chat.prompt_cache().is_on()) object["prompt_cache"] = chat.prompt_cache().to_json();
  std::printf("%s\n", dump(object).c_str());
}

void start_chat(Chat& chat, const ModelInfo& model, const Session& session) {
  LineEditor editor(default_history_path());
  if (isatty(STDIN_FILENO) == 1) {
    std::fprintf(stderr, "%s, context of %d tokens; /help lists the commands, Ctrl-D ends\n",
                 one_line(model.name.empty() ? model.architecture : model.name).c_str(),
                 session.n_ctx());
  }
  chat.run(editor);
}

void show_prompt(const std::string& text, size_t n_tokens) {
  const std::string shown = isatty(STDERR_FILENO) == 1 ? harmless(text) : text;
  std::fprintf(stderr, "--- prompt, %zu tokens\n", n_tokens);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
  std::fputs("\n---\n", stderr);
}

ChatOptions chat_options(const RunOptions& options) {
  ChatOptions chat = options.chat;
  if (!options.system_file.empty()) chat.system = file_text(options.system_file);
  text::require_utf8(chat.system, "the system message");
  for (const std::string& stop : chat.dialogue.answer.stops)
    text::require_utf8(stop, "the text of --stop");
  // A grammar holds from the first token on, so there is no room for thinking.
  const bool has_grammar = options.sampling.has_grammar();
  chat::DialogueOptions& dialogue = chat.dialogue;
  if (options.thinking) dialogue.enable_thinking = true;
  if (options.no_thinking || has_grammar) dialogue.enable_thinking = false;
  if (options.raw || has_grammar) dialogue.answer.start = text::ThinkingSplitter::State::answer;
  if (options.parse_special) dialogue.messages = chat::TextModel::Messages::control_tokens;
  if (chat.verbose_prompt) dialogue.on_prompt = show_prompt;
  if (options.hide_thinking) chat.show_thinking = ShowThinking::hidden;
  if (options.no_wrap) chat.wrap = Wrap::none;
  dialogue.leaves_out_oldest = !options.no_shift;
  if (!options.template_variables.empty()) {
    dialogue.variables =
        Json::parse(options.template_variables, nullptr, /*allow_exceptions=*/false);
    if (!dialogue.variables.is_object()) {
      throw Error(Errc::bad_request,
                  cat("--chat-template-kwargs is '", options.template_variables.substr(0, 80),
                      "'; expected a JSON object, such as {\"enable_thinking\": false}"));
    }
  }
  chat.quiet = options.json;
  return chat;
}

void run(const RunOptions& options) {
  if (options.has_tokens) return run_tokens(options);
  // A chat is typed, or asked for; what is piped in otherwise is one prompt.
  const bool chats = !options.has_prompt && (options.lines || isatty(STDIN_FILENO) == 1);
  if (chats && (options.raw || options.json)) {
    throw Error(Errc::bad_request, "--raw and --json are for one prompt; give it with -p or -f");
  }
  // All that can be wrong with the flags comes before the model, which may take long to load.
  const std::string prompt = chats ? "" : prompt_of(options);
  const ChatOptions chat_options = cli::chat_options(options);
  const chat::TextModel text_model(options.model.file(), options.raw
                                                             ? chat::TextModel::Use::plain_text
                                                             : chat::TextModel::Use::chat);
  for (const std::string& warning : text_model.warnings()) print_warning(warning);
  const sampler::SamplerOptions sampling = options.sampling.resolve(text_model);
  chat::Chooser chooser(sampling, text_model.tokenizer().n_tokens(),
                        options.sampling.make_matcher(text_model));
  SessionOptions session_options = options.model.session;
  ExpertWatch watch(options.experts, options.model.file(), session_options);
  std::optional<MainThreadSignals> guard(std::in_place);  // all threads begin here
  const Model model = options.model.load();
  Session session = open_session(model, session_options);
  options.model.warn_of_context(model);
  guard.reset();
  Chat chat({session, text_model, chooser}, chat_options);
  if (chats) {
    start_chat(chat, model.info(), session);
    watch.finish(stderr, session);
    if (chat.n_failed() > 0 && isatty(STDIN_FILENO) == 0) throw CLI::RuntimeError(1);
    return;
  }
  const chat::Answer answer = options.raw ? chat.complete(prompt) : chat.ask(prompt);
  require_output();  // a failed write ends an answer as Ctrl-C does
  print_answer(options, chat, answer, session, sampling.seed.value_or(0));
  watch.finish(stderr, session);
  require_output();
  if (answer.was_interrupted()) end_by_interrupt();
}

// --tokens takes ids, prints ids and is greedy: of the flags about text and choosing, it has a use
// for few. `n_general`: how many flags come before those.
void require_token_flags(const CLI::App& command, size_t n_general) {
  // The words are the model alone: take_words() has refused a text.
  constexpr std::string_view kUsed[] = {"words", "--predict", "--ignore-eos", "--json"};
  const auto options = command.get_options();
  for (const CLI::Option* option : std::span(options).subspan(n_general)) {
    const bool is_used = std::ranges::find(kUsed, option->get_name()) != std::end(kUsed);
    if (option->count() > 0 && !is_used) throw CLI::ExcludesError("--tokens", option->get_name());
  }
}

// The words that belong to no flag, once all flags are read.
void take_words(RunOptions& options, const CLI::App& command) {
  const auto given = [&](const char* name) { return command.get_option(name)->count() > 0; };
  options.has_tokens = given("--tokens");
  options.has_prompt = given("--prompt") || given("--file");
  const ModelAndText words = sort_words(options.words, given("--model") || given("--hf-repo"),
                                        options.has_prompt || options.has_tokens);
  if (words.model) {
    options.model.name = *words.model;
    require_model_word(*words.model);
  }
  if (words.text) {
    options.has_prompt = true;
    options.prompt = *words.text;
  }
}

void add_prompt_flags(CLI::App& command, RunOptions& options) {
  const std::string group = "Prompt";
  ChatOptions& chat = options.chat;
  command
      .add_option("words", options.words, "the model, and a prompt to answer; - is standard input")
      ->type_name("[MODEL] [PROMPT]");
  CLI::Option* text = command
                          .add_option("-p,--prompt", options.prompt,
                                      "answer this and end; what is piped in is put behind it")
                          ->group(group);
  command.add_option("-f,--file", options.prompt_file, "answer the text of a file and end")
      ->excludes(text)
      ->group(group);
  CLI::Option* system = command.add_option("--system", chat.system, "system message")->group(group);
  CLI::Option* system_file =
      command.add_option("--system-file", options.system_file, "a file with it")
          ->excludes(system)
          ->group(group);
  command.add_flag("--lines", options.lines, "standard input is a chat, each line a message")
      ->excludes(text)
      ->group(group);
  command
      .add_option("-n,--predict", chat.dialogue.answer.n_tokens,
                  "new tokens at most (-1: until the model ends; with --tokens 128)")
      ->transform(at_least(-1))
      ->group(group);
  command
      .add_option("--stop", chat.dialogue.answer.stops,
                  "text that ends an answer; may be given again")
      ->allow_extra_args(false)
      ->group(group);
  command.add_flag("--raw", options.raw, "continue the prompt as it stands, no chat template")
      ->excludes(system, system_file)
      ->group(group);
  command
      .add_flag("--parse-special", options.parse_special,
                "control tokens that messages hold, such as <|im_end|>, count as such; without "
                "it they are text (with --raw they always count)")
      ->group(group);
  CLI::Option* no_thinking =
      command.add_flag("--no-thinking", options.no_thinking, "ask the model not to think first")
          ->group(group);
  command.add_flag("--thinking", options.thinking, "ask the model to think first")
      ->excludes(no_thinking)
      ->group(group);
}

void add_prompt_cache_flags(CLI::App& command, PromptCacheOptions& cache) {
  const std::string group = "Prompt";
  CLI::Option* path = command
                          .add_option("--prompt-cache", cache.path,
                                      "a file that keeps what was computed of the prompt: the "
                                      "next run computes only what differs")
                          ->type_name("FILE")
                          ->group(group);
  command
      .add_flag("--prompt-cache-ro", cache.is_read_only,
                "use the file of --prompt-cache, and never write it")
      ->needs(path)
      ->group(group);
}

void add_chat_flags(CLI::App& command, RunOptions& options) {
  const std::string group = "Prompt";
  command
      .add_option("--chat-template-kwargs", options.template_variables,
                  "variables for the chat template: a JSON object")
      ->group(group);
  command
      .add_flag("--no-shift", options.no_shift,
                "refuse a message that no longer fits into the context; without it the oldest "
                "messages are left out")
      ->group(group);
}

void add_output_flags(CLI::App& command, RunOptions& options) {
  const std::string group = "Output";
  command.add_flag("--hide-thinking", options.hide_thinking, "let it think, but do not show it")
      ->group(group);
  command.add_flag("--no-wrap", options.no_wrap, "do not wrap lines at words on a terminal")
      ->group(group);
  command.add_flag("--verbose-prompt", options.chat.verbose_prompt, "show what the model is given")
      ->group(group);
  command
      .add_flag("--json", options.json,
                "one JSON object with the answer, seed, speeds and why it ended")
      ->group(group);
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "answer a prompt, or chat");
  auto options =
      std::make_shared<RunOptions>();  // shared: lives in the callback, after this returns
  options->model.name = kDefaultModel;
  options->model.sort_words = [flags = options.get(), command] { take_words(*flags, *command); };
  options->model.add_to(*command);
  options->experts.add_to(*command);
  options->model.add_tokens_to(*command);
  const size_t n_general = command->get_options().size();
  add_prompt_flags(*command, *options);
  add_prompt_cache_flags(*command, options->chat.prompt_cache);
  add_chat_flags(*command, *options);
  add_output_flags(*command, *options);
  options->sampling.add_to(*command);
  command->callback([options, command, n_general] {
    if (options->has_tokens) require_token_flags(*command, n_general);
    run(*options);
  });
}

}  // namespace sluice::cli
