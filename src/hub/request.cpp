// See request.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/request.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace sluice::hub {
namespace {

constexpr long kConnectSeconds = 20;
constexpr long kLeastBytesPerSecond = 1024;
constexpr long kReceiveBytes = 512 * 1024;
constexpr long kMaxRedirects = 8;

}  // namespace

Request::Request(Connection connection)
    : connection_(std::move(connection)), handle_(curl().easy_init()) {
  if (!handle_) throw Error(Errc::out_of_memory, "libcurl gives no handle: out of memory");
  if (connection_.token.empty()) return;
  const std::string header = cat("Authorization: Bearer ", connection_.token);
  headers_.reset(curl().slist_append(nullptr, header.c_str()));
}

void Request::prepare(const std::string& url, std::optional<Range> range, OnBytes on_bytes) {
  url_ = url;
  head_ = {};
  on_bytes_ = std::move(on_bytes);
  thrown_ = nullptr;
  CURL* const easy = handle_.get();
  const auto set = [&](CURLoption option, auto value) { curl().easy_setopt(easy, option, value); };
  curl().easy_reset(easy);
  set(CURLOPT_URL, url_.c_str());
  set(CURLOPT_USERAGENT, "sluice");
  // One stream on a connection: several requests are meant to be several connections.
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kMaxRedirects);
  const bool is_secret = url_.starts_with("https://");  // and stays so behind a redirect
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, is_secret ? "https" : "http,https");
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(std::ceil(connection_.stall_seconds)));
  set(CURLOPT_BUFFERSIZE, kReceiveBytes);
  if (headers_) set(CURLOPT_HTTPHEADER, headers_.get());
  if (range) set(CURLOPT_RANGE, cat(range->begin, "-", range->end - 1).c_str());
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, this);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, on_progress);
  set(CURLOPT_XFERINFODATA, this);
}

size_t Request::on_header(char* data, size_t size, size_t n, void* self) {
  try {
    static_cast<Request*>(self)->head_.add_line({data, size * n});
    return size * n;
  } catch (...) {
    static_cast<Request*>(self)->thrown_ = std::current_exception();
    return 0;
  }
}

size_t Request::on_body(char* data, size_t size, size_t n, void* self) {
  Request& request = *static_cast<Request*>(self);
  try {
    const auto bytes = std::as_bytes(std::span(data, size * n));
    return request.on_bytes_(request.head_, bytes) ? size * n : 0;
  } catch (...) {
    request.thrown_ = std::current_exception();
    return 0;
  }
}

// Not for the progress: libcurl asks here whether to end, also while nothing comes.
int Request::on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  try {
    return static_cast<Request*>(self)->connection_.stops() ? 1 : 0;
  } catch (...) {
    static_cast<Request*>(self)->thrown_ = std::current_exception();
    return 1;
  }
}

double Request::retry_after() const {
  curl_off_t seconds = 0;
  curl().easy_getinfo(handle_.get(), CURLINFO_RETRY_AFTER, &seconds);
  return static_cast<double>(seconds);
}

void Request::rethrow() {
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

std::string Request::describe(CURLcode code) const {
  if (code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING) {
    return "the connection was lost";
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return cat("nothing came for ", connection_.stall_seconds, " s");
  }
  return curl().easy_strerror(code);
}

bool is_unreachable(CURLcode code) {
  return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
         code == CURLE_COULDNT_RESOLVE_PROXY;
}

}  // namespace sluice::hub
