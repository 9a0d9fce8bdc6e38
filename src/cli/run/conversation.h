// A conversation: its messages, and the file they can be kept in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/files/json_text.h"

namespace sluice::cli {

class Conversation {
 public:
  // An empty text takes the system message away.
  void set_system(const std::string& text) { system_ = text; }
  void add_user(const std::string& text);
  void add_answer(const std::string& text, const std::string& thinking);
  bool ends_with_user() const;
  void drop_answer();  // the last message, where it is one
  void clear() { turns_ = Json::array(); }

  // As chat templates want them.
  Json messages() const;

  // One JSON file with all messages; a failure loses nothing. Throws Error with the file's name.
  void save(const std::string& path) const;
  // Replaces everything; throws Errc::bad_request, with nothing changed, for what is no such file.
  void load(const std::string& path);

 private:
  std::string system_;
  Json turns_ = Json::array();
};

}  // namespace sluice::cli
