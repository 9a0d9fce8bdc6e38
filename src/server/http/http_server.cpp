// See http_server.h: the listening socket, the threads and the signals.
// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_server.h"

#include <atomic>
#include <csignal>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "server/http/connection.h"
//
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

namespace sluice::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

tcp::acceptor listen_at(asio::io_context& io, const std::string& host, uint16_t port) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error) {
    throw Error(Errc::bad_request,
                cat("'", host, "' is no address; expected one such as 127.0.0.1, 0.0.0.0 or ::1"));
  }
  tcp::acceptor acceptor(asio::make_strand(io));
  const tcp::endpoint endpoint(address, port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw Error(Errc::bad_request, cat("cannot listen at ", host, ", port ", port, ": ",
                                       error.message(), "; choose others with --host and --port"));
  }
  return acceptor;
}

}  // namespace

struct HttpServer::Impl {
  explicit Impl(HttpOptions o)
      : options(std::move(o)), acceptor(listen_at(io, options.host, options.port)) {}

  void accept() {
    acceptor.async_accept(asio::make_strand(io), [this](auto error, tcp::socket socket) {
      if (draining) return;
      if (error) {  // no file descriptors are left, mostly: soon again
        retry.expires_after(std::chrono::milliseconds(100));
        retry.async_wait([this](auto cancelled) {
          if (!cancelled && !draining) accept();
        });
        return;
      }
      add(std::move(socket));
      accept();
    });
  }

  void add(tcp::socket socket) {
    std::shared_ptr<Connection> connection;  // let go of without the lock, which its end takes
    {
      const std::scoped_lock lock(mutex);
      if (connections.size() >= static_cast<size_t>(options.limits.n_connections)) return;
      const uint64_t id = ++last_id;
      connection = std::make_shared<Connection>(std::move(socket), context, [this, id] {
        const std::scoped_lock inner(mutex);
        connections.erase(id);
      });
      connections.emplace(id, connection);
    }
    connection->start();
  }

  std::vector<std::shared_ptr<Connection>> living() {
    const std::scoped_lock lock(mutex);
    std::vector<std::shared_ptr<Connection>> all;
    for (const auto& [id, weak] : connections) {
      if (auto connection = weak.lock()) all.push_back(std::move(connection));
    }
    return all;
  }

  // On the acceptor's strand.
  void drain() {
    if (draining.exchange(true)) return;
    boost::system::error_code ignored;
    acceptor.close(ignored);
    retry.cancel();
    if (options.on_drain) options.on_drain();
    for (const auto& connection : living()) connection->drain();
    deadline.expires_after(options.limits.drain_time);
    deadline.async_wait([this](auto cancelled) {
      if (cancelled) return;
      for (const auto& connection : living()) connection->abort();
    });
    watch_end();
  }

  // Once the last connection is closed there is nothing to wait for.
  void watch_end() {
    if (living().empty()) {
      deadline.cancel();
      signals.cancel();
      return;
    }
    retry.expires_after(std::chrono::milliseconds(20));
    retry.async_wait([this](auto) { watch_end(); });
  }

  void wait_for_signal() {
    signals.async_wait([this](auto error, int number) {
      if (error) return;
      if (draining) {  // the second one: as if it had not been caught
        std::signal(number, SIG_DFL);
        std::raise(number);
      }
      asio::post(acceptor.get_executor(), [this] { drain(); });
      wait_for_signal();
    });
  }

  HttpOptions options;
  asio::io_context io;
  tcp::acceptor acceptor;
  asio::signal_set signals{acceptor.get_executor()};
  asio::steady_timer retry{acceptor.get_executor()};
  asio::steady_timer deadline{acceptor.get_executor()};
  std::atomic<bool> draining{false};
  ConnectionContext context{options, [this] { return draining.load(); }};
  std::mutex mutex;
  uint64_t last_id = 0;
  std::unordered_map<uint64_t, std::weak_ptr<Connection>> connections;
};

HttpServer::HttpServer(HttpOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const { return impl_->acceptor.local_endpoint().port(); }
bool HttpServer::draining() const { return impl_->draining; }

void HttpServer::stop() {
  asio::post(impl_->acceptor.get_executor(), [this] { impl_->drain(); });
}

void HttpServer::run() {
  impl_->signals.add(SIGINT);
  impl_->signals.add(SIGTERM);
  impl_->wait_for_signal();
  impl_->accept();
  std::vector<std::thread> threads;
  for (int i = 1; i < impl_->options.n_threads; ++i) {
    threads.emplace_back([this] { impl_->io.run(); });
  }
  impl_->io.run();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sluice::server
