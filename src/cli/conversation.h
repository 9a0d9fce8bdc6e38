// A conversation: its messages, and the file they can be kept in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/json_text.h"

namespace sluice::cli {

class Conversation {
 public:
  // An empty text takes the system message away.
  void set_system(const std::string& text) { system_ = text; }
  void add_user(const std::string& text);
  void add_answer(const std::string& text, const std::string& thinking);
  bool ends_with_user() const;
  size_t n_turns() const { return turns_.size(); }
  void drop_last() { turns_.erase(turns_.end() - 1); }
  void clear() { turns_ = Json::array(); }

  // As chat templates want them.
  Json messages() const;

  // One JSON file with all messages; written beside and renamed, so that a failure loses nothing.
  void save(const std::string& path) const;
  // Replaces everything; throws Errc::bad_request, with nothing changed, for what is no such file.
  void load(const std::string& path);

 private:
  std::string system_;
  Json turns_ = Json::array();
};

}  // namespace sluice::cli
