// See server.h: puts the model, the routes and HTTP together.
// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include "base/error.h"
#include "server/api_keys.h"
#include "server/endpoints/endpoints.h"
#include "server/live_state.h"
#include "server/log_queue.h"
#include "server/metrics.h"
#include "server/origin.h"
#include "server/saved_prefixes.h"

namespace sluice::server {
namespace {

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
}

std::string line_of(const RequestRecord& record) {
  std::array<char, 32> seconds;
  std::snprintf(seconds.data(), seconds.size(), "%.3f s", record.seconds);
  return cat(record.method, " ", record.route.empty() ? "(no route)" : record.route, " ",
             record.status, " ", seconds.data(), record.was_gone ? ", the client left" : "");
}

}  // namespace

struct Server::Impl {
  Impl(const Model& model, const ServerOptions& o)
      : options(o),
        lines(o.log ? std::make_unique<LogQueue>(o.log) : nullptr),
        keys(o.api_keys),
        origins(o.origins),
        prefixes(o.prefix_folder),
        host(model, host_options()),
        live(host),
        http(http_options()) {
    add_chat_completions(router, context);
    add_completions(router, context);
    add_infill(router, context);
    add_hosted_models(router, context);
    add_responses(router, context);
    add_messages(router, context);
    add_ollama_answers(router, context);
    add_ollama_models(router, context);
    add_models(router, context);
    add_prefixes(router, context, prefixes);
    add_health(router, context);
    add_tokenize(router, context);
    add_apply_template(router, context);
    add_live(router, live);
    add_page(router);
  }

  ModelHostOptions host_options() {
    return {.source = options.models,
            .engine = options.engine,
            .swaps = options.swap,
            .keep_alive = options.keep_alive,
            .n_waiting = static_cast<size_t>(std::max(options.engine.n_queued, 1)),
            .log = [this](const std::string& line) { log(line); }};
  }

  HttpOptions http_options() {
    HttpOptions wishes;
    wishes.host = options.host;
    wishes.port = options.port;
    wishes.limits.body_bytes = options.max_body_bytes;
    wishes.limits.receive_time = wishes.limits.send_time = milliseconds(options.receive_seconds);
    wishes.limits.drain_time = milliseconds(options.drain_seconds);
    wishes.handle = [this](std::shared_ptr<Exchange> exchange) { handle(std::move(exchange)); };
    wishes.refuse = [](int status, const std::string& message) {
      return error_response(Api::openai, ApiError(status, message));
    };
    wishes.headers = [this](const HttpRequest& request) { return origins.headers(request); };
    wishes.on_done = [this](const RequestRecord& record) {
      metrics.on_request(record);
      if (options.log_requests) log(line_of(record));
    };
    wishes.on_drain = [this] {
      if (options.log_requests) {
        log("asked to end: running answers are completed, new requests refused");
      }
      live.end();
    };
    return wishes;
  }

  void log(const std::string& line) {
    if (lines) lines->push(line);
  }

  void handle(std::shared_ptr<Exchange> exchange) noexcept {
    guard(exchange, [&] { dispatch(exchange); });
  }

  // What `answer` throws becomes the answer.
  void guard(const std::shared_ptr<Exchange>& exchange,
             const std::function<void()>& answer) noexcept {
    const auto fail = [&](const ApiError& error) {
      exchange->send(error_response(api_of(exchange->request().path), error));
    };
    try {
      answer();
    } catch (const ApiError& error) {
      fail(error);
    } catch (const Error& error) {
      if (to_api_error(error).status() >= 500) log(cat("fault: ", error.what()));
      fail(to_api_error(error));
    } catch (const std::bad_alloc&) {
      fail(ApiError(503, "the server has no memory for this request; try a smaller one"));
    } catch (const std::exception& error) {
      log(cat("fault: ", error.what()));
      fail(ApiError(500, "the server failed; its log says why"));
    }
  }

  void dispatch(const std::shared_ptr<Exchange>& exchange) {
    const HttpRequest& request = exchange->request();
    if (http.draining()) throw ApiError(503, "the server is ending; ask another one");
    if (request.method == "OPTIONS") return exchange->send(origins.preflight(request));
    origins.check(request);
    const Route& route = router.find(request.method, request.path);
    exchange->set_route(route.path);
    if (route.access == Access::keyed) keys.check(request);
    route.handler(exchange);
  }

  ServerOptions options;
  std::unique_ptr<LogQueue> lines;  // null: nobody wants a log
  ApiKeys keys;
  OriginRule origins;
  SavedPrefixes prefixes;
  Metrics metrics;
  ModelHost host;
  EndpointContext context{host, metrics, [this](const std::string& line) { log(line); },
                          [this](const std::shared_ptr<Exchange>& exchange,
                                 const std::function<void()>& answer) { guard(exchange, answer); }};
  LiveState live;
  Router router;
  HttpServer http;
};

Server::Server(const Model& model, const ServerOptions& options)
    : impl_(std::make_unique<Impl>(model, options)) {}
Server::~Server() = default;

uint16_t Server::port() const { return impl_->http.port(); }
PlacementInfo Server::placement() const { return impl_->host.loaded()->engine().placement(); }

std::vector<std::string> Server::warnings() const {
  const ModelHost::Handle model = impl_->host.loaded();
  const auto text = model->text().warnings();
  std::vector<std::string> all(text.begin(), text.end());
  for (const std::string& warning : placement().warnings) all.push_back(warning);
  if (!model->text().has_template()) {
    all.emplace_back("the model has no chat template that can be used: it continues texts only");
  }
  return all;
}

void Server::run() {
  impl_->http.run();
  impl_->host.end();
}

std::vector<std::string> api_keys_of(const std::string& text) { return keys_of(text); }

}  // namespace sluice::server
