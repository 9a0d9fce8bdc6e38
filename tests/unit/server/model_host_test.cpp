// Who gets which model when: loads that take long, fail, or are too many.
// SPDX-License-Identifier: Apache-2.0
#include "server/model_host.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "server/endpoints/endpoints.h"
#include "unit/server/demo_service.h"

namespace sluice::server {
namespace {

// Two names for the demo model; loads wait for `may_load`, and fail where `fails`.
struct Source {
  std::promise<void> may_load;
  std::shared_future<void> goes = may_load.get_future().share();
  std::atomic<bool> fails{false};
  std::atomic<int> n_loads{0};

  ModelHostOptions options() {
    const std::string path = find_model("demo-attn");
    ModelHostOptions o;
    o.engine.session.n_ctx = 64;
    o.engine.n_sequences = 1;
    o.swaps = true;
    o.n_waiting = 2;
    o.log = [](const std::string&) {};
    o.source.list = [path] { return std::vector<FoundModel>{{"other", path}}; };
    o.source.load = [this, session = o.engine.session](const std::string& file) {
      goes.wait();
      ++n_loads;
      if (fails.exchange(false)) throw Error(Errc::bad_file, file + " is broken");
      return LoadedModel{Model::load(file, {.n_threads = 1}), session};
    };
    return o;
  }
};

const Model& demo_model() {
  static const Model model = Model::load(find_model("demo-attn"), {.n_threads = 1});
  return model;
}

// What came of a use(): the model's name, or a status.
std::future<std::string> ask(ModelHost& host, const std::string& name) {
  const auto said = std::make_shared<std::promise<std::string>>();
  std::future<std::string> future = said->get_future();
  try {
    host.use(
        name, [said](const ModelHost::Handle& model) { said->set_value(model->name()); },
        [said](const ApiError& error) { said->set_value(std::to_string(error.status())); });
  } catch (const ApiError& error) {
    said->set_value(std::to_string(error.status()));
  }
  return future;
}

TEST(ModelHost, RequestsWaitForAModelAndTooManyAreRefused) {
  Source source;
  ModelHost host(demo_model(), source.options());
  EXPECT_EQ(ask(host, "").get(), "demo-attn");
  EXPECT_EQ(ask(host, "demo-attn").get(), "demo-attn");
  EXPECT_EQ(ask(host, "nobody").get(), "404");
  auto first = ask(host, "other");
  while (!host.is_loading()) std::this_thread::yield();
  auto second = ask(host, "demo-attn");
  auto third = ask(host, "other");
  EXPECT_EQ(ask(host, "other").get(), "503");
  source.may_load.set_value();
  EXPECT_EQ(first.get(), "other");
  EXPECT_EQ(second.get(), "demo-attn");
  EXPECT_EQ(third.get(), "other");
  EXPECT_EQ(host.counts().n_loaded, 4);
  EXPECT_EQ(host.counts().n_unloaded, 3);
}

TEST(ModelHost, HealthAndMetricsTellOfALoad) {
  Source source;
  ModelHost host(demo_model(), source.options());
  Metrics metrics;
  const EndpointContext all{host, metrics, {}, {}};
  Router router;
  add_health(router, all);
  const auto get = [&](const char* path) {
    const auto answer = std::make_shared<FakeAnswer>();
    router.find("GET", path).handler(std::make_shared<FakeExchange>(answer));
    return std::to_string(answer->status) + " " + answer->body;
  };
  EXPECT_EQ(get("/health"), R"(200 {"status":"ok"})");
  EXPECT_NE(get("/metrics").find("sluice_models_loaded_total 1\n"), std::string::npos);
  EXPECT_NE(get("/metrics").find("sluice_steps_total 0\n"), std::string::npos);
  auto other = ask(host, "other");
  while (host.peek()) std::this_thread::yield();
  EXPECT_EQ(get("/health"), R"(503 {"status":"loading"})");
  EXPECT_EQ(get("/metrics").find("sluice_steps_total"), std::string::npos);
  EXPECT_THROW(get("/props"), ApiError);
  source.may_load.set_value();
  EXPECT_EQ(other.get(), "other");
  EXPECT_NE(get("/metrics").find("sluice_models_unloaded_total 1\n"), std::string::npos);
}

TEST(ModelHost, AModelStaysWhileSomebodyHoldsIt) {
  Source source;
  source.may_load.set_value();
  ModelHost host(demo_model(), source.options());
  ModelHost::Handle held = host.peek();
  auto other = ask(host, "other");
  while (!host.is_loading()) std::this_thread::yield();
  EXPECT_EQ(source.n_loads, 0);
  EXPECT_EQ(held->name(), "demo-attn");
  EXPECT_EQ(held->engine().n_ctx(), 64);
  held.reset();
  EXPECT_EQ(other.get(), "other");
}

TEST(ModelHost, ALoadThatFailsBringsTheOldModelBack) {
  Source source;
  source.may_load.set_value();
  source.fails = true;
  ModelHost host(demo_model(), source.options());
  EXPECT_EQ(ask(host, "other").get(), "500");
  ASSERT_TRUE(host.peek());  // nobody had to ask for it
  EXPECT_EQ(host.peek()->name(), "demo-attn");
  EXPECT_EQ(source.n_loads, 2);
  EXPECT_EQ(ask(host, "other").get(), "other");
}

TEST(ModelHost, AModelThatIsHeldAtTheEndStays) {
  Source source;
  source.may_load.set_value();
  ModelHost host(demo_model(), source.options());
  ModelHost::Handle held = host.peek();
  auto other = ask(host, "other");
  while (host.peek()) std::this_thread::yield();  // the swap has begun
  host.end();
  EXPECT_EQ(other.get(), "503");
  ASSERT_TRUE(host.peek());
  EXPECT_EQ(host.peek()->engine().n_ctx(), 64);
  EXPECT_EQ(source.n_loads, 0);
  held.reset();
}

// Under TSan too (make tsan): requests of two models, unloads, keep-alive and those who only look,
// all at once. Everybody gets the model that he named, or is told why not.
TEST(ModelHost, ManyThreadsAskUnloadAndLook) {
  constexpr int kThreads = 4, kRounds = 4;
  Source source;
  source.may_load.set_value();
  ModelHostOptions options = source.options();
  options.n_waiting = kThreads;
  ModelHost host(demo_model(), options);
  std::atomic<int> n_served{0}, n_left{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const std::string name = (i + t) % 2 == 0 ? "other" : "demo-attn";
        const std::string got = ask(host, name).get();
        EXPECT_EQ(got, name);
        n_served += got == name ? 1 : 0;
        if (i == 3) host.set_keep_alive(t % 2 == 0 ? std::optional(0.0) : std::nullopt);
        if (i != t) continue;
        std::promise<void> is_done;
        host.unload([&](const ModelHost::Handle&) { is_done.set_value(); },
                    [&](const ApiError&) { is_done.set_value(); });
        is_done.get_future().wait();
      }
      --n_left;
    });
  }
  while (n_left > 0) {
    host.is_loading();
    if (const ModelHost::Handle model = host.peek()) {
      EXPECT_EQ(model->engine().n_ctx(), 64);
    }
    EXPECT_EQ(host.list().size(), 1U);  // two names of one file
    const ModelHost::Counts counts = host.counts();
    EXPECT_GE(counts.n_loaded, counts.n_unloaded);
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_served, kThreads * kRounds);
  host.end();
  EXPECT_EQ(host.counts().n_loaded - host.counts().n_unloaded, host.peek() ? 1 : 0);
}

TEST(ModelHost, WhoeverWaitsAtTheEndIsRefused) {
  Source source;
  auto host = std::make_unique<ModelHost>(demo_model(), source.options());
  auto first = ask(*host, "other");
  while (!host->is_loading()) std::this_thread::yield();
  auto second = ask(*host, "demo-attn");
  auto end = std::async([&] { host->end(); });
  source.may_load.set_value();
  end.get();
  EXPECT_NE(first.get(), "");
  EXPECT_NE(second.get(), "");
  EXPECT_EQ(ask(*host, "nobody").get(), "404");
  EXPECT_EQ(ask(*host, "other").get(), "503");
}

}  // namespace
}  // namespace sluice::server
