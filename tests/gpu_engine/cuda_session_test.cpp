// Sessions on a GPU, as a user has them (--device cuda): near the CPU's logits for every
// architecture, type and KV cache, those of Hugging Face transformers, the demo model's answers,
// and what a greedy token costs in launches, waits and bytes.
// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "gpu/device.h"
#include "gpu_engine/noise.h"
#include "model_file/tokenizer_data.h"
#include "sluice/sluice.h"
#include "text/tokenizer/tokenizer.h"
#include "unit/engine/counted_device.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

using CudaSessionTest = backend::cuda::test::DeviceTest;

SessionOptions on_gpu(SessionOptions options = {}) {
  options.device.kind = DeviceKind::cuda;
  return options;
}

struct BothLogits {
  Logits want, got;
};

// The CPU's logits and choice of experts for a text; then the GPU's with these, of the first
// n_prompt tokens in a wide step or in steps of 16, of the others one by one.
BothLogits run_side_by_side(const Model& model, SessionOptions options,
                            std::span<const TokenId> tokens, size_t n_prompt) {
  BothLogits both;
  std::vector<std::vector<int32_t>> routed;  // by token: [n_layers, n_used]
  options.on_routing = [&](const RoutedToken& t) {
    routed.emplace_back(t.experts.begin(), t.experts.end());
  };
  const auto keep = [](Logits& all) {
    return [&all](int, std::span<const float> l) { all.insert(all.end(), l.begin(), l.end()); };
  };
  Session cpu(model, options);
  cpu.append(tokens, keep(both.want));
  options.on_routing = {};
  options.reroute = [&](int pos, int layer, std::span<int32_t> experts) {
    const auto& all = routed[static_cast<size_t>(pos)];
    std::copy_n(all.begin() + layer * std::ssize(experts), experts.size(), experts.begin());
  };
  Session gpu(model, on_gpu(options));
  gpu.append(tokens.first(n_prompt), keep(both.got));
  for (const TokenId token : tokens.subspan(n_prompt)) gpu.append({&token, 1}, keep(both.got));
  return both;
}

struct NearCase {
  const char* mix;
  KvType k, v;
};

KvOptions kv_of(const NearCase& c) {
  policy::Workload work{.n_ctx = 128};
  const auto type = [](KvType t) { return static_cast<policy::KvType>(t); };
  work.k_type = type(c.k), work.v_type = type(c.v);
  return kv_options(work);
}

// The bars are 1e-5 in the mean and 1e-3 at most. What the last bits of attention make of these
// steep little models is more, where inputs are rounded to int8: the GPU may not make more of them
// than noise does on the CPU. Which of them has bad luck is chance, so it is the worst of all that
// counts.
TEST_F(CudaSessionTest, LogitsAreNearTheCpusForEveryArchitectureAndType) {
  const NearCase cases[] = {
      {"F32", KvType::f32, KvType::f32},    {"F16", KvType::f16, KvType::f16},
      {"BF16", KvType::bf16, KvType::bf16}, {"Q8_0", KvType::q8_0, KvType::q8_0},
      {"Q4_0", KvType::q4_0, KvType::q4_0}, {"Q4_K_M", KvType::f16, KvType::f16},
      {"Q8_0", KvType::f16, KvType::q8_0}};
  const std::vector<TokenId> tokens = random_tokens(100, 5);
  Divergences worst, worst_noise;
  for (const char* const architecture : model::test::kArchitectures) {
    for (const NearCase& c : cases) {
      const OpenModel file(architecture, c.mix);  // a vocabulary of 261: no whole stripes
      const Model model = Model::load(file.path(), {.n_threads = 2});
      const auto n_vocab = static_cast<size_t>(model.info().n_vocab);
      const auto [want, got] =
          run_side_by_side(model, {.n_ctx = 128, .k_type = c.k, .v_type = c.v}, tokens, 70);
      ASSERT_EQ(want.size(), got.size());
      double sum = 0.0, most = 0.0;
      for (size_t i = 0; i < want.size(); i += n_vocab) {
        const double kl =
            divergence(std::span(want).subspan(i, n_vocab), std::span(got).subspan(i, n_vocab));
        sum += kl, most = std::max(most, kl);
      }
      const double mean = sum / static_cast<double>(tokens.size());
      const Divergences noise = noise_of(*file, kv_of(c), tokens);
      std::printf("%-9s %-7s KL mean %.2g most %.2g; of noise %.2g, %.2g\n", architecture, c.mix,
                  mean, most, noise.mean, noise.most);
      if (quant::is_float(model_file::QuantMix::parse(c.mix).base())) {
        EXPECT_LE(mean, 1e-7) << architecture << " " << c.mix;
        EXPECT_LE(most, 1e-5) << architecture << " " << c.mix;
        continue;
      }
      worst = {std::max(worst.mean, mean), std::max(worst.most, most)};
      worst_noise = {std::max(worst_noise.mean, noise.mean),
                     std::max(worst_noise.most, noise.most)};
    }
  }
  EXPECT_LE(worst.mean, std::max(1e-5, worst_noise.mean));
  EXPECT_LE(worst.most, std::max(1e-3, worst_noise.most));
}

// Trained models, in the types they are shipped in.
TEST_F(CudaSessionTest, TheDemoModelsLogitsAreNearTheCpus) {
  for (const std::string name : {"demo-attn", "demo-hybrid"}) {
    const Model model = Model::load(SLUICE_SHIPPED_MODELS "/" + name + ".gguf", {.n_threads = 2});
    const auto n_vocab = static_cast<size_t>(model.info().n_vocab);
    std::ifstream json_file(std::string(SLUICE_TEST_DATA) + "/demo/" + name + ".json");
    const std::vector<std::vector<TokenId>> texts = nlohmann::json::parse(json_file).at("tokens");
    double sum = 0.0, most = 0.0;
    size_t n_rows = 0;
    for (const auto& tokens : texts) {
      const auto [want, got] =
          run_side_by_side(model, {.n_ctx = 256}, tokens, tokens.size() * 7 / 10);
      for (size_t i = 0; i < want.size(); i += n_vocab, ++n_rows) {
        const double kl =
            divergence(std::span(want).subspan(i, n_vocab), std::span(got).subspan(i, n_vocab));
        sum += kl, most = std::max(most, kl);
      }
    }
    std::printf("%s KL mean %.2g most %.2g of %zu rows\n", name.c_str(),
                sum / static_cast<double>(n_rows), most, n_rows);
    EXPECT_LE(sum / static_cast<double>(n_rows), 1e-5) << name;
    EXPECT_LE(most, 1e-3) << name;
  }
}

// Errors of a state fade: after 2,000 tokens one by one a hybrid is as near to the CPU as at first.
TEST_F(CudaSessionTest, TwoThousandTokensOfAHybridDoNotDriftApart) {
  const Model model = Model::load(SLUICE_SHIPPED_MODELS "/demo-hybrid.gguf", {.n_threads = 2});
  const auto n_vocab = static_cast<size_t>(model.info().n_vocab);
  Session writer(model, {.n_ctx = 2200});
  std::vector<TokenId> tokens = random_tokens(16, 3);
  const auto answer = writer.generate(tokens, {.n_tokens = 2000}).tokens;
  tokens.insert(tokens.end(), answer.begin(), answer.end());
  const auto [want, got] = run_side_by_side(model, {.n_ctx = 2200}, tokens, 16);
  ASSERT_EQ(got.size(), want.size());
  Divergences quarters[4];
  const size_t n_rows = want.size() / n_vocab;
  for (size_t r = 0; r < n_rows; ++r) {
    const double kl = divergence(std::span(want).subspan(r * n_vocab, n_vocab),
                                 std::span(got).subspan(r * n_vocab, n_vocab));
    Divergences& quarter = quarters[r * 4 / n_rows];
    quarter.mean += kl / static_cast<double>(n_rows / 4);
    quarter.most = std::max(quarter.most, kl);
  }
  for (const Divergences& quarter : quarters) {
    std::printf("a quarter of %zu rows: KL mean %.2g most %.2g\n", n_rows, quarter.mean,
                quarter.most);
    EXPECT_LE(quarter.mean, 1e-5);
    EXPECT_LE(quarter.most, 1e-3);
  }
}

// A text that is read back, into a session of its own or another, goes on with the same bits.
TEST_F(CudaSessionTest, ASavedHybridGoesOnAsItDidBefore) {
  const std::vector<TokenId> text = random_tokens(150, 1), more = random_tokens(20, 2);
  const TempDir dir;
  SessionOptions options = on_gpu({.n_ctx = 200, .prefill_chunk = 64});
  options.device.moe = ExpertPlace::gpu;
  const auto go_on = [&](Session& session) {
    Logits all;
    const auto keep = [&](int, std::span<const float> l) {
      all.insert(all.end(), l.begin(), l.end());
    };
    session.append(more, keep);
    for (const TokenId token : more) session.append({&token, 1}, keep);
    return all;
  };
  for (const char* const architecture : model::test::kHybrids) {
    const OpenModel file(architecture, "Q4_K_M");
    const Model model = Model::load(file.path(), {.n_threads = 2});
    Session session(model, options), other(model, options);
    ASSERT_GT(session.placement().n_gpu_layers, 0);
    for (const size_t n : {3, 64, 131}) {
      const std::string what = cat(architecture, ", ", n, " tokens");
      session.truncate(0);
      session.append(std::span(text).first(n));
      for (const TokenId token : std::span(more).first(5)) session.append({&token, 1});
      session.save(dir / "t");
      const Logits expected = go_on(session);
      const std::vector<TokenId> read = session.load(dir / "t");
      EXPECT_EQ(read.size(), n + 5) << what;
      expect_same_bits(expected, go_on(session), what);
      EXPECT_EQ(other.load(dir / "t"), read) << what;
      expect_same_bits(expected, go_on(other), what + ", in another session");
    }
  }
}

// Golden vectors of transformers (tests/model/golden_test.cpp), with the GPU's own routing.
TEST_F(CudaSessionTest, LogitsAreThoseOfTransformers) {
  for (const std::string architecture :
       {"qwen3moe", "qwen2moe", "olmoe", "llama", "qwen35moe", "qwen3next"}) {
    const std::string base = std::string(SLUICE_TEST_DATA) + "/golden/" + architecture;
    std::ifstream json_file(base + ".json");
    const std::vector<std::vector<TokenId>> texts = nlohmann::json::parse(json_file).at("tokens");
    std::ifstream binary(base + ".logits.bin", std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(binary), {});
    std::vector<float> expected(bytes.size() / sizeof(float));
    std::memcpy(expected.data(), bytes.data(), bytes.size());
    const Model model = Model::load(base + ".gguf");
    float worst = 0.0f;
    size_t at = 0;
    for (const auto& tokens : texts) {
      Session session(model, on_gpu({.k_type = KvType::f32, .v_type = KvType::f32}));
      session.append(tokens, [&](int, std::span<const float> logits) {
        for (const float logit : logits) worst = std::max(worst, std::abs(logit - expected[at++]));
      });
    }
    EXPECT_EQ(at, expected.size());
    EXPECT_LE(worst, 2e-3f) << architecture;
    std::printf("%-9s within %.2g of transformers\n", architecture.c_str(), worst);
  }
}

// Of 300 questions that training never saw, as many answers as on the CPU; two that differ are a
// near tie of two tokens, of which the CPU's bits decide for one.
TEST_F(CudaSessionTest, TheDemoModelsAnswerAsOnTheCpu) {
  for (const std::string name : {"demo-attn", "demo-hybrid"}) {
    const std::string path = SLUICE_SHIPPED_MODELS "/" + name + ".gguf";
    const text::Tokenizer tokenizer(
        model_file::read_tokenizer_data(gguf::ModelFile::open(path).metadata()));
    const auto ends = tokenizer.end_of_generation();
    const GenerateOptions options{.n_tokens = 200, .end_tokens = {ends.begin(), ends.end()}};
    const Model model = Model::load(path, {.n_threads = 2});
    Session cpu(model, {.n_ctx = 1024}), gpu(model, on_gpu({.n_ctx = 1024}));
    std::ifstream file(std::string(SLUICE_TEST_DATA) + "/demo/questions.jsonl");
    int n_asked = 0, n_same = 0;
    for (std::string line; std::getline(file, line); ++n_asked) {
      const std::string prompt = nlohmann::json::parse(line).at("prompt");
      const auto tokens = tokenizer.encode(prompt, {.add_special = true, .parse_special = true});
      cpu.truncate(0);
      gpu.truncate(0);
      n_same += cpu.generate(tokens, options).tokens == gpu.generate(tokens, options).tokens;
    }
    EXPECT_EQ(n_asked, 300);
    EXPECT_GE(n_same, 298) << name;
    std::printf("%s: %d of %d answers are the CPU's\n", name.c_str(), n_same, n_asked);
  }
}

// After the first steps nothing is allocated.
TEST_F(CudaSessionTest, TenThousandTokensLeaveFreeMemoryAsItIs) {
  const OpenModel file("qwen3moe", "Q4_K_M");
  const Model model = Model::load(file.path(), {.n_threads = 1});
  Session session(model, on_gpu({.n_ctx = 10'100}));
  session.generate(random_tokens(40, 3), {.n_tokens = 20});
  const GpuList before = find_gpus();
  session.generate({}, {.n_tokens = 10'000});
  EXPECT_GE(session.n_tokens(), 10'000);
  const GpuList after = find_gpus();
  EXPECT_EQ(before.gpus[0].vram_free, after.gpus[0].vram_free);
}

// One launch, one wait, and what pick() writes: 16 bytes of the best token.
TEST_F(CudaSessionTest, AGreedyTokenIsOneLaunchOneWaitAndFewBytes) {
  const OpenModel model("qwen3moe", "Q4_K_M");
  const policy::ModelShape shape = model.shape();
  CountedDevice device(backend::make_cuda_device(0));
  RegisteredExperts experts(*model, device);
  ThreadPool threads(1);
  ExpertRuntimeOptions o = options_for(shape, {.share = 1.0, .max_rows = 16, .logs = false});
  for (policy::CacheLayer& layer : o.cache.layers) layer.pinned = true;
  ExpertRuntime runtime(experts, shape, device, threads, o);
  TokenId token = 7;
  const auto step = [&] {
    const StepRow row{token, {}, false, 1};
    StepListener listener;
    listener.on_pick = [&](int64_t, const backend::PickedRow& p) { token = p.best[0].token; };
    runtime.step({&row, 1}, policy::Phase::decode, listener);
  };
  step();  // records
  const CountedDevice::Counts before = device.counts;
  constexpr int kTokens = 20;
  for (int i = 0; i < kTokens; ++i) step();
  EXPECT_EQ(device.counts.n_replays - before.n_replays, kTokens);
  EXPECT_EQ(device.counts.n_waits - before.n_waits, kTokens);
  EXPECT_EQ(device.counts.n_others - before.n_others, 0) << "work besides the recording";
}

}  // namespace
}  // namespace sluice::engine::test
