// See fill_prompt.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/fill_prompt.h"

#include <optional>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace sluice::text {
namespace {

using Tokens = std::vector<TokenId>;

void append(Tokens& to, const Tokens& tokens) { to.insert(to.end(), tokens.begin(), tokens.end()); }

Tokens file_tokens(const Tokenizer& tokenizer, const FillFile& file,
                   std::optional<TokenId> separator) {
  Tokens tokens;
  if (separator) tokens.push_back(*separator);
  std::string text = file.name + "\n" + file.text;
  if (!text.ends_with('\n')) text += '\n';
  append(tokens, tokenizer.encode(text, {.add_special = false}));
  return tokens;
}

}  // namespace

std::string missing_fill_tokens(const Tokenizer& tokenizer) {
  const SpecialIds& ids = tokenizer.ids();
  const std::pair<std::optional<TokenId>, std::string_view> needed[] = {
      {ids.fim_prefix, "tokenizer.ggml.fim_pre_token_id"},
      {ids.fim_suffix, "tokenizer.ggml.fim_suf_token_id"},
      {ids.fim_middle, "tokenizer.ggml.fim_mid_token_id"}};
  std::string missing;
  for (const auto& [id, key] : needed) {
    if (id) continue;
    if (!missing.empty()) missing += ", ";
    missing += key;
  }
  return missing;
}

FillPrompt make_fill_prompt(const Tokenizer& tokenizer, const FillInput& input, size_t n_most) {
  CHECK(missing_fill_tokens(tokenizer).empty());
  const SpecialIds& ids = tokenizer.ids();
  const auto plain = [&](const std::string& text) {
    return tokenizer.encode(text, {.add_special = false});
  };
  Tokens gap = {*ids.fim_prefix};
  append(gap, plain(input.prefix));
  gap.push_back(*ids.fim_suffix);
  append(gap, plain(input.suffix));
  gap.push_back(*ids.fim_middle);
  append(gap, plain(input.begun));

  // Around the files, where there are any.
  Tokens before, behind;
  const bool has_frame = ids.fim_repo && ids.fim_separator;
  if (has_frame) {
    before = {*ids.fim_repo};
    append(before, plain("myproject\n"));
    behind = {*ids.fim_separator};
    append(behind, plain("filename\n"));
  }
  FillPrompt prompt;
  if (tokenizer.adds_bos() && tokenizer.bos()) prompt.tokens.push_back(*tokenizer.bos());
  size_t n_tokens = prompt.tokens.size() + before.size() + behind.size() + gap.size();
  std::vector<Tokens> files;
  for (const FillFile& file : input.files) {
    files.push_back(file_tokens(tokenizer, file, has_frame ? ids.fim_separator : std::nullopt));
    n_tokens += files.back().size();
  }
  size_t first = 0;
  while (first < files.size() && n_tokens > n_most) n_tokens -= files[first++].size();
  prompt.n_left_out = static_cast<int>(first);

  if (first < files.size()) {
    append(prompt.tokens, before);
    for (; first < files.size(); ++first) append(prompt.tokens, files[first]);
    append(prompt.tokens, behind);
  }
  append(prompt.tokens, gap);
  return prompt;
}

}  // namespace sluice::text
