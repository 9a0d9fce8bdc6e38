// The demo model as a server has it, and an exchange without a client: what was sent is kept.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "server/http/exchange.h"
#include "server/model_service.h"
#include "sluice/chat.h"

namespace sluice::server {

inline const ModelService& demo_service() {
  static const Model model = Model::load(find_model("demo-attn"), {.n_threads = 1});
  EngineOptions options;
  options.session.n_ctx = 256;
  options.n_sequences = 1;
  static const ModelService service(model, options, "demo-attn");
  return service;
}

// What came of an exchange. Read `body` after wait() alone.
struct FakeAnswer {
  int status = 0;
  std::string body;
  std::promise<void> done;
  void wait() { done.get_future().wait(); }
};

class FakeExchange : public Exchange {
 public:
  explicit FakeExchange(std::shared_ptr<FakeAnswer> answer, HttpRequest request = {})
      : Exchange(std::move(request)), answer_(std::move(answer)) {}
  // With the last of its users, so that nothing of the answer is still under way.
  ~FakeExchange() override { answer_->done.set_value(); }

  void send(HttpResponse response) override { begin_stream(std::move(response)); }
  void begin_stream(HttpResponse head) override {
    answer_->status = head.status;
    answer_->body += head.body;
  }
  void write(std::string bytes) override { answer_->body += bytes; }
  void end_stream() override {}
  void on_gone(std::function<void()>) override {}
  void set_route(std::string_view) override {}

 private:
  std::shared_ptr<FakeAnswer> answer_;
};

}  // namespace sluice::server
