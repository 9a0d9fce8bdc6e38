// Text in, text out: a conversation with a model. Tokens are in sluice.h.
//
//   sluice::Chat chat("demo-attn");
//   std::string answer = chat.ask("What is 17 + 25?");
//
// Whatever goes wrong from outside (file, request, memory, device) is thrown as sluice::Error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/export.h"
#include "sluice/sluice.h"

namespace sluice {

// The file of a model: `name` itself where it is a path, else NAME.gguf (of a split model the first
// shard) in the first folder that has it: those given, then the models that ship with sluice.
// Throws Errc::bad_request with the names there are.
SLUICE_API std::string find_model(const std::string& name,
                                  const std::vector<std::string>& folders = {});

// The models in these folders, as find_model() finds them by name: sorted, each name once.
struct FoundModel {
  std::string name;
  std::string path;
};
SLUICE_API std::vector<FoundModel> list_models(const std::vector<std::string>& folders = {});

struct ChatOptions {
  std::string system = {};              // system message; empty: none
  int n_tokens = -1;                    // of an answer at most; -1: as many as the context holds
  std::vector<std::string> stops = {};  // texts that end an answer

  // How tokens are chosen. Unset: as the model file recommends, or else llama.cpp's defaults.
  std::optional<float> temperature = {};  // 0: always the most probable
  std::optional<int> top_k = {};
  std::optional<float> top_p = {};
  std::optional<float> min_p = {};
  std::optional<uint32_t> seed = {};  // unset: drawn

  std::optional<bool> thinking =
      {};                      // whether to think first; unset: as the model's template has it
  bool parse_special = false;  // control tokens in messages, such as <|im_end|>, count as such

  SessionOptions session = {};  // context, KV cache, device

  // While a prompt is computed: how far it is, and whether to end it (also asked after each token).
  std::function<void(int n_done, int n_total)> prompt_progress = {};
  std::function<bool()> should_stop = {};
};

// Calls to one Chat must not overlap. Several may share a Model.
class SLUICE_API Chat {
 public:
  explicit Chat(const Model& model, const ChatOptions& options = {});
  // By a file, or by the name of a model that ships with sluice.
  explicit Chat(const std::string& model, const ChatOptions& options = {});
  ~Chat();
  Chat(Chat&&) noexcept;
  Chat& operator=(Chat&&) noexcept;

  // Sees the answer as it comes, in whole characters; false ends it.
  using OnText = std::function<bool(std::string_view text)>;

  // Answers a message, as part of the conversation so far. Where that throws, or is stopped before
  // the first token, the conversation is as before.
  std::string ask(const std::string& message, const OnText& on_text = {});

  // What the model thought before its last answer; often nothing.
  const std::string& thinking() const;

  // Begins a new conversation, with the same system message.
  void reset();

  // What was computed for it so far, and where.
  const Stats& stats() const;
  const PlacementInfo& placement() const;

  // What a person should know before using this model; often nothing.
  const std::vector<std::string>& warnings() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
