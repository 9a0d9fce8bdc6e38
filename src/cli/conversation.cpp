// See conversation.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/conversation.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "cli/text_file.h"

namespace sluice::cli {
namespace {

std::string without_outer_newlines(const std::string& text) {
  const size_t first = text.find_first_not_of('\n');
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of('\n') + 1 - first);
}

bool is_message(const Json& m) {
  return m.is_object() && m.contains("role") && m["role"].is_string() && m.contains("content") &&
         m["content"].is_string();
}

}  // namespace

void Conversation::add_user(const std::string& text) {
  turns_.push_back({{"role", "user"}, {"content", text}});
}

void Conversation::add_answer(const std::string& text, const std::string& thinking) {
  if (thinking.empty()) {
    turns_.push_back({{"role", "assistant"}, {"content", text}});
  } else {
    turns_.push_back({{"role", "assistant"},
                      {"content", without_outer_newlines(text)},
                      {"reasoning_content", without_outer_newlines(thinking)}});
  }
}

bool Conversation::ends_with_user() const {
  return !turns_.empty() && turns_.back().at("role") == "user";
}

Json Conversation::messages() const {
  Json all = Json::array();
  if (!system_.empty()) all.push_back({{"role", "system"}, {"content", system_}});
  for (const Json& turn : turns_) all.push_back(turn);
  return all;
}

void Conversation::save(const std::string& path) const {
  const std::string partial = path + ".partial";
  std::ofstream out(partial, std::ios::binary);
  out << dump(messages(), 2) << '\n';
  out.close();
  std::error_code error;
  if (!out) error.assign(errno, std::generic_category());
  if (!error) std::filesystem::rename(partial, path, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(partial, ignored);
    throw Error(Errc::bad_request,
                cat(path, " cannot be written (", error.message(), "); expected a writable file"));
  }
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
    if (loaded.turns_.empty() && loaded.system_.empty() && m["role"] == "system") {
      loaded.system_ = m["content"];
    } else {
      loaded.turns_.push_back(m);
    }
  }
  *this = std::move(loaded);
}

}  // namespace sluice::cli
