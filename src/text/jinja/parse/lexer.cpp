// See lexer.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/parse/lexer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/units.h"
#include "text/jinja/parse/literal.h"
#include "text/jinja/values/unicode.h"
#include "text/utf8.h"

namespace sluice::text::jinja {
namespace {

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool continues_name(char c) { return starts_name(c) || is_digit(c); }

class Lexer {
 public:
  explicit Lexer(Source& source) : source_(source), text_(source.text) {}

  std::vector<Token> run() {
    while (pos_ < text_.size()) lex_text_and_tag();
    add(Token::Kind::end, pos_, 0);
    return std::move(tokens_);
  }

 private:
  enum class Tag { output, block, comment };

  void lex_text_and_tag();
  void lex_comment(size_t begin);
  bool lex_raw();
  void lex_inside(Tag tag, size_t begin);
  std::optional<size_t> find_tag(size_t from) const;
  std::string_view trimmed_text(size_t end, Tag tag, char sign) const;
  bool lex_end(Tag tag);
  void finish_tag(char sign, bool trims_newline);
  void lex_number();
  void lex_word();
  void lex_string();
  void lex_symbol();

  char peek(size_t ahead = 0) const {
    return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0';
  }
  bool next_is(std::string_view expected) const {
    return text_.substr(pos_, expected.size()) == expected;
  }
  void skip_space();
  char take_sign();
  Location location(size_t offset);
  void add(Token::Kind kind, size_t offset, size_t n_bytes) {
    tokens_.push_back({kind, location(offset), text_.substr(offset, n_bytes)});
  }
  [[noreturn]] void fail(size_t offset, std::string_view what) {
    fail_at(Errc::bad_file, location(offset), what);
  }

  Source& source_;
  const std::string_view text_;
  size_t pos_ = 0;
  bool line_starts_ = true;  // what was read last ended a line
  std::vector<Token> tokens_;
  std::vector<std::pair<char, size_t>> open_;  // brackets in the tag: what closes each, and where

  // The place last asked for, so that asking in order costs no more than reading.
  size_t known_offset_ = 0;
  size_t known_line_start_ = 0;
  int known_line_ = 1;
};

Location Lexer::location(size_t offset) {
  if (offset < known_offset_) {
    known_offset_ = known_line_start_ = 0;
    known_line_ = 1;
  }
  for (; known_offset_ < offset; ++known_offset_) {
    if (text_[known_offset_] == '\n') {
      ++known_line_;
      known_line_start_ = known_offset_ + 1;
    }
  }
  return {known_line_, static_cast<int>(offset - known_line_start_) + 1};
}

void Lexer::skip_space() { pos_ = text_.size() - strip_left(text_.substr(pos_)).size(); }

char Lexer::take_sign() {
  const char sign = peek();
  if (sign != '-' && sign != '+') return '\0';
  ++pos_;
  return sign;
}

std::optional<size_t> Lexer::find_tag(size_t from) const {
  for (size_t i = text_.find('{', from); i != std::string_view::npos; i = text_.find('{', i + 1)) {
    if (i + 1 == text_.size()) break;
    const char c = text_[i + 1];
    if (c == '{' || c == '%' || c == '#') return i;
  }
  return std::nullopt;
}

// The text from pos_ to a tag, less what the tag's sign and lstrip_blocks take from its end.
std::string_view Lexer::trimmed_text(size_t end, Tag tag, char sign) const {
  const std::string_view text = text_.substr(pos_, end - pos_);
  if (sign == '-') return strip_right(text);
  if (sign == '+' || tag == Tag::output) return text;
  const size_t newline = text.rfind('\n');
  if (newline == std::string_view::npos && !line_starts_) return text;
  const size_t line = newline == std::string_view::npos ? 0 : newline + 1;
  return strip_left(text.substr(line)).empty() ? text.substr(0, line) : text;
}

void Lexer::lex_text_and_tag() {
  const std::optional<size_t> begin = find_tag(pos_);
  if (!begin) {
    add(Token::Kind::text, pos_, text_.size() - pos_);
    pos_ = text_.size();
    return;
  }
  const char c = text_[*begin + 1];
  const Tag tag = c == '{' ? Tag::output : c == '%' ? Tag::block : Tag::comment;
  const char next = *begin + 2 < text_.size() ? text_[*begin + 2] : '\0';
  const char sign = next == '-' || next == '+' ? next : '\0';
  const std::string_view text = trimmed_text(*begin, tag, sign);
  if (!text.empty()) add(Token::Kind::text, pos_, text.size());
  pos_ = *begin + (sign == '\0' ? 2 : 3);
  if (tag == Tag::comment) {
    lex_comment(*begin);
  } else if (tag == Tag::output || !lex_raw()) {
    lex_inside(tag, *begin);
  }
}

// Behind a tag's closing characters: what its sign and trim_blocks take from the text that follows.
void Lexer::finish_tag(char sign, bool trims_newline) {
  const size_t before = pos_;
  if (sign == '-') {
    skip_space();
  } else if (sign != '+' && trims_newline && peek() == '\n') {
    ++pos_;
  }
  line_starts_ = pos_ > before && text_[pos_ - 1] == '\n';
}

void Lexer::lex_comment(size_t begin) {
  const size_t end = text_.find("#}", pos_);
  if (end == std::string_view::npos) fail(begin, "comment: '#}' is missing");
  const char last = end > pos_ ? text_[end - 1] : '\0';
  pos_ = end + 2;
  finish_tag(last, true);
}

// {% raw %}...{% endraw %}, if that is what stands here, behind "{%".
bool Lexer::lex_raw() {
  const size_t begin = pos_;
  const auto take_word = [&](std::string_view word) {
    skip_space();
    if (!next_is(word)) return false;
    pos_ += word.size();
    skip_space();
    return true;
  };
  const auto take_end = [&](char& sign) {
    sign = take_sign();
    if (!next_is("%}")) return false;
    pos_ += 2;
    return true;
  };
  char sign = '\0';
  if (!take_word("raw") || !take_end(sign) || sign == '+') {
    pos_ = begin;
    return false;
  }
  finish_tag(sign, false);
  for (size_t tag = text_.find("{%", pos_); tag != std::string_view::npos;
       tag = text_.find("{%", tag + 1)) {
    const size_t start = std::exchange(pos_, tag + 2);
    const char left = take_sign();
    char right = '\0';
    const bool ends = take_word("endraw") && take_end(right);
    const size_t behind = std::exchange(pos_, start);
    if (!ends) continue;
    const std::string_view text = trimmed_text(tag, Tag::block, left);
    if (!text.empty()) add(Token::Kind::text, pos_, text.size());
    pos_ = behind;
    finish_tag(right, true);
    return true;
  }
  fail(begin, "block 'raw': '{% endraw %}' is missing");
}

void Lexer::lex_inside(Tag tag, size_t begin) {
  const bool output = tag == Tag::output;
  add(output ? Token::Kind::output_begin : Token::Kind::block_begin, begin, 2);
  open_.clear();
  for (;;) {
    skip_space();
    if (pos_ == text_.size()) {
      fail(begin, output ? "output: '}}' is missing" : "block: '%}' is missing");
    }
    if (open_.empty() && lex_end(tag)) return;
    const char c = peek();
    if (is_digit(c)) {
      lex_number();
    } else if (starts_name(c)) {
      lex_word();
    } else if (c == '\'' || c == '"') {
      lex_string();
    } else {
      lex_symbol();
    }
  }
}

bool Lexer::lex_end(Tag tag) {
  const std::string_view closing = tag == Tag::output ? "}}" : "%}";
  const size_t begin = pos_;
  char sign = '\0';
  if (peek() == '-' || (peek() == '+' && tag == Tag::block)) sign = take_sign();
  if (!next_is(closing)) {
    pos_ = begin;
    return false;
  }
  add(tag == Tag::output ? Token::Kind::output_end : Token::Kind::block_end, begin,
      pos_ + 2 - begin);
  pos_ += 2;
  finish_tag(sign, tag == Tag::block);
  return true;
}

void Lexer::lex_number() {
  std::string_view digits = text_.substr(pos_);
  if (text_[pos_ - 1] == '.') {  // a.0.1 has two indices and no float
    const auto* end = std::ranges::find_if_not(digits, is_digit);
    digits = digits.substr(0, static_cast<size_t>(end - digits.begin()));
  }
  const Token token = read_number(digits, location(pos_));
  pos_ += token.text.size();
  tokens_.push_back(token);
}

void Lexer::lex_word() {
  const size_t begin = pos_;
  while (pos_ < text_.size() && continues_name(text_[pos_])) {
    // A space from beyond ASCII ends a word, too.
    size_t next = pos_;
    if (is_space(next_character(text_, next))) break;
    pos_ = next;
  }
  add(Token::Kind::name, begin, pos_ - begin);
}

void Lexer::lex_string() {
  const size_t begin = pos_;
  const char quote = text_[pos_++];
  bool escaped = false;
  while (pos_ < text_.size() && text_[pos_] != quote) {
    if (text_[pos_] == '\\') {
      escaped = true;
      ++pos_;
    }
    ++pos_;
  }
  if (pos_ >= text_.size()) fail(begin, "string literal: the closing quote is missing");
  std::string_view value = text_.substr(begin + 1, pos_ - begin - 1);
  if (escaped) value = source_.literals.emplace_back(decode_string(value, location(begin)));
  tokens_.push_back({Token::Kind::string, location(begin), value});
  ++pos_;
}

void Lexer::lex_symbol() {
  // Longest first.
  constexpr std::array<std::string_view, 26> kSymbols = {
      "**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[",
      "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
  const auto* found = std::ranges::find_if(kSymbols, [&](auto symbol) { return next_is(symbol); });
  if (found == kSymbols.end()) {
    const size_t n = n_character_bytes(peek());
    fail(pos_, cat("the character ", quoted(text_.substr(pos_, n)), " has no meaning in a tag"));
  }
  const char c = (*found)[0];
  if (c == '(' || c == '[' || c == '{') {
    open_.emplace_back(c == '(' ? ')' : c == '[' ? ']' : '}', pos_);
  } else if (c == ')' || c == ']' || c == '}') {
    if (open_.empty() || open_.back().first != c) {
      fail(pos_, open_.empty() ? cat("'", c, "' closes nothing")
                               : cat("found '", c, "', expected '", open_.back().first, "'"));
    }
    open_.pop_back();
  }
  add(Token::Kind::symbol, pos_, found->size());
  pos_ += found->size();
}

}  // namespace

void set_source(Source& source, std::string_view text, const Limits& limits) {
  if (text.size() > limits.source_bytes) {
    fail_at(Errc::bad_file, {},
            cat("the template has ", format_bytes(text.size()), ", the limit is ",
                format_bytes(limits.source_bytes)));
  }
  if (const size_t valid = valid_utf8_length(text); valid < text.size()) {
    fail_at(Errc::bad_file, {}, cat("the template is not valid UTF-8 at byte ", valid));
  }
  source.text.clear();
  source.text.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
      source.text += '\n';
    } else {
      source.text += text[i];
    }
  }
  if (source.text.ends_with('\n')) source.text.pop_back();
}

std::vector<Token> tokenize(Source& source) { return Lexer(source).run(); }

}  // namespace sluice::text::jinja
