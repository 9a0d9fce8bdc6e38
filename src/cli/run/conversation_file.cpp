// See conversation_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/run/conversation_file.h"

#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/output_file.h"
#include "cli/files/json_text.h"
#include "cli/files/text_file.h"

namespace sluice::cli {

void save_conversation(const chat::Conversation& conversation, const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(Errc::bad_request,
                cat(path, " is no plain file; expected a new name, or a file to replace"));
  }
  OutputFile file(path);
  const std::string text = dump(conversation.messages(), 2) + "\n";
  file.append(std::as_bytes(std::span(text)));
  file.commit();
}

chat::Conversation load_conversation(const std::string& path) {
  const Json all = Json::parse(read_text_file(path), nullptr, /*allow_exceptions=*/false);
  std::optional<chat::Conversation> loaded = chat::Conversation::from_messages(all);
  if (!loaded) {
    throw Error(Errc::bad_request, cat(path,
                                       " is no saved conversation; expected a JSON array of "
                                       "messages with role and content"));
  }
  return *std::move(loaded);
}

}  // namespace sluice::cli
