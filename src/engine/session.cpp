// The public interface of sluice.h on top of model/ and the stepper.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/error.h"
#include "base/free_memory.h"
#include "base/thread_pool.h"
#include "engine/device/device_steps.h"
#include "engine/machine/session_plan.h"
#include "engine/step/stepper.h"
#include "engine/step/text_steps.h"
#include "engine/woven_weights.h"
#include "gguf/model_file.h"
#include "model/model.h"
#include "sluice/sluice.h"

namespace sluice {
namespace {

ModelInfo make_info(const gguf::ModelFile& file, const model::Config& c) {
  ModelInfo info{.path = file.metadata().origin(),
                 .architecture = c.architecture,
                 .name = c.name,
                 .n_layers = c.n_layers,
                 .d_model = c.d_model,
                 .n_vocab = c.n_vocab,
                 .n_ctx_train = c.n_ctx_train,
                 .n_experts = c.n_experts,
                 .n_experts_used = c.n_experts_used,
                 .file_bytes = file.file_bytes(),
                 .eos = {},
                 .weights = WeightMemory::mapped};
  const std::string_view key = "tokenizer.ggml.eos_token_id";
  if (file.metadata().contains(key)) {
    info.eos = static_cast<TokenId>(file.metadata().get_int(key, {0, c.n_vocab - 1}));
  }
  return info;
}

}  // namespace

struct Model::Impl {
  Impl(const std::string& path, const LoadOptions& options)
      : file(gguf::ModelFile::open(path)),
        model(file),
        info(make_info(file, model.config())),
        pool(std::make_unique<ThreadPool>(options.n_threads)) {
    info.weights = choose_memory(options.weights);
    if (info.weights == WeightMemory::copied) copy_weights(options);
    // Reading ahead what does not fit into memory would only push out its own beginning.
    if (info.weights == WeightMemory::mapped && options.progress &&
        info.file_bytes < free_memory().bytes) {
      file.populate(options.progress);
    }
  }

  // Memory that is free may still be refused, by a limit of this process.
  void copy_weights(const LoadOptions& options) {
    try {
      const uint64_t n_bytes = engine::WovenWeights::bytes_for(model);
      woven.emplace(model, *pool, options.progress);
      held_bytes = n_bytes;
    } catch (const Error& e) {
      if (options.weights == WeightMemory::copied || e.code() != Errc::out_of_memory) throw;
      info.weights = WeightMemory::mapped;
    }
  }

  WeightMemory choose_memory(WeightMemory wish) {
    if (wish != WeightMemory::automatic) return wish;
    const uint64_t n_bytes = engine::WovenWeights::bytes_for(model);
    const bool fits = engine::WovenWeights::leave_room(n_bytes, free_memory().bytes);
    return fits ? WeightMemory::copied : WeightMemory::mapped;
  }

  gguf::ModelFile file;
  model::Model model;
  ModelInfo info;
  std::unique_ptr<ThreadPool> pool;
  std::optional<engine::WovenWeights> woven;
  uint64_t held_bytes = 0;  // by them, in memory that is no longer free
};

Model Model::load(const std::string& path, const LoadOptions& options) {
  if (options.n_threads < 0 || options.n_threads > 1024) {
    throw Error(Errc::bad_request,
                cat(options.n_threads, " threads; expected 1 to 1024, or 0 for one per core"));
  }
  return Model(std::make_shared<const Impl>(path, options));
}

const ModelInfo& Model::info() const { return impl_->info; }

struct Session::Impl {
  Impl(std::shared_ptr<const Model::Impl> m, const SessionOptions& o, int ctx)
      : model(std::move(m)),
        options(o),
        n_ctx(ctx),
        text(make_driver(), model->file.metadata().origin(), options.on_routing) {}

  void choose_device();
  std::unique_ptr<engine::StepDriver> make_driver();
  std::unique_ptr<engine::StepDriver> make_cpu_driver();
  engine::RouteOverride make_reroute();
  void require_valid(std::span<const TokenId> tokens) const;

  std::shared_ptr<const Model::Impl> model;  // shared with the Model: the longer-lived keeps it
  SessionOptions options;
  int n_ctx;
  PlacementInfo placement;  // before `text`, whose driver fills it in
  engine::TextSteps text;
};

// Where the wishes leave it open. That there is a GPU which is not used is worth a line.
void Session::Impl::choose_device() {
  if (options.device.kind != DeviceKind::automatic) return;
  engine::DeviceChoice choice = engine::choose_device({.file = model->file,
                                                       .options = options,
                                                       .n_threads = model->pool->n_threads(),
                                                       .held_bytes = model->held_bytes,
                                                       .weights = model->info.weights},
                                                      &model->model, find_gpus());
  options.device.kind = choice.kind;
  placement.reason = choice.reason;
  if (choice.has_gpu && !choice.reason.empty()) placement.warnings.push_back(choice.reason);
}

std::unique_ptr<engine::StepDriver> Session::Impl::make_driver() {
  choose_device();
  if (options.device.kind != DeviceKind::cpu) {
    return engine::make_device_driver({.file = model->file,
                                       .model = model->model,
                                       .threads = *model->pool,
                                       .options = options,
                                       .held_bytes = model->held_bytes,
                                       .reroute = make_reroute()});
  }
  return make_cpu_driver();
}

// Nothing keeps a session on the CPU from running: memory that is short makes it slow. Mapped
// weights need none that is free.
std::unique_ptr<engine::StepDriver> Session::Impl::make_cpu_driver() {
  SessionOptions on_cpu = options;
  on_cpu.device = {};
  on_cpu.device.machine_path = options.device.machine_path;
  const bool is_copied = model->held_bytes > 0;
  const engine::SessionPlan plan =
      engine::plan_session({.file = model->file,
                            .options = on_cpu,
                            .n_threads = model->pool->n_threads(),
                            .held_bytes = is_copied ? model->held_bytes : model->info.file_bytes,
                            .must_fit = false});
  placement.predicted_decode = plan.plan().forecast().speed.decode;
  placement.predicted_prefill = plan.plan().forecast().speed.prefill;
  placement.prefill_chunk = plan.plan().work.prefill_chunk;
  placement.warnings.insert(placement.warnings.end(), plan.warnings.begin(), plan.warnings.end());
  const policy::Workload& work = plan.plan().work;
  return std::make_unique<engine::Stepper>(model->model, backend::make_cpu_ops(*model->pool),
                                           engine::kv_options(work), work.max_rows(),
                                           make_reroute());
}

engine::RouteOverride Session::Impl::make_reroute() {
  if (!options.reroute) return {};
  return [this](LayerId layer, int64_t row, std::span<int32_t> experts) {
    options.reroute(text.first_of_step() + static_cast<int>(row), layer.value, experts);
  };
}

// Before anything is computed, so that a bad request leaves the session as it was.
void Session::Impl::require_valid(std::span<const TokenId> tokens) const {
  const int n_held = text.n_tokens();
  if (tokens.size() > static_cast<size_t>(n_ctx - n_held)) {
    throw Error(Errc::bad_request,
                cat(tokens.size(), " tokens do not fit into the context: it holds ", n_ctx, " and ",
                    n_held, " are in use; ask for a larger context (-c) or give fewer tokens"));
  }
  for (const TokenId token : tokens) {
    if (token >= 0 && token < model->info.n_vocab) continue;
    throw Error(Errc::bad_request, cat("token id ", token, " is out of range; expected 0 to ",
                                       model->info.n_vocab - 1));
  }
}

Session::Session(const Model& model, const SessionOptions& options) {
  const ModelInfo& info = model.info();
  if (options.n_ctx < 0 || options.prefill_chunk < 0) {
    throw Error(
        Errc::bad_request,
        cat("a context of ", options.n_ctx, " tokens, computed ", options.prefill_chunk,
            " at a time; expected a context of 1 or more in chunks of 1 or more (0: default)"));
  }
  const int n_ctx = options.n_ctx > 0 ? options.n_ctx : policy::default_context(info.n_ctx_train);
  impl_ = std::make_unique<Impl>(model.impl_, options, n_ctx);
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

bool Session::append(std::span<const TokenId> tokens, const OnLogits& on_logits,
                     const PromptOptions& options) {
  impl_->require_valid(tokens);
  return impl_->text.prefill(tokens, on_logits, options);
}

GenerateResult Session::generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                                 const std::function<bool(TokenId)>& on_token) {
  using Known = engine::TextSteps::Known;
  engine::TextSteps& text = impl_->text;
  if (prompt.empty() && !text.has_logits()) {
    throw Error(Errc::bad_request, "the prompt is empty; give at least one token to continue from");
  }
  if (!append(prompt, {}, options.prompt)) return {.tokens = {}, .reason = StopReason::callback};

  GenerateResult result;
  while (std::ssize(result.tokens) < options.n_tokens) {
    const bool is_given = result.tokens.size() < options.given.size();
    const TokenId token = is_given         ? options.given[result.tokens.size()]
                          : options.choose ? options.choose(text.last_logits())
                                           : text.best_token();
    if (std::ranges::find(options.end_tokens, token) != options.end_tokens.end()) {
      result.reason = StopReason::end_of_text;
      break;
    }
    result.tokens.push_back(token);
    const bool go_on = !on_token || on_token(token);
    if (n_tokens() == n_ctx()) {
      result.reason = StopReason::context_full;
      break;
    }
    impl_->require_valid({&token, 1});
    text.decode(token, options.choose ? Known::all : Known::best);
    if (!go_on) {
      result.reason = StopReason::callback;
      break;
    }
  }
  return result;
}

void Session::truncate(int n_tokens) {
  if (n_tokens < 0 || n_tokens > this->n_tokens()) {
    throw Error(Errc::bad_request, cat("cannot keep ", n_tokens, " of ", this->n_tokens(),
                                       " tokens; expected a number from 0 to that"));
  }
  impl_->text.truncate(n_tokens);
}

int Session::n_tokens() const { return impl_->text.n_tokens(); }
int Session::n_ctx() const { return impl_->n_ctx; }
const Stats& Session::stats() const { return impl_->text.stats(); }

const PlacementInfo& Session::placement() const {
  if (impl_->options.device.kind == DeviceKind::cpu) return impl_->placement;
  return impl_->placement = impl_->text.driver().placement();
}

ExpertStats Session::expert_stats() const { return impl_->text.driver().stats(); }

}  // namespace sluice
