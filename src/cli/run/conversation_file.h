// The file a conversation can be kept in: one JSON array of its messages.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "chat/conversation.h"

namespace sluice::cli {

// A failure loses nothing. Throws Error with the file's name.
void save_conversation(const chat::Conversation& conversation, const std::string& path);

// Throws Errc::bad_request for what is no such file.
chat::Conversation load_conversation(const std::string& path);

}  // namespace sluice::cli
