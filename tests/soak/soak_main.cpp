// A long run on a device: requests of mixed length, one after another, some in a session of their
// own, some several at a time. Ends with 1 where memory grows, the host's or the GPU's, or where an
// answer is another one than before. Speeds at the start and at the end are printed.
//
//   soak MODEL SECONDS REQUESTS [sim|cuda] [slots]
//
// So many requests are spread over the time; 0: as many as fit into it. `make soak` runs it for
// half an hour on the RAM device, the tests for some seconds, tools/gpu-test on a GPU.
// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "base/random.h"
#include "sluice/engine.h"
#include "sluice/sluice.h"

namespace {

using sluice::Session;
using sluice::TokenId;
using Tokens = std::vector<TokenId>;

// The allocator keeps a few megabytes, more or less; a GPU's driver does too.
constexpr uint64_t kMostGrowth = 8 << 20, kMostGrowthBesideGpu = 32 << 20;
constexpr uint64_t kMostVramGrowth = 8 << 20;
constexpr int kDifferent = 50;  // requests; then they come again
// Several at once, with prompts so short that all steps are narrow: there no row depends on others.
constexpr int kTexts = 4, kShort = 4;

struct Wish {
  std::string model;
  double n_seconds = 0.0;
  int n_requests = 0;  // 0: as many as fit
  bool on_gpu = false;
  int n_slots = 100;
  // How often something comes and goes.
  int passing_every() const { return n_requests > 0 ? 10 : 40; }
};

uint64_t resident_bytes() {
  uint64_t n_total = 0, n_resident = 0;
  std::ifstream("/proc/self/statm") >> n_total >> n_resident;
  return n_resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

double mib(uint64_t n_bytes) { return static_cast<double>(n_bytes) / (1 << 20); }

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

sluice::SessionOptions device_options(const Wish& wish, int n_slots) {
  sluice::SessionOptions options{.n_ctx = 512, .prefill_chunk = 64};
  options.device.kind = wish.on_gpu ? sluice::DeviceKind::cuda : sluice::DeviceKind::sim;
  options.device.sim.machine.link_gbps = 5.0;
  options.device.moe = sluice::ExpertPlace::cache;
  options.device.n_slots = n_slots;
  options.device.prefetch = sluice::Choice::on;
  return options;
}

// What request i asks: the same for the same number.
Tokens prompt_of(int i, int n_vocab) {
  const auto n = static_cast<size_t>(1 + sluice::random_bits(1, static_cast<uint64_t>(i)) % 200);
  Tokens tokens(n);
  for (size_t t = 0; t < n; ++t) {
    tokens[t] = static_cast<TokenId>(sluice::random_bits(2, static_cast<uint64_t>(i) * 1000 + t) %
                                     static_cast<uint64_t>(n_vocab));
  }
  return tokens;
}

int length_of(int i) {
  return static_cast<int>(1 + sluice::random_bits(3, static_cast<uint64_t>(i)) % 64);
}

class Soak {
 public:
  explicit Soak(const Wish& wish)
      : wish_(wish),
        start_(std::chrono::steady_clock::now()),
        model_(sluice::Model::load(wish.model, {.n_threads = wish.on_gpu ? 0 : 2})),
        n_vocab_(model_.info().n_vocab),
        lasting_(model_, device_options(wish, wish.n_slots)) {}

  bool run() {
    ask(lasting_, 0);
    marks_.push_back({});
    int i = 1;
    for (; !is_over(i); ++i) {
      const int turn = i % wish_.passing_every();
      if (turn == 0) {
        Session passing(model_, device_options(wish_, 40 + i % 7));
        ask(passing, i);
      } else if (turn == 5) {
        ask_several(i);
      } else {
        ask(lasting_, i);
      }
      look(i);
    }
    while (marks_.size() < 6) mark();
    for (i = 0; i < kDifferent; ++i) ask(lasting_, i);
    return report();
  }

 private:
  // Of the lasting session, at the start of a fifth of the time.
  using Mark = sluice::Stats;

  double share_done(int i) const {
    return wish_.n_requests > 0 ? static_cast<double>(i) / wish_.n_requests
                                : seconds_since(start_) / wish_.n_seconds;
  }
  bool is_over(int i) const { return share_done(i) >= 1.0; }

  void compare(std::map<int, Tokens>& known, int i, Tokens answer) {
    const auto [before, is_new] = known.try_emplace(i, answer);
    n_compared_ += !is_new;
    n_others_ += before->second != answer;
  }

  void ask(Session& session, int i) {
    i %= kDifferent;
    session.truncate(0);
    compare(answers_, i,
            session.generate(prompt_of(i, n_vocab_), {.n_tokens = length_of(i)}).tokens);
  }

  void ask_several(int first) {
    sluice::Engine engine(model_, {.session = device_options(wish_, 40), .n_sequences = kTexts});
    std::vector<Tokens> answers(kTexts);
    for (int k = 0; k < kTexts; ++k) {
      sluice::Request request{.prompt = prompt_of((first + k) % kDifferent, n_vocab_),
                              .n_tokens = 32};
      if (request.prompt.size() > kShort) request.prompt.resize(kShort);
      request.on_token = [&answer = answers[static_cast<size_t>(k)]](TokenId token) {
        answer.push_back(token);
        return true;
      };
      engine.submit(std::move(request));
    }
    engine.drain();
    for (int k = 0; k < kTexts; ++k) {
      compare(short_answers_, (first + k) % kDifferent, answers[static_cast<size_t>(k)]);
    }
  }

  void mark() { marks_.push_back(lasting_.stats()); }

  // Between two requests, when only what lasts is there.
  void look(int i) {
    const uint64_t resident = resident_bytes();
    const bool is_settled = share_done(i) >= 0.25;
    (is_settled ? most_ : settled_) = is_settled ? std::max(most_, resident) : resident;
    if (wish_.on_gpu && i % 20 == 0) {  // the driver takes a moment to tell
      const uint64_t n_free = sluice::find_gpus().gpus.at(0).vram_free;
      (is_settled ? least_vram_ : settled_vram_) =
          is_settled ? std::min(least_vram_, n_free) : n_free;
    }
    while (marks_.size() < 6 && share_done(i) >= 0.2 * static_cast<double>(marks_.size())) mark();
    const double due = wish_.n_seconds * i / std::max(wish_.n_requests, 1);
    if (wish_.n_requests > 0) {  // spread over the time that there is
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::max(0.0, due - seconds_since(start_))));
    }
    if (i % (2 * wish_.passing_every()) == 0) {
      std::printf("%4d requests, %5.0f s, %.1f MiB\n", i, seconds_since(start_), mib(resident));
      std::fflush(stdout);
    }
  }

  void print_speed(const char* when, const Mark& from, const Mark& to) const {
    const auto rate = [](int64_t n, double seconds) {
      return seconds > 0.0 ? static_cast<double>(n) / seconds : 0.0;
    };
    std::printf(
        "speed: %s fifth, %.1f tokens/s of prompts, %.1f of answers\n", when,
        rate(to.n_prefill_tokens - from.n_prefill_tokens,
             to.prefill_seconds - from.prefill_seconds),
        rate(to.n_decode_tokens - from.n_decode_tokens, to.decode_seconds - from.decode_seconds));
  }

  bool report() const {
    print_speed("first", marks_[0], marks_[1]);
    print_speed("last", marks_[4], marks_[5]);
    std::printf("memory: %.1f MiB after a quarter, at most %.1f later\n", mib(settled_),
                mib(most_));
    const uint64_t growth = wish_.on_gpu ? kMostGrowthBesideGpu : kMostGrowth;
    bool is_good = most_ <= settled_ + growth;
    if (!is_good) std::printf("memory GREW\n");
    if (wish_.on_gpu) {
      std::printf("VRAM: %.1f MiB free after a quarter, at least %.1f later\n", mib(settled_vram_),
                  mib(least_vram_));
      if (least_vram_ + kMostVramGrowth < settled_vram_) {
        std::printf("VRAM GREW\n");
        is_good = false;
      }
    }
    std::printf("answers: %d compared with earlier ones, %d others%s\n", n_compared_, n_others_,
                n_others_ > 0 ? ": they HAVE CHANGED" : "");
    return is_good && n_others_ == 0 && n_compared_ > 0;
  }

  Wish wish_;
  std::chrono::steady_clock::time_point start_;
  sluice::Model model_;
  int n_vocab_;
  Session lasting_;
  std::map<int, Tokens> answers_, short_answers_;  // by the request
  int n_compared_ = 0, n_others_ = 0;
  std::vector<Mark> marks_;
  uint64_t settled_ = 0, most_ = 0, settled_vram_ = 0, least_vram_ = UINT64_MAX;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) {
    std::fprintf(stderr, "usage: soak MODEL SECONDS REQUESTS [sim|cuda] [slots]\n");
    return 2;
  }
  // One heap for all threads, and large blocks outside of it as at the start: how many heaps the
  // library opens, and what it chooses to keep of them, would hide a leak.
  mallopt(M_ARENA_MAX, 1);
  mallopt(M_MMAP_THRESHOLD, 64 << 10);
  Wish wish{.model = argv[1], .n_seconds = std::atof(argv[2]), .n_requests = std::atoi(argv[3])};
  wish.on_gpu = argc > 4 && std::string(argv[4]) == "cuda";
  if (argc > 5) wish.n_slots = std::atoi(argv[5]);
  return Soak(wish).run() ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "soak: %s\n", e.what());
  return 1;
}
