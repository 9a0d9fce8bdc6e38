// Many chats at once: tokens per second of 1, 2, 4 and 8 at the same time, in turns within one run,
// beside the most that the bytes of their experts allow; and how long those that decode wait for
// their next token while a long prompt is read.
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
#include <set>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/machine_fingerprint.h"
#include "base/random.h"
#include "base/units.h"
#include "base/wall_clock.h"
#include "model_file/shape.h"
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

// The experts of each new token of the chats, [n_layers, n_used]: rows do not depend on each other,
// so these are the ones that the engine computes too.
using Routing = std::vector<std::vector<int32_t>>;

std::vector<Routing> routing_of(const Model& model, int n_tokens, uint64_t seed) {
  std::vector<Routing> chats(kChats);
  for (uint64_t i = 0; i < kChats; ++i) {
    SessionOptions options{.n_ctx = 1024};
    options.on_routing = [&routing = chats[i]](const RoutedToken& token) {
      if (!token.is_prompt) routing.emplace_back(token.experts.begin(), token.experts.end());
    };
    Session session(model, options);
    session.generate(tokens_of(kChatPrompt, model.info().n_vocab, seed + i),
                     {.n_tokens = n_tokens, .choose = choose_by_chance(model.info(), seed + i)});
  }
  return chats;
}

// What a step with a token of each of n chats reads.
struct StepBytes {
  double experts_of_layer = 0.0;  // different ones
  double bytes = 0.0;
};

StepBytes step_bytes(const policy::ModelShape& shape, const std::vector<Routing>& chats, int n) {
  const size_t n_layers = shape.layers.size(), n_steps = chats[0].size();
  StepBytes sum{.bytes = static_cast<double>(shape.output_bytes)};
  for (const policy::LayerShape& layer : shape.layers) {
    sum.bytes += static_cast<double>(layer.trunk_bytes);
  }
  const double share = 1.0 / static_cast<double>(n_steps * (kChats / static_cast<size_t>(n)));
  for (size_t step = 0; step < n_steps; ++step) {
    for (size_t first = 0; first < kChats; first += static_cast<size_t>(n)) {
      for (size_t layer = 0; layer < n_layers; ++layer) {
        std::set<int32_t> used;
        for (size_t i = first; i < first + static_cast<size_t>(n); ++i) {
          const std::vector<int32_t>& all = chats[i][step];
          const auto begin =
              all.begin() + static_cast<std::ptrdiff_t>(layer * all.size() / n_layers);
          used.insert(begin, begin + static_cast<std::ptrdiff_t>(all.size() / n_layers));
        }
        const auto n_used = static_cast<double>(used.size()) * share;
        sum.experts_of_layer += n_used / static_cast<double>(n_layers);
        sum.bytes += n_used * static_cast<double>(shape.layers[layer].expert_bytes);
      }
    }
  }
  return sum;
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

void print_rates(const Model& model, int n_rounds, int n_tokens) {
  std::map<int, std::vector<double>> rates;
  run_chats(model, kChats, 4, 0);  // to warm up
  for (int round = 0; round < n_rounds; ++round) {
    for (const int n : {1, 2, 4, 8}) {
      const Rate rate = run_chats(model, n, n_tokens, static_cast<uint64_t>(round) * 100 + 1);
      rates[n].push_back(static_cast<double>(rate.n_tokens) / rate.seconds);
    }
  }
  const policy::ModelShape shape = model_file::read_shape(gguf::ModelFile::open(model.info().path));
  const std::vector<Routing> routing = routing_of(model, n_tokens, 1);
  const double alone = step_bytes(shape, routing, 1).bytes;
  std::printf("%-16s %10s %8s %14s %12s %14s %8s\n", "chats at a time", "tokens/s", "ratio",
              "experts/layer", "MiB a step", "by bytes most", "GB/s");
  for (const auto& [n, all] : rates) {
    std::vector<double> ratios;
    for (size_t i = 0; i < all.size(); ++i) ratios.push_back(all[i] / rates[1][i]);
    const auto [n_experts, bytes] = step_bytes(shape, routing, n);
    std::printf("%-16d %10.2f %7.2fx %14.1f %12.0f %13.2fx %8.1f\n", n, median(all), median(ratios),
                n_experts, bytes / static_cast<double>(kMiB), n * alone / bytes,
                bytes * median(all) / n / 1e9);
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
  const Model model = Model::load(argv[1]);
  std::printf("%s\n", machine_fingerprint("").c_str());
  print_rates(model, number(2, 3), number(3, 32));
  if (number(4, 4000) > 0) print_waits(model, number(4, 4000));
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  try {
    return sluice::run(argc, argv);
  } catch (const sluice::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
}
