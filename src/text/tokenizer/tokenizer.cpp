// See tokenizer.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::text {
namespace {

// `with` for each `what`, which is not empty.
std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t found = std::min(text.find(what, at), text.size());
    out += text.substr(at, found - at);
    if (found < text.size()) out += with;
    at = found + what.size();
  }
  return out;
}

}  // namespace

Tokenizer::Tokenizer(TokenizerData data) : vocabulary_(std::move(data)) {
  fill_default_ids();
  roles_ = assign_roles(vocabulary_);
  make_model();
  make_pieces();
}

void Tokenizer::fill_default_ids() {
  if (vocabulary_.data().model != "llama") return;
  SpecialIds& ids = vocabulary_.ids();
  const auto fill = [&](std::optional<TokenId>& id, TokenId value) {
    if (!id && value < n_tokens()) id = value;
  };
  fill(ids.unknown, 0);
  fill(ids.bos, 1);
  fill(ids.eos, 2);
}

void Tokenizer::make_model() {
  const TokenizerData& data = vocabulary_.data();
  bool adds_bos = false;
  if (data.model == "gpt2") {
    PreTokenizer pre(data.pre, data.origin);
    if (data.pre.empty()) {
      warnings_.push_back(cat(data.origin,
                              ": the file names no pre-tokenizer; with the default one the tokens, "
                              "and so the answers, may be wrong: convert the model again"));
    }
    adds_bos = pre.adds_bos();
    model_.emplace<ByteLevel>(ByteLevel{std::move(pre), Bpe(vocabulary_)});
  } else if (data.model == "llama") {
    adds_bos = true;
    adds_space_prefix_ = data.add_space_prefix.value_or(true);
    model_.emplace<Spm>(vocabulary_);
  } else {
    throw Error(Errc::unsupported_model, cat(data.origin, ": a tokenizer of type '", data.model,
                                             "'; expected gpt2 or llama"));
  }
  adds_bos_ = data.add_bos.value_or(adds_bos) && bos().has_value();
  adds_eos_ = data.add_eos.value_or(false) && eos().has_value();
}

std::string Tokenizer::make_piece(TokenId id) const {
  const std::string& text = vocabulary_.text(id);
  const TokenKind kind = vocabulary_.kind(id);
  if (kind == TokenKind::byte) {
    const std::optional<uint8_t> byte = byte_of_token(text);
    return byte ? std::string(1, static_cast<char>(*byte)) : text;
  }
  if (kind != TokenKind::normal) return text;
  if (std::holds_alternative<Spm>(model_)) return replace_all(text, kSpmSpace, " ");
  return from_byte_alphabet(text);
}

void Tokenizer::make_pieces() {
  for (TokenId id = 0; id < n_tokens(); ++id) {
    pieces_.push_back(make_piece(id));
    const TokenKind kind = vocabulary_.kind(id);
    const bool is_user_defined = kind == TokenKind::user_defined;
    const bool is_special = kind == TokenKind::control || kind == TokenKind::unknown;
    const bool is_shown = std::ranges::binary_search(roles_.always_shown, id);
    is_hidden_.push_back((is_special || kind == TokenKind::unused) && !is_shown);
    if (is_user_defined) always_special_.add(vocabulary_.text(id), id);
    if (is_user_defined || is_special) all_special_.add(vocabulary_.text(id), id);
  }
}

size_t Tokenizer::checked(TokenId id) const {
  if (id >= 0 && id < n_tokens()) return static_cast<size_t>(id);
  throw Error(Errc::bad_request,
              cat("token id ", id, " is not in the vocabulary; expected 0 to ", n_tokens() - 1));
}

struct Tokenizer::Encoding {
  std::string_view mark;
  bool after_special = true;  // or at the beginning
  MergeSequence scratch;
  std::vector<TokenId> out;
};

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  if (text.size() > kMaxTextBytes) {
    throw Error(Errc::bad_request,
                cat("a text of ", text.size(), " bytes; expected at most ", kMaxTextBytes));
  }
  Encoding to{.mark = options.mark};
  if (options.add_special && adds_bos_) to.out.push_back(*bos());
  const SpecialTokens& special = options.parse_special ? all_special_ : always_special_;
  encode_fragments(special.cut(text), to);
  if (options.add_special && adds_eos_) to.out.push_back(*eos());
  return std::move(to.out);
}

void Tokenizer::encode_fragments(std::span<const Fragment> fragments, Encoding& to) const {
  for (const Fragment& fragment : fragments) {
    const bool is_plain = fragment.token == Fragment::kPlain;
    if (is_plain && !to.mark.empty() && fragment.text.find(to.mark) != std::string_view::npos) {
      const std::string text = replace_all(fragment.text, to.mark, "");
      const std::string_view mark = std::exchange(to.mark, {});
      encode_fragments(always_special_.cut(text), to);  // a mark may have stood in one of these
      to.mark = mark;
      continue;
    }
    if (is_plain) {
      encode_plain(fragment.text, to);
    } else {
      to.out.push_back(fragment.token);
    }
    to.after_special = !is_plain;
  }
}

void Tokenizer::encode_plain(std::string_view text, Encoding& to) const {
  if (const auto* byte_level = std::get_if<ByteLevel>(&model_)) {
    return encode_pieces(*byte_level, text, to);
  }
  const bool has_prefix = adds_space_prefix_ && to.after_special;
  std::get<Spm>(model_).encode(
      cat(has_prefix ? kSpmSpace : std::string_view(), replace_all(text, " ", kSpmSpace)),
      to.scratch, to.out);
}

void Tokenizer::encode_pieces(const ByteLevel& model, std::string_view text, Encoding& to) const {
  std::vector<std::string_view> pieces;
  model.pre.split(text, pieces);
  std::string word;
  for (const std::string_view piece : pieces) {
    if (model.pre.ignores_merges()) {
      word.clear();
      append_in_byte_alphabet(piece, word);
      if (const auto whole = vocabulary_.find_plain(word)) {
        to.out.push_back(*whole);
        continue;
      }
    }
    model.bpe.encode(piece, to.scratch, to.out);
  }
}

std::string Tokenizer::piece(TokenId id, bool render_special) const {
  const size_t i = checked(id);
  return is_hidden_[i] && !render_special ? std::string() : pieces_[i];
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool render_special) const {
  std::string out;
  bool may_have_prefix = adds_space_prefix_;
  for (const TokenId id : ids) {
    std::string text = piece(id, render_special);
    const bool is_bos = bos() == id;
    if (may_have_prefix && !is_bos && text.starts_with(' ')) text.erase(0, 1);
    if (!is_bos) may_have_prefix = false;
    out += text;
  }
  return out;
}

bool Tokenizer::is_end_of_generation(TokenId id) const {
  checked(id);
  return std::ranges::binary_search(roles_.end_of_generation, id);
}

const std::string& Tokenizer::token_text(TokenId id) const {
  return vocabulary_.data().tokens[checked(id)];
}

TokenKind Tokenizer::token_kind(TokenId id) const { return vocabulary_.data().kinds[checked(id)]; }

}  // namespace sluice::text
