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
#include "cli/run/chat.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/standard_output.h"
#include "cli/terminal/terminal_text.h"
#include "text/utf8.h"

namespace sluice::cli {
namespace {

struct RunOptions {
  ModelOptions model;
  ExpertWatchFlags experts;
  SamplingFlags sampling;
  ChatOptions chat;
  std::string prompt;  // "-": standard input
  std::string prompt_file;
  bool has_prompt = false;
  bool has_tokens = false;
  bool raw = false;
  bool parse_special = false;
  bool no_thinking = false;
  bool hide_thinking = false;
  bool json = false;
};

Json to_json(const Stats& stats) {
  return {{"n_prefill_tokens", stats.n_prefill_tokens},
          {"prefill_seconds", stats.prefill_seconds},
          {"n_decode_tokens", stats.n_decode_tokens},
          {"decode_seconds", stats.decode_seconds},
          {"kv_bytes", stats.kv_bytes}};
}

double per_second(int64_t n, double seconds) {
  return seconds > 0.0 ? static_cast<double>(n) / seconds : 0.0;
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
std::string prompt_of(const RunOptions& options) {
  const bool is_text = options.prompt_file.empty() && options.prompt != "-";
  std::string prompt = options.prompt;
  if (!is_text) {
    prompt = read_text_file(options.prompt_file.empty() ? "-" : options.prompt_file);
    if (prompt.ends_with('\n')) prompt.pop_back();
  }
  if (prompt.empty()) {
    throw Error(Errc::bad_request,
                "the prompt is empty; expected some text (or none of -p and -f, "
                "for a chat)");
  }
  text::require_utf8(prompt, "the prompt");
  return prompt;
}

void print_answer(const RunOptions& options, const chat::Answer& answer, const Session& session) {
  if (!options.json) {
    std::fprintf(stderr, "[%s]\n", describe(answer).c_str());
    return;
  }
  const Json object = {{"text", answer.text},
                       {"thinking", answer.thinking},
                       {"tokens", answer.tokens},
                       {"stop_reason", answer.stop_reason},
                       {"first_token_seconds", answer.first_token_seconds},
                       {"stats", to_json(session.stats())}};
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
  text::require_utf8(chat.system, "the system message");
  for (const std::string& stop : chat.dialogue.answer.stops)
    text::require_utf8(stop, "the text of --stop");
  // A grammar holds from the first token on, so there is no room for thinking.
  const bool has_grammar = options.sampling.has_grammar();
  chat::DialogueOptions& dialogue = chat.dialogue;
  if (options.no_thinking || has_grammar) dialogue.enable_thinking = false;
  if (options.raw || has_grammar) dialogue.answer.start = text::ThinkingSplitter::State::answer;
  if (options.parse_special) dialogue.messages = chat::TextModel::Messages::control_tokens;
  if (chat.verbose_prompt) dialogue.on_prompt = show_prompt;
  if (options.hide_thinking) chat.show_thinking = ShowThinking::hidden;
  chat.quiet = options.json;
  return chat;
}

void run(const RunOptions& options) {
  if (options.has_tokens) return run_tokens(options);
  if (!options.has_prompt && (options.raw || options.json)) {
    throw Error(Errc::bad_request, "--raw and --json are for one prompt; give it with -p or -f");
  }
  // All that can be wrong with the flags comes before the model, which may take long to load.
  const std::string prompt = options.has_prompt ? prompt_of(options) : "";
  const ChatOptions chat_options = cli::chat_options(options);
  const chat::TextModel text_model(options.model.file(), options.raw
                                                             ? chat::TextModel::Use::plain_text
                                                             : chat::TextModel::Use::chat);
  for (const std::string& warning : text_model.warnings()) print_warning(warning);
  chat::Chooser chooser(options.sampling.resolve(text_model), text_model.tokenizer().n_tokens(),
                        options.sampling.make_matcher(text_model));
  SessionOptions session_options = options.model.session;
  ExpertWatch watch(options.experts, options.model.file(), session_options);
  std::optional<MainThreadSignals> guard(std::in_place);  // all threads begin here
  const Model model = options.model.load();
  Session session = open_session(model, session_options);
  guard.reset();
  Chat chat({session, text_model, chooser}, chat_options);
  if (!options.has_prompt) {
    start_chat(chat, model.info(), session);
    return watch.finish(stderr, session);
  }
  const chat::Answer answer = options.raw ? chat.complete(prompt) : chat.ask(prompt);
  require_output();  // a failed write ends an answer as Ctrl-C does
  print_answer(options, answer, session);
  watch.finish(stderr, session);
  require_output();
  if (answer.was_interrupted()) end_by_interrupt();
}

// --tokens takes ids, prints ids and is greedy: of the flags about text and choosing, it has a use
// for few. `n_general`: how many flags come before those.
void require_token_flags(const CLI::App& command, size_t n_general) {
  constexpr std::string_view kUsed[] = {"--predict", "--ignore-eos", "--json"};
  const auto options = command.get_options();
  for (const CLI::Option* option : std::span(options).subspan(n_general)) {
    const bool is_used = std::ranges::find(kUsed, option->get_name()) != std::end(kUsed);
    if (option->count() > 0 && !is_used) throw CLI::ExcludesError("--tokens", option->get_name());
  }
}

}  // namespace

void add_run(CLI::App& app) {
  CLI::App* command = app.add_subcommand("run", "answer a prompt, or chat");
  auto options =
      std::make_shared<RunOptions>();  // shared: lives in the callback, after this returns
  options->model.name = kDefaultModel;
  options->model.add_to(*command);
  options->experts.add_to(*command);
  CLI::Option* tokens = options->model.add_tokens_to(*command);
  const size_t n_general = command->get_options().size();
  ChatOptions& chat = options->chat;
  CLI::Option* text = command->add_option("-p,--prompt,prompt", options->prompt,
                                          "answer this and end; - is standard input");
  CLI::Option* file =
      command->add_option("-f,--file", options->prompt_file, "answer the text of a file and end");
  file->excludes(text);
  CLI::Option* system = command->add_option("--system", chat.system, "system message");
  command
      ->add_option("-n,--predict", chat.dialogue.answer.n_tokens,
                   "new tokens at most (-1: until the model ends; with --tokens 128)")
      ->check(at_least(-1));
  command
      ->add_option("--stop", chat.dialogue.answer.stops,
                   "text that ends an answer; may be given again")
      ->allow_extra_args(false);
  command->add_flag("--raw", options->raw, "continue the prompt as it stands, no chat template")
      ->excludes(system);
  command->add_flag("--parse-special", options->parse_special,
                    "control tokens that messages hold, such as <|im_end|>, count as such; without "
                    "it they are text (with --raw they always count)");
  command->add_flag("--no-thinking", options->no_thinking, "ask the model not to think first");
  command->add_flag("--hide-thinking", options->hide_thinking, "let it think, but do not show it");
  command->add_flag("--verbose-prompt", chat.verbose_prompt, "show what the model is given");
  command->add_flag("--json", options->json, "one JSON object with the answer and statistics");
  options->sampling.add_to(*command);
  command->callback([options, command, text, file, tokens, n_general] {
    options->has_prompt = text->count() + file->count() > 0;
    options->has_tokens = tokens->count() > 0;
    if (options->has_tokens) require_token_flags(*command, n_general);
    run(*options);
  });
}

}  // namespace sluice::cli
