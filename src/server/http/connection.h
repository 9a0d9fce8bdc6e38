// One connection: reads a request, waits for its answer and writes it, and reads the next. Private
// to http/: the only header with Boost in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>  // before Asio of Boost 1.74, which forgets it
//
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "server/http/http_server.h"

namespace sluice::server {

// What all connections of a server share; outlives them.
struct ConnectionContext {
  const HttpOptions& options;
  std::function<bool()> draining;
};

// All private members run on the strand of its socket.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, const ConnectionContext& context,
             std::function<void()> on_closed);
  ~Connection();

  void start();
  // Ends it once the running answer is complete; at once where there is none.
  void drain();
  void abort();  // at once

 private:
  class Answer;  // the Exchange of one request
  friend class Answer;

  void run(void (Connection::*step)());
  void read_head();
  void on_head(boost::beast::error_code error);
  void read_body();
  void on_body(boost::beast::error_code error);
  void fail(boost::beast::error_code error);
  void hand_over();
  void watch_for_end();
  void refuse(int status, const std::string& message);

  void begin_answer(uint64_t id, HttpResponse response, bool is_whole);
  void append(uint64_t id, std::string_view bytes);
  void end_answer(uint64_t id);
  void forsake(uint64_t id);  // nobody will answer
  void flush();
  void on_written(boost::beast::error_code error);
  void next_request();
  void linger();
  void close();
  void record();

  boost::beast::tcp_stream stream_;
  const ConnectionContext& context_;
  std::function<void()> on_closed_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;

  enum class Phase { idle, receiving, answering, closing, closed };
  Phase phase_ = Phase::idle;
  uint64_t id_ = 0;  // of the request; what belongs to an earlier one is ignored
  bool keep_alive_ = false;
  bool is_http_1_0_ = false;
  bool is_head_ = false;  // the method HEAD: no body
  bool has_begun_ = false;
  bool has_ended_ = false;
  bool is_chunked_ = false;
  bool is_lingering_ = false;
  std::string pending_, writing_;
  std::function<void()> gone_;
  std::chrono::steady_clock::time_point start_;
  RequestRecord record_;
  std::vector<std::pair<std::string, std::string>> headers_;  // for the answer
};

}  // namespace sluice::server
