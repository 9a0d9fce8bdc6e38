// See conversation.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/run/conversation.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/files/text_file.h"

namespace sluice::cli {
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

Json Conversation::messages() const {
  Json all = Json::array();
  if (!system_.empty()) all.push_back(make_message("system", system_));
  for (const Json& turn : turns_) all.push_back(turn);
  return all;
}

void Conversation::save(const std::string& path) const {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(Errc::bad_request,
                cat(path, " is no plain file; expected a new name, or a file to replace"));
  }
  OutputFile file(path);
  const std::string text = dump(messages(), 2) + "\n";
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

void Conversation::load(const std::string& path) {
  const Json all = Json::parse(read_text_file(path), nullptr, /*allow_exceptions=*/false);
  if (!all.is_array() || !std::ranges::all_of(all, is_message)) {
    throw Error(Errc::bad_request, cat(path,
                                       " is no saved conversation; expected a JSON array of "
                                       "messages with role and content"));
  }
  Conversation loaded;
  for (const Json& m : all) {
    const std::string role = m["role"];
    const std::string text = m["content"];
    if (role == "system" && loaded.turns_.empty() && loaded.system_.empty()) {
      loaded.system_ = text;
      continue;
    }
    // What else a message may hold is nothing a chat makes use of.
    loaded.turns_.push_back(make_message(role.c_str(), text));
    const auto thinking = m.find(kThinking);
    if (thinking != m.end() && thinking->is_string()) loaded.turns_.back()[kThinking] = *thinking;
  }
  *this = std::move(loaded);
}

}  // namespace sluice::cli
