// sluice_c.h: chats.
// SPDX-License-Identifier: Apache-2.0
#include "c_api/guard.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace sluice::c_api {
namespace {

std::string lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += cat(all.empty() ? "" : "\n", text);
  return all;
}

}  // namespace

sluice_stats make_stats(const Stats& stats, const PlacementInfo& placement) {
  return {.n_prefill_tokens = stats.n_prefill_tokens,
          .n_decode_tokens = stats.n_decode_tokens,
          .prefill_seconds = stats.prefill_seconds,
          .decode_seconds = stats.decode_seconds,
          .kv_bytes = stats.kv_bytes,
          .vram_bytes = placement.vram_bytes};
}

}  // namespace sluice::c_api

using namespace sluice::c_api;  // NOLINT(google-build-using-namespace): the names below are C's

sluice_chat* sluice_chat_new(const sluice_model* model, const sluice_chat_options* options) {
  return guarded_pointer([&] {
    const auto& open = require(model, "sluice_chat_new: model").open;
    sluice::Chat chat(open->model(), read(options));
    std::string warnings = lines(chat.warnings());
    return std::make_unique<sluice_chat>(
               sluice_chat{.chat = std::move(chat), .warnings = std::move(warnings)})
        .release();
  });
}

void sluice_chat_free(sluice_chat* chat) {
  free_unused(chat, "chat is in use, and not freed: free it when its function has returned");
}

const char* sluice_chat_ask(sluice_chat* chat, const char* message, sluice_on_text on_text,
                            void* user) {
  return guarded_pointer([&] {
    require(chat, "sluice_chat_ask: chat");
    require(message, "sluice_chat_ask: message");
    const InUse in_use(chat->is_used, "chat");
    sluice::Chat::OnText hear;
    if (on_text) {
      hear = [&](std::string_view text) { return on_text(text.data(), text.size(), user) != 0; };
    }
    chat->answer = chat->chat.ask(message, hear);
    return chat->answer.c_str();
  });
}

const char* sluice_chat_thinking(sluice_chat* chat) {
  return guarded_pointer(
      [&] { return require(chat, "sluice_chat_thinking: chat").chat.thinking().c_str(); });
}

int sluice_chat_reset(sluice_chat* chat) {
  return guarded([&] {
    require(chat, "sluice_chat_reset: chat");
    const InUse in_use(chat->is_used, "chat");
    chat->chat.reset();
    return SLUICE_OK;
  });
}

const char* sluice_chat_warnings(const sluice_chat* chat) {
  return guarded_pointer(
      [&] { return require(chat, "sluice_chat_warnings: chat").warnings.c_str(); });
}

int sluice_chat_stats(const sluice_chat* chat, sluice_stats* stats, size_t size) {
  return guarded([&] {
    const auto& asked = require(chat, "sluice_chat_stats: chat").chat;
    require(stats, "sluice_chat_stats: stats");
    hand_over(make_stats(asked.stats(), asked.placement()), stats, size);
    return SLUICE_OK;
  });
}
