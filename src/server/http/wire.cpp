// See wire.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/http/wire.h"

#include <array>
#include <charconv>

namespace sluice::server {
namespace {

void add_line(std::string& text, std::string_view name, std::string_view value) {
  text += name;
  text += ": ";
  for (const char c : value) text += c == '\r' || c == '\n' ? ' ' : c;
  text += "\r\n";
}

}  // namespace

std::string_view reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Status";
  }
}

std::string head_text(const HttpResponse& response, const Head& head) {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " ";
  text += reason_phrase(response.status);
  text += "\r\n";
  if (!response.content_type.empty()) add_line(text, "Content-Type", response.content_type);
  for (const auto& [name, value] : response.headers) add_line(text, name, value);
  if (head.framing == Framing::length) {
    add_line(text, "Content-Length", std::to_string(head.n_bytes));
  } else if (head.framing == Framing::chunks) {
    add_line(text, "Transfer-Encoding", "chunked");
  }
  add_line(text, "Connection", head.keep_alive ? "keep-alive" : "close");
  return text + "\r\n";
}

std::string chunk_text(std::string_view bytes) {
  if (bytes.empty()) return "";
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.begin(), digits.end(), bytes.size(), 16).ptr;
  std::string text(digits.begin(), end);
  text += "\r\n";
  text += bytes;
  return text + "\r\n";
}

std::pair<std::string, std::string> split_target(std::string_view target) {
  const size_t mark = target.find('?');
  if (mark == std::string_view::npos) return {std::string(target), ""};
  return {std::string(target.substr(0, mark)), std::string(target.substr(mark + 1))};
}

}  // namespace sluice::server
