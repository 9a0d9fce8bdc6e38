// See bpe.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/bpe.h"

#include <cstdint>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/utf8.h"

namespace sluice::text {
namespace {

// Numbers for words: tokens have theirs, others get the ones after.
class SymbolNumbers {
 public:
  explicit SymbolNumbers(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  Symbol operator[](const std::string& word) {
    if (const auto id = vocabulary_.find_plain(word)) return *id;
    const auto next = static_cast<Symbol>(vocabulary_.n_tokens() + std::ssize(others_));
    return others_.try_emplace(word, next).first->second;
  }

 private:
  const Vocabulary& vocabulary_;
  std::unordered_map<std::string, Symbol> others_;
};

std::unordered_map<std::string_view, char> make_bytes_by_character() {
  std::unordered_map<std::string_view, char> bytes;
  for (size_t b = 0; b < 256; ++b) bytes.emplace(byte_alphabet()[b], static_cast<char>(b));
  return bytes;
}

}  // namespace

Bpe::Bpe(const Vocabulary& vocabulary)
    : n_tokens_(vocabulary.n_tokens()), unknown_(vocabulary.data().ids.unknown) {
  SymbolNumbers symbols(vocabulary);
  for (size_t byte = 0; byte < 256; ++byte) byte_symbols_[byte] = symbols[byte_alphabet()[byte]];
  const std::vector<std::string>& merges = vocabulary.data().merges;
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string& merge = merges[rank];
    const size_t space = merge.find(' ', 1);  // one at the very front belongs to the left word
    if (space == std::string::npos || space + 1 == merge.size()) {
      throw Error(Errc::bad_file, cat(vocabulary.data().origin, ": merge ", rank, " of ",
                                      merges.size(), " is not two words with a space between"));
    }
    const std::string left = merge.substr(0, space);
    const std::string right = merge.substr(space + 1);
    merges_.add(symbols[left], symbols[right], {static_cast<int32_t>(rank), symbols[left + right]});
  }
}

void Bpe::emit_bytes(std::string_view bytes, std::vector<TokenId>& out) const {
  for (const char c : bytes) {
    const Symbol symbol = byte_symbols_[static_cast<uint8_t>(c)];
    if (symbol < n_tokens_) {
      out.push_back(symbol);
    } else if (unknown_) {
      out.push_back(*unknown_);
    }
  }
}

void Bpe::encode(std::string_view piece, MergeSequence& scratch, std::vector<TokenId>& out) const {
  scratch.clear();
  for (const char c : piece) scratch.add(byte_symbols_[static_cast<uint8_t>(c)], 1);
  scratch.merge(merges_);
  scratch.for_each([&](const MergeSequence::Part& part) {
    if (part.symbol < n_tokens_) {
      out.push_back(part.symbol);
    } else {
      emit_bytes(piece.substr(part.begin, part.end - part.begin), out);
    }
  });
}

void append_in_byte_alphabet(std::string_view bytes, std::string& out) {
  for (const char c : bytes) out += byte_alphabet()[static_cast<uint8_t>(c)];
}

std::string from_byte_alphabet(std::string_view text) {
  static const auto kBytes = make_bytes_by_character();
  std::string out;
  while (!text.empty()) {
    const std::string_view character = text.substr(0, next_utf8(text).n_bytes);
    if (const auto found = kBytes.find(character); found != kBytes.end()) {
      out += found->second;
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace sluice::text
