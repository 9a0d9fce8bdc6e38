// See tokenizer_data.h.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/tokenizer_data.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"

namespace sluice::model_file {
namespace {

constexpr gguf::IntRange kKinds{static_cast<int64_t>(text::TokenKind::normal),
                                static_cast<int64_t>(text::TokenKind::byte)};

std::string key(std::string_view name) { return cat("tokenizer.ggml.", name); }

class Reader {
 public:
  explicit Reader(const gguf::Metadata& metadata)
      : metadata_(metadata), n_tokens_(metadata.get_strings(key("tokens")).size()) {}

  // An id that must be right where it is given.
  std::optional<TokenId> id(std::string_view name) const {
    if (!metadata_.contains(key(name))) return std::nullopt;
    return static_cast<TokenId>(metadata_.get_int(key(name), {0, last()}));
  }

  // One of minor use: files give -1, or a number beyond the vocabulary, for "none".
  std::optional<TokenId> id_if_sane(std::string_view name) const {
    const int64_t value = metadata_.get_int_or(key(name), -1);
    if (value < 0 || value > last()) return std::nullopt;
    return static_cast<TokenId>(value);
  }

  // Older files have it under another name.
  std::optional<TokenId> id_if_sane(std::string_view name, std::string_view older) const {
    const std::optional<TokenId> id = id_if_sane(name);
    return id ? id : id_if_sane(older);
  }

  std::optional<bool> flag(std::string_view name) const {
    if (!metadata_.contains(key(name))) return std::nullopt;
    return metadata_.get_bool(key(name));
  }

  std::vector<text::TokenKind> kinds() const {
    std::vector<text::TokenKind> kinds;
    if (!metadata_.contains(key("token_type"))) return kinds;
    for (const int64_t kind : metadata_.get_ints(key("token_type"), kKinds)) {
      kinds.push_back(static_cast<text::TokenKind>(kind));
    }
    return kinds;
  }

  std::vector<float> scores() const {
    const gguf::Value* value = metadata_.find(key("scores"));
    if (value == nullptr) return {};
    if (!std::holds_alternative<std::vector<int32_t>>(*value)) {
      return metadata_.get_floats(key("scores"));
    }
    const auto& integers = std::get<std::vector<int32_t>>(*value);
    return {integers.begin(), integers.end()};
  }

  std::vector<TokenId> suppress_tokens() const {
    std::vector<TokenId> ids;
    if (!metadata_.contains(key("suppress_tokens"))) return ids;
    for (const int64_t id : metadata_.get_ints(key("suppress_tokens"))) {
      if (id >= 0 && id <= last()) ids.push_back(static_cast<TokenId>(id));
    }
    return ids;
  }

 private:
  int64_t last() const { return static_cast<int64_t>(n_tokens_) - 1; }

  const gguf::Metadata& metadata_;
  size_t n_tokens_;
};

text::SpecialIds read_ids(const Reader& in) {
  return {
      .bos = in.id("bos_token_id"),
      .eos = in.id("eos_token_id"),
      .eot = in.id("eot_token_id"),
      .eom = in.id("eom_token_id"),
      .unknown = in.id_if_sane("unknown_token_id"),
      .padding = in.id_if_sane("padding_token_id"),
      .fim_prefix = in.id_if_sane("fim_pre_token_id", "prefix_token_id"),
      .fim_suffix = in.id_if_sane("fim_suf_token_id", "suffix_token_id"),
      .fim_middle = in.id_if_sane("fim_mid_token_id", "middle_token_id"),
      .fim_pad = in.id_if_sane("fim_pad_token_id"),
      .fim_repo = in.id_if_sane("fim_rep_token_id"),
      .fim_separator = in.id_if_sane("fim_sep_token_id"),
  };
}

}  // namespace

text::TokenizerData read_tokenizer_data(const gguf::Metadata& metadata) {
  text::TokenizerData data;
  data.origin = metadata.origin();
  data.model = metadata.get_string(key("model"));
  data.pre = metadata.get_string_or(key("pre"), "");
  const Reader in(metadata);
  data.tokens = metadata.get_strings(key("tokens"));
  data.kinds = in.kinds();
  data.scores = in.scores();
  if (data.model == "gpt2") data.merges = metadata.get_strings(key("merges"));
  data.ids = read_ids(in);
  data.add_bos = in.flag("add_bos_token");
  data.add_eos = in.flag("add_eos_token");
  data.add_space_prefix = in.flag("add_space_prefix");
  data.suppress_tokens = in.suppress_tokens();
  return data;
}

}  // namespace sluice::model_file
