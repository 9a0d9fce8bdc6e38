// --prompt-cache: a file in which what was computed of a prompt stays from one run to the next. A
// file that cannot be used is told in one line, and the prompt is computed; one that sluice has not
// written, or that belongs to another model, is never replaced.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/files/json_text.h"
#include "sluice/sluice.h"

namespace sluice::cli {

struct PromptCacheOptions {
  std::string path;  // empty: none
  bool is_read_only = false;
};

class PromptCache {
 public:
  explicit PromptCache(PromptCacheOptions options) : options_(std::move(options)) {}

  bool is_on() const { return !options_.path.empty(); }
  // The session becomes the file's text, whose tokens are returned; nothing where there is no file,
  // or none for this session: its text then stays as it is.
  std::optional<std::vector<TokenId>> load(Session& session);
  // Writes the session's text, which has these tokens, where the file does not hold them already.
  // Says in a few words what became of the file; what goes wrong is a warning.
  std::string save(Session& session, std::span<const TokenId> tokens);

  // All of a prompt but its last token was computed, or found in the file: saves it, and says so.
  void prompt_was_read(Session& session, std::span<const TokenId> prompt, size_t n_found);

  Json to_json() const;

 private:
  PromptCacheOptions options_;
  bool may_write_ = true;
  std::vector<TokenId> in_file_;
  size_t n_found_ = 0, n_prompt_ = 0;
  size_t n_saved_ = 0;
};

}  // namespace sluice::cli
