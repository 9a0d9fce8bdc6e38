// The text of HTTP answers: heads and chunks. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "server/http/exchange.h"

namespace sluice::server {

// How an answer's end is told: by its length, by an empty chunk, or by closing (HTTP/1.0).
enum class Framing { length, chunks, close };

struct Head {
  Framing framing = Framing::length;
  bool keep_alive = true;
  size_t n_bytes = 0;  // of the body, with Framing::length
};

// The status line and all header lines, with the empty line behind them. Line ends in values become
// spaces.
std::string head_text(const HttpResponse& response, const Head& head);

// One chunk of a body; nothing for no bytes, since an empty chunk would end it.
std::string chunk_text(std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

std::string_view reason_phrase(int status);

// "/a?b" -> "/a" and "b"
std::pair<std::string, std::string> split_target(std::string_view target);

}  // namespace sluice::server
