// One HTTP request for an address, or for a part of what is there: an easy handle of libcurl, its
// settings, the answer's head, and the bytes as they come. Knows no file and no repetition.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "hub/answer_head.h"
#include "hub/connection.h"
#include "hub/curl_library.h"

namespace sluice::hub {

class Request {
 public:
  // Sees the bytes, and the head before the first of them. False ends the transfer.
  using OnBytes = std::function<bool(const AnswerHead& head, std::span<const std::byte> bytes)>;

  explicit Request(Connection connection);
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Sets the next transfer up. `range`: all where there is none.
  void prepare(const std::string& url, std::optional<Range> range, OnBytes on_bytes);
  CURL* handle() const { return handle_.get(); }

  // After the transfer, which ended with this code. An exception of on_bytes is thrown on.
  const AnswerHead& head() const { return head_; }
  double retry_after() const;  // seconds that the server asked for; 0: none
  void rethrow();
  std::string describe(CURLcode code) const;  // what went wrong, in words

 private:
  static size_t on_header(char* data, size_t size, size_t n, void* self);
  static size_t on_body(char* data, size_t size, size_t n, void* self);
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t);

  Connection connection_;
  EasyHandle handle_;
  HeaderList headers_;
  AnswerHead head_;
  OnBytes on_bytes_;
  std::exception_ptr thrown_;
  std::string url_;
};

// Whether nobody was there to answer: no such host, no way to it, nothing that listens.
bool is_unreachable(CURLcode code);

}  // namespace sluice::hub
