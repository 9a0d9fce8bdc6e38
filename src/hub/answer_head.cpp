// See answer_head.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/answer_head.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"

namespace sluice::hub {
namespace {

using Advice = Judgement::Advice;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool same_word(std::string_view a, std::string_view b) {
  const auto small = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::ranges::equal(a, b, {}, small, small);
}

// "\"abc\"" -> "abc"; a weak tag says nothing about bytes.
std::string tag_of(std::string_view value) {
  if (value.starts_with("W/")) return "";
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
    value = value.substr(1, value.size() - 2);
  }
  return std::string(value);
}

// "<address>; rel="next"" -> address
std::string next_of(std::string_view value) {
  if (value.find("rel=\"next\"") == std::string_view::npos) return "";
  const size_t begin = value.find('<'), end = value.find('>');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return "";
  return std::string(value.substr(begin + 1, end - begin - 1));
}

bool read_number(std::string_view& text, uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

bool take_char(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

void AnswerHead::add_line(std::string_view line) {
  if (line.starts_with("HTTP/")) {
    const std::string linked = linked_etag;
    *this = {};
    linked_etag = linked;
    std::string_view rest = line.substr(std::min(line.find(' ') + 1, line.size()));
    uint64_t number = 0;
    if (read_number(rest, number) && number < 1000) status = static_cast<int>(number);
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = trimmed(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (same_word(name, "content-range")) content_range = value;
  if (same_word(name, "etag")) etag = tag_of(value);
  if (same_word(name, "x-linked-etag")) linked_etag = tag_of(value);
  if (same_word(name, "link")) next_page = next_of(value);
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  ContentRange out;
  uint64_t last = 0;
  if (!read_number(text, out.range.begin) || !take_char(text, '-') || !read_number(text, last) ||
      !take_char(text, '/') || last < out.range.begin || last == UINT64_MAX) {
    return std::nullopt;
  }
  out.range.end = last + 1;
  if (text == "*") return out;
  if (!read_number(text, out.n_bytes) || !text.empty()) return std::nullopt;
  return out;
}

Judgement judge_status(int status) {
  if (status >= 200 && status < 300) return {};
  if (status == 401 || status == 403) {
    return {Advice::give_up,
            cat("status ", status,
                ": there is no such repository, or it asks who you are; check the name, accept its "
                "terms on its page where it has some, and set HF_TOKEN to a token of yours")};
  }
  if (status == 404 || status == 410) {
    return {Advice::give_up, cat("status ", status, ": there is no such file or repository")};
  }
  if (status == 408 || status == 425 || status == 429 || status >= 500) {
    return {Advice::again, cat("status ", status, status == 429 ? " (too many requests)" : "")};
  }
  return {Advice::give_up, cat("status ", status, "; expected 200 or 206")};
}

Judgement judge(const AnswerHead& head, const WantedPart& wanted) {
  if (!head.linked_etag.empty() && !wanted.sha256.empty() && head.linked_etag != wanted.sha256) {
    return {Advice::give_up, cat("the file has changed: its SHA-256 is now ", head.linked_etag,
                                 "; expected ", wanted.sha256, ": run it again")};
  }
  if (head.status == 416) {
    return {Advice::give_up,
            cat("the server has no bytes ", wanted.range.begin, " to ", wanted.range.end - 1,
                " of this file; expected ", wanted.n_bytes, " bytes in all: run it again")};
  }
  if (const Judgement by_status = judge_status(head.status); by_status.advice != Advice::take) {
    return by_status;
  }
  const bool is_whole = wanted.range == Range{0, wanted.n_bytes};
  if (head.status != 206) {
    if (is_whole) return {};
    return {Advice::again, cat("status ", head.status, " for a part of the file; expected 206: ",
                               "the server sends whole files alone")};
  }
  const auto sent = parse_content_range(head.content_range);
  if (!sent || sent->range != wanted.range ||
      (sent->n_bytes != 0 && sent->n_bytes != wanted.n_bytes)) {
    return {Advice::again,
            cat("the server sent '", head.content_range.substr(0, 60), "'; expected bytes ",
                wanted.range.begin, "-", wanted.range.end - 1, "/", wanted.n_bytes)};
  }
  if (!wanted.etag.empty() && !head.etag.empty() && head.etag != wanted.etag) {
    return {Advice::give_up, cat("the file has changed while it was fetched: its ETag was ",
                                 wanted.etag.substr(0, 80), " and is now ", head.etag.substr(0, 80),
                                 ": run it again")};
  }
  return {};
}

double wait_seconds(int n_failures, double retry_after) {
  constexpr double kFirst = 0.25, kLongest = 30.0;
  const double doubled = kFirst * std::exp2(std::min(n_failures - 1, 20));
  return std::max(std::min(doubled, kLongest), retry_after);
}

}  // namespace sluice::hub
