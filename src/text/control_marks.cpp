// See control_marks.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/control_marks.h"

#include <algorithm>
#include <utility>

#include "text/jinja/limits.h"
#include "text/thinking.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_word(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_assistant(const Json& message) {
  return message.is_object() && message.contains("role") && message["role"] == "assistant";
}

}  // namespace

ControlMarks::ControlMarks(const Tokenizer& tokenizer) {
  for (TokenId id = 0; id < tokenizer.n_tokens(); ++id) {
    const TokenKind kind = tokenizer.token_kind(id);
    if (kind != TokenKind::control && kind != TokenKind::unknown) continue;
    tokens_.add(tokenizer.token_text(id), id);
    texts_.push_back(tokenizer.token_text(id));
  }
}

void ControlMarks::mark(ChatInput& input) const {
  if (input.messages.is_array()) {
    for (Json& message : input.messages) {
      mark(message, is_assistant(message) ? Tags::kept : Tags::marked, 0);
    }
  }
  mark(input.tools, Tags::marked, 0);
}

// What is deeper than a template may go is refused by it, so it need not be marked.
void ControlMarks::mark(Json& json, Tags tags, int depth) const {
  if (depth > jinja::Limits().depth) return;
  if (json.is_string()) {
    json = marked(json.get_ref<const std::string&>(), tags);
  } else if (json.is_array()) {
    for (Json& item : json) mark(item, tags, depth + 1);
  } else if (json.is_object()) {
    for (auto& [key, value] : json.items()) mark(value, tags, depth + 1);
    mark_keys(json);
  }
}

void ControlMarks::mark_keys(Json& object) const {
  const auto is_same = [&](const auto& entry) {
    return marked(entry.first, Tags::marked) == entry.first;
  };
  auto& entries = object.get_ref<Json::object_t&>();
  if (std::ranges::all_of(entries, is_same)) return;
  Json renamed = Json::object();
  for (auto& [key, value] : entries) renamed[marked(key, Tags::marked)] = std::move(value);
  object = std::move(renamed);
}

std::string ControlMarks::marked(std::string_view text, Tags tags) const {
  std::string out(may_continue(text) ? kMark : std::string_view());
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view character = rest.substr(0, next_utf8(rest).n_bytes);
    out += character == kMark ? kReplacement : character;
    const bool is_kept = tags == Tags::kept && begins_with_thinking_tag(rest);
    if (tokens_.may_begin(rest) && !is_kept) out += kMark;
    rest.remove_prefix(character.size());
  }
  return out;
}

// Whether this text, behind what the template has written, might complete a control token: "<" and
// "|im_end|>". A mere word may do so: templates make "<|user|>" of a role.
bool ControlMarks::may_continue(std::string_view text) const {
  return std::ranges::any_of(texts_, [&](std::string_view token) {
    for (size_t i = 1; i < token.size(); ++i) {
      const std::string_view rest = token.substr(i);
      if (text.starts_with(rest) && !is_word(rest)) return true;
      if (rest.starts_with(text) && !is_word(text)) return true;
    }
    return false;
  });
}

std::string ControlMarks::without_marks(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t n = std::min(text.find(kMark), text.size());
    out += text.substr(0, n);
    text.remove_prefix(std::min(n + kMark.size(), text.size()));
  }
  return out;
}

}  // namespace sluice::text
