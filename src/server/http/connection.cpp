// See connection.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/http/connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "server/http/wire.h"

namespace sluice::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using beast::error_code;

std::string lower(beast::string_view text) {
  std::string result(text.data(), text.size());
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

HttpRequest take_request(http::request<http::string_body>&& message) {
  HttpRequest request;
  const auto method = message.method_string();
  request.method.assign(method.data(), method.size());
  const auto target = message.target();
  std::tie(request.path, request.query) = split_target({target.data(), target.size()});
  for (const auto& field : message) {
    const auto value = field.value();
    request.headers.emplace(lower(field.name_string()), std::string(value.data(), value.size()));
  }
  request.body = std::move(message.body());
  return request;
}

// What is wrong with bytes that are no request we take.
std::pair<int, const char*> problem_of(error_code error) {
  if (error == http::error::body_limit)
    return {413, "the body is larger than this server takes (--max-body)"};
  if (error == http::error::header_limit)
    return {431, "the request's header is larger than this server takes"};
  return {400, "this is no HTTP request that can be read; expected HTTP/1.1"};
}

bool is_gone(error_code error) {
  return error == http::error::end_of_stream || error == http::error::partial_message ||
         error == asio::error::eof || error == asio::error::connection_reset ||
         error == asio::error::broken_pipe || error == asio::error::operation_aborted;
}

}  // namespace

// Hands the calls of any thread to the connection's strand.
class Connection::Answer : public Exchange {
 public:
  Answer(std::shared_ptr<Connection> connection, uint64_t id, HttpRequest request)
      : Exchange(std::move(request)), connection_(std::move(connection)), id_(id) {}
  ~Answer() override {
    post([id = id_](Connection& c) { c.forsake(id); });
  }

  void send(HttpResponse response) override { begin(std::move(response), /*is_whole=*/true); }
  void begin_stream(HttpResponse head) override { begin(std::move(head), /*is_whole=*/false); }
  void write(std::string bytes) override {
    post([id = id_, bytes = std::move(bytes)](Connection& c) { c.append(id, bytes); });
  }
  void end_stream() override {
    post([id = id_](Connection& c) { c.end_answer(id); });
  }
  void on_gone(std::function<void()> gone) override {
    post([id = id_, gone = std::move(gone)](Connection& c) {
      if (c.id_ == id && c.phase_ == Phase::answering) {
        c.gone_ = gone;
      } else if (c.phase_ == Phase::closed) {
        gone();
      }
    });
  }
  void set_route(std::string_view route) override {
    post([id = id_, route = std::string(route)](Connection& c) {
      if (c.id_ == id) c.record_.route = route;
    });
  }

 private:
  void begin(HttpResponse response, bool is_whole) {
    post([id = id_, response = std::move(response), is_whole](Connection& c) mutable {
      c.begin_answer(id, std::move(response), is_whole);
    });
  }
  template <typename Work>
  void post(Work work) {
    asio::post(connection_->stream_.get_executor(),
               [c = connection_, work = std::move(work)]() mutable { work(*c); });
  }

  std::shared_ptr<Connection> connection_;
  uint64_t id_;
};

Connection::Connection(asio::ip::tcp::socket socket, const ConnectionContext& context,
                       std::function<void()> on_closed)
    : stream_(std::move(socket)), context_(context), on_closed_(std::move(on_closed)) {}

Connection::~Connection() { on_closed_(); }

void Connection::run(void (Connection::*step)()) {
  asio::post(stream_.get_executor(), [self = shared_from_this(), step] { ((*self).*step)(); });
}

void Connection::start() {
  error_code ignored;
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ignored);
  run(&Connection::read_head);
}

void Connection::drain() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->keep_alive_ = false;
    if (self->phase_ == Phase::idle) self->close();
  });
}

void Connection::abort() { run(&Connection::close); }

// A new request: its first byte may be long in coming, the others may not.
void Connection::read_head() {
  if (phase_ == Phase::closed) return;
  const HttpLimits& limits = context_.options.limits;
  phase_ = Phase::idle;
  // drain() may have come between the last answer and here, when this was not idle yet.
  if (context_.draining()) return close();
  ++id_;
  has_begun_ = has_ended_ = is_chunked_ = false;
  record_ = {};
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(limits.header_bytes));
  parser_->body_limit(limits.body_bytes);
  const auto receive = [self = shared_from_this()] {
    self->phase_ = Phase::receiving;
    self->start_ = std::chrono::steady_clock::now();
    self->stream_.expires_after(self->context_.options.limits.receive_time);
    http::async_read_header(self->stream_, self->buffer_, *self->parser_,
                            [self](error_code error, size_t) { self->on_head(error); });
  };
  if (buffer_.size() > 0) return receive();
  stream_.expires_after(limits.idle_time);
  stream_.async_read_some(buffer_.prepare(4096),
                          [self = shared_from_this(), receive](error_code error, size_t n) {
                            if (error || self->phase_ == Phase::closed) return self->close();
                            self->buffer_.commit(n);
                            receive();
                          });
}

void Connection::on_head(error_code error) {
  if (phase_ == Phase::closed) return;
  is_http_1_0_ = parser_->get().version() < 11;
  is_head_ = parser_->get().method() == http::verb::head;
  keep_alive_ = !error && parser_->keep_alive();
  if (error) return fail(error);
  if (lower(parser_->get()[http::field::expect]) != "100-continue") return read_body();
  writing_ = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream_, asio::buffer(writing_),
                    [self = shared_from_this()](error_code failure, size_t) {
                      self->writing_.clear();
                      if (failure) return self->close();
                      self->read_body();
                    });
}

void Connection::read_body() {
  if (parser_->is_done()) return hand_over();
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code error, size_t) { self->on_body(error); });
}

void Connection::on_body(error_code error) {
  if (phase_ == Phase::closed) return;
  if (error) return fail(error);
  hand_over();
}

// A request that came in part, or is none. After a timeout the stream is closed already.
void Connection::fail(error_code error) {
  if (is_gone(error)) return close();
  if (error == beast::error::timeout) {
    record_ = {.method = "other", .route = "", .status = 408};
    record();
    return close();
  }
  const auto [status, message] = problem_of(error);
  refuse(status, message);
}

void Connection::hand_over() {
  phase_ = Phase::answering;
  stream_.expires_never();
  if (context_.draining()) keep_alive_ = false;
  HttpRequest request = take_request(parser_->release());
  record_.method = request.method == "GET" || request.method == "POST" ? request.method : "other";
  if (is_head_) request.method = "GET";
  if (context_.options.headers) headers_ = context_.options.headers(request);
  watch_for_end();
  context_.options.handle(std::make_shared<Answer>(shared_from_this(), id_, std::move(request)));
}

// While an answer is made nothing is read, so nobody would notice that the client has left. Bytes
// of a next request end the watch: they wait for their turn.
void Connection::watch_for_end() {
  stream_.socket().async_wait(
      asio::ip::tcp::socket::wait_read, [self = shared_from_this(), id = id_](error_code error) {
        if (error || self->id_ != id || self->phase_ != Phase::answering) return;
        // A client that has its answer may leave before on_written() runs; if the answer did not
        // get through, writing it fails.
        if (self->has_ended_) return;
        char byte = 0;
        const ssize_t n =
            recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n > 0) return;
        // A wait may end though nothing has come, on account of bytes that were read before it.
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return self->watch_for_end();
        self->close();
      });
}

// No handler sees what could not be read. What is still coming is thrown away for a moment, since
// closing at once would take the answer from the client.
void Connection::refuse(int status, const std::string& message) {
  phase_ = Phase::answering;
  keep_alive_ = false;
  is_lingering_ = true;
  record_.method = "other";
  stream_.expires_never();
  begin_answer(id_, context_.options.refuse(status, message), /*is_whole=*/true);
}

void Connection::begin_answer(uint64_t id, HttpResponse response, bool is_whole) {
  if (id != id_ || phase_ != Phase::answering || has_begun_) return;
  has_begun_ = true;
  record_.status = response.status;
  for (auto& header : headers_) response.headers.push_back(std::move(header));
  headers_.clear();
  Head head;
  head.n_bytes = response.body.size();
  if (!is_whole) head.framing = is_http_1_0_ ? Framing::close : Framing::chunks;
  if (head.framing == Framing::close || context_.draining()) keep_alive_ = false;
  head.keep_alive = keep_alive_;
  is_chunked_ = head.framing == Framing::chunks;
  pending_ += head_text(response, head);
  append(id, response.body);
  if (is_whole) has_ended_ = true;
  flush();
}

void Connection::append(uint64_t id, std::string_view bytes) {
  if (id != id_ || phase_ != Phase::answering || has_ended_) return;
  if (!is_head_) pending_ += is_chunked_ ? chunk_text(bytes) : std::string(bytes);
  if (pending_.size() > context_.options.limits.pending_bytes && !writing_.empty()) return close();
  flush();
}

void Connection::end_answer(uint64_t id) {
  if (id != id_ || phase_ != Phase::answering || has_ended_) return;
  if (is_chunked_ && !is_head_) pending_ += kLastChunk;
  has_ended_ = true;
  flush();
}

void Connection::forsake(uint64_t id) {
  if (id != id_ || phase_ != Phase::answering || has_ended_) return;
  if (has_begun_) return close();  // a stream that broke off must not look complete
  begin_answer(id, context_.options.refuse(500, "the request was dropped by the server"),
               /*is_whole=*/true);
}

void Connection::flush() {
  if (!writing_.empty() || phase_ != Phase::answering) return;
  if (pending_.empty()) {
    if (has_ended_) next_request();
    return;
  }
  std::swap(writing_, pending_);
  stream_.expires_after(context_.options.limits.send_time);
  asio::async_write(
      stream_, asio::buffer(writing_),
      [self = shared_from_this()](error_code error, size_t) { self->on_written(error); });
}

void Connection::on_written(error_code error) {
  writing_.clear();
  if (phase_ == Phase::closed) return;
  if (error) return close();
  stream_.expires_never();
  flush();
}

void Connection::next_request() {
  gone_ = nullptr;
  record();
  error_code ignored;
  stream_.socket().cancel(ignored);  // the watch
  if (keep_alive_ && !context_.draining()) return run(&Connection::read_head);
  phase_ = Phase::closing;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  if (!is_lingering_) return close();
  stream_.expires_after(std::chrono::seconds(2));
  linger();
}

void Connection::linger() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(65536),
                          [self = shared_from_this()](error_code error, size_t) {
                            if (error || self->phase_ != Phase::closing) return self->close();
                            self->linger();
                          });
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  if (phase_ == Phase::answering) {
    record_.was_gone = true;
    record();
  }
  phase_ = Phase::closed;
  pending_.clear();
  stream_.close();
  if (const auto gone = std::exchange(gone_, nullptr)) gone();
}

void Connection::record() {
  record_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (context_.options.on_done) context_.options.on_done(record_);
}

}  // namespace sluice::server
