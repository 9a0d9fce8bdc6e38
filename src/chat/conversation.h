// A conversation: a system message, then turns of the user and of the model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "text/chat_template.h"

namespace sluice::chat {

using text::Json;

class Conversation {
 public:
  // The messages of `all`, of each what a chat makes use of; none where it is no such list.
  static std::optional<Conversation> from_messages(const Json& all);

  // An empty text takes the system message away.
  void set_system(const std::string& text) { system_ = text; }
  void add_user(const std::string& text);
  void add_answer(const std::string& text, const std::string& thinking);
  bool ends_with_user() const;
  void drop_answer();  // the last message, where it is one
  // The user's last message and what follows it; returns its text, or nothing where there is none.
  std::optional<std::string> drop_exchange();
  void clear() { turns_ = Json::array(); }

  // As chat templates want them.
  Json messages() const;

 private:
  std::string system_;
  Json turns_ = Json::array();
};

}  // namespace sluice::chat
