// See roles.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/roles.h"

#include <set>

namespace sluice::text {
namespace {

using Role = std::optional<TokenId> SpecialIds::*;

struct TextOfRole {
  Role role;
  std::string_view text;
};

constexpr std::string_view kDeepseekEnd = "<｜end▁of▁sentence｜>";

// The first text of a role that is in the vocabulary counts.
constexpr TextOfRole kTextsOfRoles[] = {
    {&SpecialIds::eot, "<|eot_id|>"},
    {&SpecialIds::eot, "<|im_end|>"},
    {&SpecialIds::eot, "<|end|>"},
    {&SpecialIds::eot, "<end_of_turn>"},
    {&SpecialIds::eot, "<|endoftext|>"},
    {&SpecialIds::eot, "<|end_of_text|>"},
    {&SpecialIds::eot, "<EOT>"},
    {&SpecialIds::eot, "_<EOT>"},
    {&SpecialIds::eot, "[EOT]"},
    {&SpecialIds::eot, kDeepseekEnd},
    {&SpecialIds::eot, "<end_of_utterance>"},
    {&SpecialIds::eom, "<|eom_id|>"},
    {&SpecialIds::fim_prefix, "<|fim_prefix|>"},
    {&SpecialIds::fim_prefix, "<fim-prefix>"},
    {&SpecialIds::fim_prefix, "<fim_prefix>"},
    {&SpecialIds::fim_prefix, "<｜fim▁begin｜>"},
    {&SpecialIds::fim_prefix, "<PRE>"},
    {&SpecialIds::fim_prefix, "▁<PRE>"},
    {&SpecialIds::fim_prefix, "<|code_prefix|>"},
    {&SpecialIds::fim_prefix, "<|prefix|>"},
    {&SpecialIds::fim_suffix, "<|fim_suffix|>"},
    {&SpecialIds::fim_suffix, "<fim-suffix>"},
    {&SpecialIds::fim_suffix, "<fim_suffix>"},
    {&SpecialIds::fim_suffix, "<｜fim▁hole｜>"},
    {&SpecialIds::fim_suffix, "<SUF>"},
    {&SpecialIds::fim_suffix, "▁<SUF>"},
    {&SpecialIds::fim_suffix, "<|code_suffix|>"},
    {&SpecialIds::fim_suffix, "<|suffix|>"},
    {&SpecialIds::fim_middle, "<|fim_middle|>"},
    {&SpecialIds::fim_middle, "<fim-middle>"},
    {&SpecialIds::fim_middle, "<fim_middle>"},
    {&SpecialIds::fim_middle, "<｜fim▁end｜>"},
    {&SpecialIds::fim_middle, "<MID>"},
    {&SpecialIds::fim_middle, "▁<MID>"},
    {&SpecialIds::fim_middle, "<|code_middle|>"},
    {&SpecialIds::fim_middle, "<|middle|>"},
    {&SpecialIds::fim_pad, "<|fim_pad|>"},
    {&SpecialIds::fim_pad, "<fim-pad>"},
    {&SpecialIds::fim_pad, "<fim_pad>"},
    {&SpecialIds::fim_pad, "<PAD>"},
    {&SpecialIds::fim_pad, "[PAD]"},
    {&SpecialIds::fim_repo, "<|fim_repo|>"},
    {&SpecialIds::fim_repo, "<|repo_name|>"},
    {&SpecialIds::fim_repo, "<fim-repo>"},
    {&SpecialIds::fim_repo, "<REPO>"},
    {&SpecialIds::fim_repo, "<reponame>"},
    {&SpecialIds::fim_separator, "<|file_sep|>"},
};

constexpr std::string_view kEndTexts[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<eos>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<turn|>",
    kDeepseekEnd,
    "[e~[",
};

constexpr std::string_view kHarmonyFrame[] = {"<|channel|>", "<|message|>", "<|start|>",
                                              "<|constrain|>"};

void find_missing_ids(Vocabulary& vocabulary) {
  for (const TextOfRole& known : kTextsOfRoles) {
    std::optional<TokenId>& id = vocabulary.ids().*known.role;
    if (id) continue;
    id = vocabulary.find(known.text);
    if (id) vocabulary.set_kind(*id, TokenKind::control);
  }
}

// In harmony `<|end|>` ends a message within an answer; what ends the answer is `<|return|>` or a
// call. Solar Open has the same frame with other names.
std::optional<TokenId> end_of_inner_message(const Vocabulary& vocabulary) {
  const auto has = [&](std::string_view text) { return vocabulary.find(text).has_value(); };
  const bool has_call = has("<|call|>") || has("<|calls|>");
  if (has_call && (has("<|return|>") || has("<|flush|>"))) return vocabulary.find("<|end|>");
  return std::nullopt;
}

}  // namespace

Roles assign_roles(Vocabulary& vocabulary) {
  find_missing_ids(vocabulary);
  std::set<TokenId> ends;
  for (const std::string_view text : kEndTexts) {
    const std::optional<TokenId> id = vocabulary.find(text);
    if (!id) continue;
    ends.insert(*id);
    vocabulary.set_kind(*id, TokenKind::control);
  }
  const SpecialIds& ids = vocabulary.data().ids;
  for (const auto& id : {ids.eos, ids.eot, ids.eom, ids.fim_pad, ids.fim_repo, ids.fim_separator}) {
    if (id) ends.insert(*id);
  }

  std::set<TokenId> shown;
  for (const std::string_view text : kHarmonyFrame) {
    if (const auto id = vocabulary.find(text)) shown.insert(*id);
  }
  if (const auto id = end_of_inner_message(vocabulary)) {
    ends.erase(*id);
    shown.insert(*id);
    if (vocabulary.ids().eot == *id) vocabulary.ids().eot.reset();
  }
  return {{ends.begin(), ends.end()}, {shown.begin(), shown.end()}};
}

}  // namespace sluice::text
