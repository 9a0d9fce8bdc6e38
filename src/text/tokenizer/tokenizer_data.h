// What a model file says about its tokenizer, as plain values. Knows no file format: model/ fills
// it from GGUF keys, tests by hand. What is missing stays missing; the defaults are the
// Tokenizer's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "text/tokenizer/byte_vocabulary.h"

namespace sluice::text {

// The tokens that mean something to the engine.
struct SpecialIds {
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
  std::optional<TokenId> eot;  // end of turn
  std::optional<TokenId> eom;  // end of message
  std::optional<TokenId> unknown;
  std::optional<TokenId> padding;
  std::optional<TokenId> fim_prefix;
  std::optional<TokenId> fim_suffix;
  std::optional<TokenId> fim_middle;
  std::optional<TokenId> fim_pad;
  std::optional<TokenId> fim_repo;
  std::optional<TokenId> fim_separator;
};

struct TokenizerData {
  std::string origin = "tokenizer";  // the file's path, for error texts
  std::string model;                 // "gpt2" (byte-level BPE) or "llama" (SentencePiece-style BPE)
  std::string pre;                   // the pre-tokenizer's name, for gpt2; empty: none was given
  std::vector<std::string> tokens;   // by id, as the file writes them
  std::vector<TokenKind> kinds;      // by id; empty: all normal
  std::vector<float> scores;         // by id; for llama
  std::vector<std::string> merges;   // "left right", best first; for gpt2
  SpecialIds ids;
  std::optional<bool> add_bos;
  std::optional<bool> add_eos;
  std::optional<bool> add_space_prefix;  // for llama
  std::vector<TokenId> suppress_tokens;  // never to be sampled
};

}  // namespace sluice::text
