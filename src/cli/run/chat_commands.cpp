// The commands of a chat: a table, what each does, and what Tab makes of a half-typed one. Each
// confirms itself: what was asked for on standard output, the rest on standard error.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/units.h"
#include "cli/files/text_file.h"
#include "cli/flags/translate.h"
#include "cli/run/chat.h"
#include "cli/run/conversation_file.h"
#include "cli/terminal/style.h"
#include "sampler/parameters.h"
#include "text/utf8.h"

namespace sluice::cli {

struct Chat::Command {
  std::string_view name;
  std::string_view argument;  // for the help
  void (Chat::*run)(const std::string& argument);
  std::string_view what;  // empty: another name of the one before
  bool takes_file = false;
};

constexpr Chat::Command Chat::kCommands[] = {
    {"/help", "", &Chat::help, "this text"},
    {"/?", "", &Chat::help, ""},
    {"/retry", "", &Chat::retry, "answer the last message again (also /regen)"},
    {"/regen", "", &Chat::retry, ""},
    {"/undo", "", &Chat::undo, "take the last message and its answer back"},
    {"/edit", "[TEXT]", &Chat::edit, "change the last message, and answer that"},
    {"/clear", "", &Chat::clear, "begin a new conversation (also /reset)"},
    {"/reset", "", &Chat::clear, ""},
    {"/system", "[TEXT]", &Chat::system, "begin a new one with this system message, or with none"},
    {"/set", "[NAME VALUE]", &Chat::set,
     "a sampling parameter, such as /set temp 0.7; or show all"},
    {"/think", "on|off|auto", &Chat::think, "whether the model thinks first"},
    {"/file", "PATH", &Chat::file, "put a file's text behind the next message", true},
    {"/read", "PATH", &Chat::file, "", true},
    {"/save", "FILE", &Chat::save, "keep the conversation", true},
    {"/load", "FILE", &Chat::load, "go on with a kept one", true},
    {"/stats", "", &Chat::stats, "what this conversation has computed, and its use of the context"},
    {"/quit", "", &Chat::quit, "end (also Ctrl-D)"},
    {"/exit", "", &Chat::quit, ""},
    {"/bye", "", &Chat::quit, ""},
};

namespace {

constexpr const char* kHelpOfLines =
    "A line that ends in \\ goes on in the next one; \"\"\" opens and closes a block of lines.\n"
    "What is pasted is one message. // begins a message that begins with a slash.\n"
    "Tab completes commands. Ctrl-C stops an answer.\n";

// What was typed behind a command, without the spaces around it.
std::string argument_of(const std::string& line) {
  const size_t name_end = std::min(line.find(' '), line.size());
  const size_t begin = line.find_first_not_of(' ', name_end);
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
}

// No shell stands between the user and a command, so "~/" is for us to know.
std::string at_home(const std::string& typed) {
  const char* home = std::getenv("HOME");
  return home && typed.starts_with("~/") ? home + typed.substr(1) : typed;
}

std::string file_path(const std::string& command, const std::string& typed) {
  if (typed.empty()) {
    throw Error(Errc::bad_request,
                cat(command, " needs the name of a file, such as ", command, " chat.json"));
  }
  return at_home(typed);
}

void confirm(const std::string& text) {
  std::fprintf(stderr, "%s\n", dimmed_on_stderr(cat("(", text, ")")).c_str());
}

// Calls with each parameter's row of the table.
template <typename Visit>
void for_each_parameter(const Visit& visit) {
  for (const auto& p : sampler::kFloatParameters) visit(p);
  for (const auto& p : sampler::kIntParameters) {
    if (p.name != "n_probs") visit(p);
  }
}

template <typename T>
void set_parameter(const sampler::Parameter<T>& p, const std::string& text,
                   sampler::SamplerOptions& options) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !p.allows(value)) {
    throw Error(Errc::bad_request,
                cat(p.name, " is '", text.substr(0, 40), "'; expected ", p.expected));
  }
  options.*p.member = value;
}

// Files whose path begins as typed; folders with a slash behind them.
std::vector<std::string> files_like(const std::string& typed) {
  namespace fs = std::filesystem;
  const size_t slash = typed.rfind('/');
  const std::string folder = slash == std::string::npos ? "" : typed.substr(0, slash + 1);
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : at_home(folder), error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = folder + entry->path().filename().string();
    std::error_code ignored;
    if (name.starts_with(typed)) found.push_back(name + (entry->is_directory(ignored) ? "/" : ""));
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

void Chat::command(const std::string& line) {
  const std::string name = line.substr(0, line.find(' '));
  std::vector<std::string> names;
  for (const Command& known : kCommands) {
    if (known.name == name) {
      (this->*known.run)(argument_of(line));
      std::fflush(stdout);
      return;
    }
    names.emplace_back(known.name);
  }
  const std::string similar = nearest(name, names);
  throw Error(Errc::bad_request, cat("'", name, "' is no command; /help lists them",
                                     similar.empty() ? "" : cat(" (did you mean ", similar, "?)")));
}

std::vector<std::string> Chat::completions(const std::string& line) {
  std::vector<std::string> found;
  const size_t space = line.find(' ');
  for (const Command& known : kCommands) {
    if (space == std::string::npos) {
      const bool goes_on = !known.argument.empty();
      if (known.name.starts_with(line) && line.starts_with('/')) {
        found.push_back(cat(known.name, goes_on ? " " : ""));
      }
    } else if (known.name == line.substr(0, space) && known.takes_file) {
      for (const std::string& path : files_like(line.substr(space + 1))) {
        found.push_back(cat(known.name, " ", path));
      }
    }
  }
  if (line.starts_with("/set ")) {
    for_each_parameter([&](const auto& p) {
      const std::string whole = cat("/set ", p.name, " ");
      if (whole.starts_with(line)) found.push_back(whole);
    });
  }
  return found;
}

void Chat::help(const std::string&) {
  for (const Command& known : kCommands) {
    if (known.what.empty()) continue;
    std::printf("  %-20s %s\n",
                cat(known.name, known.argument.empty() ? "" : " ", known.argument).c_str(),
                std::string(known.what).c_str());
  }
  std::fputs(kHelpOfLines, stdout);
}

void Chat::clear(const std::string&) {
  dialogue_.conversation().clear();
  attached_.clear();
  n_answers_ = 0;
  n_tokens_ = 0;
  decode_seconds_ = 0.0;
  last_answer_.reset();
  said_left_out_ = false;
  confirm("a new conversation begins");
}

void Chat::system(const std::string& argument) {
  text::require_utf8(argument, "the system message");
  clear("");
  dialogue_.conversation().set_system(argument);
  confirm(argument.empty() ? "without a system message" : "with this system message");
}

void Chat::retry(const std::string&) {
  const chat::Answer answer =
      print_answer([](chat::Dialogue& dialogue, const chat::Listener& listener) {
        return dialogue.regenerate(listener);
      });
  std::fprintf(stderr, "%s\n", dimmed_on_stderr(cat("[", describe(answer), "]")).c_str());
}

void Chat::undo(const std::string&) {
  chat::Conversation& conversation = dialogue_.conversation();
  if (!conversation.drop_exchange()) {
    throw Error(Errc::bad_request, "there is nothing to take back; type a message first");
  }
  confirm(cat("taken back; ", conversation.messages().size(), " messages are left"));
}

void Chat::edit(const std::string& argument) {
  chat::Conversation& conversation = dialogue_.conversation();
  if (argument.empty() && !is_terminal_) {
    throw Error(Errc::bad_request, "/edit needs the new text where nobody types: /edit TEXT");
  }
  const std::optional<std::string> before = conversation.drop_exchange();
  if (!before) throw Error(Errc::bad_request, "there is nothing to edit; type a message first");
  if (!argument.empty()) return ask_and_tell(argument);
  to_edit_ = *before;
  confirm("the last message and its answer are taken back; edit it and press Enter");
}

// As Ollama's chat has them: "/set parameter temperature 0.7", "/set nothink", "/set system TEXT".
void Chat::set(const std::string& argument) {
  const std::string first = argument.substr(0, argument.find(' '));
  if (first == "parameter") return set(argument_of(argument));
  if (first == "think" || first == "nothink") return think(first == "think" ? "on" : "off");
  if (first == "system") return system(argument_of(argument));
  set_sampling(argument);
}

void Chat::set_sampling(const std::string& argument) {
  sampler::SamplerOptions options = chooser_.options();
  if (argument.empty()) {
    for_each_parameter([&](const auto& p) {
      std::printf("  %-20s %s\n", std::string(p.name).c_str(),
                  cat((options.*p.member).value_or(p.fallback)).c_str());
    });
    return;
  }
  std::string name = argument.substr(0, argument.find(' '));
  std::ranges::replace(name, '-', '_');
  if (name == "temperature") name = "temp";
  const std::string value = argument_of(argument);
  bool is_known = false;
  std::vector<std::string> names;
  for_each_parameter([&](const auto& p) {
    names.emplace_back(p.name);
    if (p.name != name) return;
    is_known = true;
    set_parameter(p, value, options);
  });
  if (!is_known) {
    const std::string similar = nearest(name, names);
    throw Error(Errc::bad_request,
                cat("'", name.substr(0, 40), "' is no sampling parameter; /set lists them",
                    similar.empty() ? "" : cat(" (did you mean ", similar, "?)")));
  }
  chooser_.set_options(std::move(options));
  confirm(cat(name, " is ", value));
}

void Chat::think(const std::string& argument) {
  std::optional<bool>& thinking = dialogue_.options().enable_thinking;
  if (argument == "on" || argument == "off") {
    thinking = argument == "on";
  } else if (argument == "auto") {
    thinking.reset();
  } else if (!argument.empty()) {
    throw Error(Errc::bad_request,
                cat("/think ", argument.substr(0, 40), "; expected on, off or auto"));
  }
  confirm(!thinking   ? "the model's template decides whether it thinks first"
          : *thinking ? "the model is asked to think first"
                      : "the model is asked not to think first");
}

void Chat::file(const std::string& argument) {
  std::string text = read_text_file(file_path("/file", argument));
  if (text.ends_with('\n')) text.pop_back();
  text::require_utf8(text, argument);
  attached_ += cat(attached_.empty() ? "" : "\n\n", text);
  confirm(cat(argument, ", ", format_bytes(text.size()), ", goes behind the next message"));
}

void Chat::save(const std::string& argument) {
  save_conversation(dialogue_.conversation(), file_path("/save", argument));
  if (prompt_cache_.is_on() && session_.n_tokens() > 0) {
    prompt_cache_.save(session_, dialogue_.held());
  }
  std::printf("%zu messages saved\n", dialogue_.conversation().messages().size());
}

void Chat::load(const std::string& argument) {
  chat::Conversation loaded = load_conversation(file_path("/load", argument));
  dialogue_.conversation() = std::move(loaded);
  said_left_out_ = false;
  if (prompt_cache_.is_on()) load_prompt_cache();
  std::printf("%zu messages loaded\n", dialogue_.conversation().messages().size());
}

void Chat::stats(const std::string&) {
  if (n_answers_ > 0) {
    std::printf("conversation: %zu messages; %d answers of %zu tokens in %.1f s\n",
                dialogue_.conversation().messages().size(), n_answers_, n_tokens_, decode_seconds_);
  }
  if (dialogue_.n_left_out() > 0) {
    std::printf("the oldest %zu messages are left out of the context\n", dialogue_.n_left_out());
  }
  if (last_answer_) std::printf("%s\n", describe(*last_answer_).c_str());
  std::printf("context: %d of %d tokens, KV cache %s\n", session_.n_tokens(), session_.n_ctx(),
              format_bytes(session_.stats().kv_bytes).c_str());
}

void Chat::quit(const std::string&) { ends_ = true; }

}  // namespace sluice::cli
