// See conversation.h.
// SPDX-License-Identifier: Apache-2.0
#include "chat/conversation.h"

#include <algorithm>

namespace sluice::chat {
namespace {

constexpr const char* kThinking = "reasoning_content";

bool is_message(const Json& m) {
  const auto has_text = [&](const char* key) { return m.contains(key) && m[key].is_string(); };
  return m.is_object() && has_text("role") && has_text("content");
}

Json make_message(const char* role, const std::string& text) {
  return {{"role", role}, {"content", text}};
}

}  // namespace

void Conversation::add_user(const std::string& text) {
  turns_.push_back(make_message("user", text));
}

void Conversation::add_answer(const std::string& text, const std::string& thinking) {
  turns_.push_back(make_message("assistant", text));
  if (!thinking.empty()) turns_.back()[kThinking] = thinking;
}

bool Conversation::ends_with_user() const {
  return !turns_.empty() && turns_.back().at("role") == "user";
}

void Conversation::drop_answer() {
  if (!turns_.empty() && !ends_with_user()) turns_.erase(turns_.end() - 1);
}

std::optional<std::string> Conversation::drop_exchange() {
  for (size_t i = turns_.size(); i-- > 0;) {
    if (turns_[i].at("role") != "user") continue;
    const std::string text = turns_[i].at("content");
    turns_.erase(turns_.begin() + static_cast<std::ptrdiff_t>(i), turns_.end());
    return text;
  }
  return std::nullopt;
}

Json Conversation::messages() const {
  Json all = Json::array();
  if (!system_.empty()) all.push_back(make_message("system", system_));
  for (const Json& turn : turns_) all.push_back(turn);
  return all;
}

std::optional<Conversation> Conversation::from_messages(const Json& all) {
  if (!all.is_array() || !std::ranges::all_of(all, is_message)) return std::nullopt;
  Conversation read;
  for (const Json& m : all) {
    const std::string role = m["role"];
    const std::string text = m["content"];
    if (role == "system" && read.turns_.empty() && read.system_.empty()) {
      read.system_ = text;
      continue;
    }
    read.turns_.push_back(make_message(role.c_str(), text));
    const auto thinking = m.find(kThinking);
    if (thinking != m.end() && thinking->is_string()) read.turns_.back()[kThinking] = *thinking;
  }
  return read;
}

}  // namespace sluice::chat
