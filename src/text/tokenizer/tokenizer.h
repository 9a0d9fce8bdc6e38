// Text to token ids and back, as the model's family does it. The tokenizer of a model is one
// object, built once from what the file says (tokenizer_data.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/tokenizer/bpe.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/roles.h"
#include "text/tokenizer/special_tokens.h"
#include "text/tokenizer/spm.h"
#include "text/tokenizer/tokenizer_data.h"
#include "text/tokenizer/vocabulary.h"

namespace sluice::text {

struct EncodeOptions {
  // BOS in front and EOS behind, where the model wants them.
  bool add_special = true;
  // Texts of control tokens in the input become these tokens. Not for what a user typed: only the
  // text of a chat template may contain them. (User-defined tokens are found in any case.)
  bool parse_special = false;
  // Taken out of the text once control tokens have been found in it, so that one with this inside
  // is not found: it stays text (control_marks.h). Empty: nothing is taken out.
  std::string_view mark = {};
};

// Move-only. All const members may be called from several threads.
//
// Any bytes can be encoded, UTF-8 or not. For gpt2, decode(encode(x)) == x, given a vocabulary with
// all 256 bytes. For llama the same holds but for U+2581, which comes back as a space, and for
// texts with special tokens in them: a space is put in front of the text and of what follows a
// special token (add_space_prefix), and only the one in front is taken away again.
class Tokenizer {
 public:
  // Throws Errc::unsupported_model for a model type or a pre-tokenizer that is not known, and
  // Errc::bad_file for data that makes no sense.
  explicit Tokenizer(TokenizerData data);

  // Throws Errc::bad_request for more than kMaxTextBytes.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;
  static constexpr size_t kMaxTextBytes = size_t{1} << 28;

  // The bytes that a token stands for; part of a character, perhaps (Utf8Stream). Control, unknown
  // and unused tokens are empty unless render_special. Throws Errc::bad_request for an id that is
  // not in the vocabulary, and so do the others that take one.
  std::string piece(TokenId id, bool render_special) const;

  // All pieces. For llama without the space that encode() put in front.
  std::string decode(std::span<const TokenId> ids, bool render_special = false) const;

  bool is_end_of_generation(TokenId id) const;
  std::span<const TokenId> end_of_generation() const { return roles_.end_of_generation; }

  // With the defaults filled in.
  const SpecialIds& ids() const { return vocabulary_.data().ids; }
  std::optional<TokenId> bos() const { return ids().bos; }
  std::optional<TokenId> eos() const { return ids().eos; }
  bool adds_bos() const { return adds_bos_; }
  bool adds_eos() const { return adds_eos_; }
  std::span<const TokenId> suppress_tokens() const { return vocabulary_.data().suppress_tokens; }

  int n_tokens() const { return vocabulary_.n_tokens(); }
  // As the file writes it: byte alphabet for gpt2, U+2581 for spaces for llama.
  const std::string& token_text(TokenId id) const;
  TokenKind token_kind(TokenId id) const;
  // By that text; of several tokens with one text the last.
  std::optional<TokenId> find(std::string_view text) const { return vocabulary_.find(text); }

  // What a person should know about this tokenizer; often nothing.
  std::span<const std::string> warnings() const { return warnings_; }

 private:
  struct ByteLevel {
    PreTokenizer pre;
    Bpe bpe;
  };

  size_t checked(TokenId id) const;
  void fill_default_ids();
  void make_model();
  void make_pieces();
  std::string make_piece(TokenId id) const;
  struct Encoding;  // one call of encode()
  void encode_fragments(std::span<const Fragment> fragments, Encoding& to) const;
  void encode_plain(std::string_view text, Encoding& to) const;
  void encode_pieces(const ByteLevel& model, std::string_view text, Encoding& to) const;

  Vocabulary vocabulary_;
  Roles roles_;
  std::variant<std::monostate, ByteLevel, Spm> model_;
  SpecialTokens always_special_;  // user-defined
  SpecialTokens all_special_;
  std::vector<std::string> pieces_;  // by id
  std::vector<bool> is_hidden_;      // by id: empty unless render_special
  bool adds_bos_ = false;
  bool adds_eos_ = false;
  bool adds_space_prefix_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace sluice::text
