// What the opaque handles of sluice_c.h are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "chat/text_model.h"
#include "sluice/chat.h"
#include "sluice/sluice_c.h"

namespace sluice::c_api {

// A model, and its tokenizer once that is asked for: programs that chat do not need it here.
class OpenModel {
 public:
  explicit OpenModel(Model model) : model_(std::move(model)) {}

  const Model& model() const { return model_; }
  // From any thread. Throws where the file's tokenizer cannot be used.
  const chat::TextModel& text() const {
    const std::scoped_lock lock(mutex_);
    if (!text_) text_.emplace(model_.info().path, chat::TextModel::Use::plain_text);
    return *text_;
  }

 private:
  Model model_;
  mutable std::mutex mutex_;
  mutable std::optional<chat::TextModel> text_;
};

// Copies what the caller knows of a struct; fields that only the caller knows become 0.
template <typename T>
void hand_over(const T& from, T* to, size_t size) {
  std::memset(to, 0, size);
  std::memcpy(to, &from, std::min(size, sizeof(T)));
}

sluice_stats make_stats(const Stats& stats, const PlacementInfo& placement);

}  // namespace sluice::c_api

// NOLINTBEGIN(readability-identifier-naming): names of C
struct sluice_model {
  // Shared: sessions may outlive the handle.
  std::shared_ptr<const sluice::c_api::OpenModel> open;
};

struct sluice_chat {
  sluice::Chat chat;
  std::string warnings;
  std::string answer = {};
  bool is_used = false;
};

struct sluice_session {
  std::shared_ptr<const sluice::c_api::OpenModel> open;
  sluice::Session session;
  bool is_used = false;
};
// NOLINTEND(readability-identifier-naming)
