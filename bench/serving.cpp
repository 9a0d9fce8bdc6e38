// Many chats at once: tokens per second of 1, 2, 4 and 8 at the same time, in turns within one run,
// beside the most that the bytes of their experts allow, with experts chosen by chance and as
// recorded texts choose them; and how long those that decode wait for their next token while a long
// prompt is read.
//
//   cmake --preset release -DSLUICE_BENCH=ON
//   cmake --build --preset release --target bench_serving
//   build/release/bench/bench_serving MODEL [rounds] [tokens of each chat] [tokens of the long
//   prompt]
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/machine_fingerprint.h"
#include "base/random.h"
#include "base/units.h"
#include "base/wall_clock.h"
#include "bench_main.h"
#include "chat_steps.h"
#include "model_file/shape.h"
#include "policy/trace/trace_generator.h"
#include "sluice/engine.h"

namespace sluice {
namespace {

constexpr int kChats = 8;
constexpr int kChatPrompt = 32;

std::vector<TokenId> tokens_of(int n, int n_vocab, uint64_t seed) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < n; ++i) {
    tokens.push_back(static_cast<TokenId>(random_bits(seed, static_cast<uint64_t>(i)) %
                                          static_cast<uint64_t>(n_vocab)));
  }
  return tokens;
}

using Choose = std::function<TokenId(std::span<const float>)>;

// Texts that go on by chance: a model with random weights repeats itself otherwise, and with it its
// routing.
Choose choose_by_chance(const ModelInfo& info, uint64_t seed) {
  return [&info, seed, n = uint64_t{1000}](std::span<const float>) mutable {
    return static_cast<TokenId>(random_bits(seed, n++) % static_cast<uint64_t>(info.n_vocab));
  };
}

Request chat(const ModelInfo& info, uint64_t seed, int n_tokens) {
  Request request{.prompt = tokens_of(kChatPrompt, info.n_vocab, seed), .n_tokens = n_tokens};
  request.choose = choose_by_chance(info, seed);
  return request;
}

// The experts of each new token of the chats: rows do not depend on each other, so these are the
// ones that the engine computes too.
std::vector<policy::RoutingTrace> routing_of(const Model& model, int n_tokens, uint64_t seed) {
  std::vector<policy::RoutingTrace> chats(kChats);
  const int n_layers = model.info().n_layers, n_used = model.info().n_experts_used;
  for (uint64_t i = 0; i < kChats; ++i) {
    SessionOptions options{.n_ctx = 1024};
    options.on_routing = [&, &steps = chats[i].steps](const RoutedToken& token) {
      if (token.is_prompt) return;
      policy::RoutingStep& step = steps.emplace_back();
      for (const int32_t expert : token.experts) step.routed.push_back({ExpertId(expert)});
      for (int l = 0; l <= n_layers; ++l) step.begin.push_back(l * n_used);
    };
    Session session(model, options);
    session.generate(tokens_of(kChatPrompt, model.info().n_vocab, seed + i),
                     {.n_tokens = n_tokens, .choose = choose_by_chance(model.info(), seed + i)});
  }
  return chats;
}

// What a step reads that uses so many experts of a layer.
double step_bytes(const policy::ModelShape& shape, double n_experts) {
  auto bytes = static_cast<double>(shape.output_bytes);
  for (const policy::LayerShape& layer : shape.layers) {
    bytes += static_cast<double>(layer.trunk_bytes) +
             n_experts * static_cast<double>(layer.expert_bytes);
  }
  return bytes;
}

struct Rate {
  int64_t n_tokens = 0;
  double seconds = 0.0;
};

// Steps that only decode, of all chats, so many at a time.
Rate run_chats(const Model& model, int n_at_a_time, int n_tokens, uint64_t seed) {
  Engine engine(model, {.session = {.n_ctx = 1024}, .n_sequences = n_at_a_time});
  for (uint64_t i = 0; i < kChats; ++i) engine.submit(chat(model.info(), seed + i, n_tokens));
  engine.drain();
  const EngineStats stats = engine.stats();
  return {stats.n_new_tokens - kChats, stats.decode_seconds};
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

constexpr int kAtATime[] = {1, 2, 4, 8};

// Tokens/s of each number at a time, in turns.
using Rates = std::map<int, std::vector<double>>;

template <typename Measure>
Rates rates_of(int n_rounds, const Measure& measure) {
  Rates rates;
  measure(kChats, 0);  // to warm up
  for (int round = 0; round < n_rounds; ++round) {
    for (const int n : kAtATime) rates[n].push_back(measure(n, round));
  }
  return rates;
}

void print_rates(const char* routing, const Rates& rates, const policy::ModelShape& shape,
                 const std::vector<policy::RoutingTrace>& routes) {
  const auto bytes_of = [&](double n_experts) { return step_bytes(shape, n_experts); };
  const double alone = bytes_of(bench::experts_of_layer(routes, 1));
  std::printf("routing %s\n%-16s %10s %8s %14s %12s %14s %8s\n", routing, "chats at a time",
              "tokens/s", "ratio", "experts/layer", "MiB a step", "by bytes most", "GB/s");
  for (const auto& [n, all] : rates) {
    std::vector<double> ratios;
    for (size_t i = 0; i < all.size(); ++i) ratios.push_back(all[i] / rates.at(1)[i]);
    const double n_experts = bench::experts_of_layer(routes, n), bytes = bytes_of(n_experts);
    std::printf("%-16d %10.2f %7.2fx %14.1f %12.0f %13.2fx %8.1f\n", n, median(all), median(ratios),
                n_experts, bytes / static_cast<double>(kMiB), n * alone / bytes,
                bytes * median(all) / n / 1e9);
  }
}

// By the engine, as the model routes: by chance. Then steps with routing like that of recorded
// texts, which repeat their experts.
void print_all_rates(const std::string& path, int n_rounds, int n_tokens) {
  const policy::ModelShape shape = model_file::read_shape(gguf::ModelFile::open(path));
  {
    const Model model = Model::load(path);
    const Rates rates = rates_of(n_rounds, [&](int n, int round) {
      const Rate rate = run_chats(model, n, n_tokens, static_cast<uint64_t>(round) * 100 + 1);
      return static_cast<double>(rate.n_tokens) / rate.seconds;
    });
    print_rates("by chance", rates, shape, routing_of(model, n_tokens, 1));
  }
  const engine::LoadedModel model(path, {});
  const auto routing =
      policy::generator_shape(model.info.n_layers, model.info.n_experts, model.info.n_experts_used);
  for (const bool share_topic : {false, true}) {
    const auto routes = bench::chat_routes(routing, kChats, n_tokens, share_topic);
    const Rates rates =
        rates_of(n_rounds, [&](int n, int) { return bench::run_chat_steps(model, routes, n); });
    print_rates(
        share_topic ? "as recorded, of one topic" : "as recorded, each chat of its own topic",
        rates, shape, routes);
  }
}

// The longest and the middle wait of three chats between two tokens, with and without a long
// prompt beside them; and what a whole chunk of that prompt takes where nobody waits.
void print_waits(const Model& model, int n_long) {
  Engine engine(model, {.session = {.n_ctx = n_long + 64}, .n_sequences = 4});
  const double alone = wall_seconds();
  engine.submit({.prompt = tokens_of(512, model.info().n_vocab, 7), .n_tokens = 0, .on_end = {}});
  while (engine.stats().n_finished < 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const double chunk_seconds = wall_seconds() - alone;
  bool is_reading = false;  // of the engine's thread, as all below
  std::vector<double> waits, waits_reading;
  for (uint64_t i = 0; i < 3; ++i) {
    Request request = chat(model.info(), 500 + i, -1);
    request.on_token = [&, last = 0.0](TokenId) mutable {
      const double now = wall_seconds();
      if (last > 0.0) (is_reading ? waits_reading : waits).push_back(now - last);
      last = now;
      return !(waits_reading.size() > 8 && !is_reading);
    };
    engine.submit(std::move(request));
  }
  while (engine.stats().n_new_tokens < 30) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  Request reading{.prompt = tokens_of(n_long, model.info().n_vocab, 9), .n_tokens = 1};
  reading.on_prompt = [&](int n_done, int n_total) { is_reading = n_done < n_total; };
  std::promise<RequestEnd> read;
  reading.on_end = [&](const RequestEnd& end) { read.set_value(end); };
  engine.submit(std::move(reading));
  const RequestEnd end = read.get_future().get();
  engine.drain();
  std::printf("a prompt of %d tokens beside three chats: read at %.1f tokens/s\n", n_long,
              n_long / end.prompt_seconds);
  std::printf("their wait for a token: %.3f s in the middle, %.3f s at most; without it %.3f s\n",
              median(waits_reading), *std::ranges::max_element(waits_reading), median(waits));
  std::printf("a chunk of 512 tokens alone: %.3f s; the longest wait is %.2f of it\n",
              chunk_seconds, *std::ranges::max_element(waits_reading) / chunk_seconds);
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "bench_serving MODEL [rounds] [tokens of each chat] [long prompt]\n");
    return 2;
  }
  const auto number = [&](int i, int usual) { return i < argc ? std::atoi(argv[i]) : usual; };
  std::printf("%s\n", machine_fingerprint("").c_str());
  print_all_rates(argv[1], number(2, 3), number(3, 32));
  if (number(4, 4000) > 0) print_waits(Model::load(argv[1]), number(4, 4000));
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  return sluice::bench::bench_main([&] { return sluice::run(argc, argv); });
}
