// sluice: Mixture-of-Experts language models from GGUF files. Load a model, open a session, feed it
// tokens, get tokens back. (Text in, text out: chat.h. In C this is sluice_c.h.)
//
//   sluice::Model model = sluice::Model::load("model.gguf");
//   sluice::Session session(model, {.n_ctx = 4096});
//   session.generate(prompt, {.n_tokens = 100}, [](sluice::TokenId t) { print(t); return true; });
//
// Whatever goes wrong from outside (file, request, memory, device) is thrown as sluice::Error.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifndef __cplusplus
#include "sluice/sluice_c.h"
#else
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/device.h"
#include "sluice/error.h"
#include "sluice/expert_stats.h"
#include "sluice/export.h"

namespace sluice {

using TokenId = int32_t;

// Where the weights are while a model runs: copied into memory in the layout that is read fastest,
// or in the file, mapped, whose pages the system may drop and read again. By itself a model is
// copied where memory allows.
enum class WeightMemory { automatic, copied, mapped };

struct LoadOptions {
  int n_threads = 0;  // 0: one per physical core that the process may use
  WeightMemory weights = WeightMemory::automatic;

  // Called while weights are read; empty: mapped weights are read as they are needed.
  std::function<void(uint64_t bytes_done, uint64_t bytes_total)> progress;
};

struct ModelInfo {
  std::string path;  // of the file it was loaded from
  std::string architecture;
  std::string name;
  int n_layers = 0;
  int d_model = 0;
  int n_vocab = 0;
  int n_ctx_train = 0;  // the context the model was trained for
  int n_experts = 0;
  int n_experts_used = 0;
  bool is_dense = false;  // each layer has one network, which counts as its one expert
  uint64_t file_bytes = 0;
  std::optional<TokenId> eos;  // the token that ends a text, where the file names one
  WeightMemory weights = WeightMemory::mapped;  // copied or mapped
  std::string ignored;  // what of the file is left aside, in words; mostly nothing
};

// A loaded model. Copies share it, and sessions keep it alive.
class SLUICE_API Model {
 public:
  static Model load(const std::string& path, const LoadOptions& options = {});

  const ModelInfo& info() const;

 private:
  friend class Session;
  friend class Engine;
  struct Impl;
  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;  // shared: a session may outlive the Model it was made from
};

// How keys and values of past tokens are kept.
enum class KvType { f32, f16, bf16, q8_0, q4_0 };

// The experts that one token used, best first: [n_layers, n_used], with the weights of their sums.
struct RoutedToken {
  TokenId token = 0;
  bool is_prompt = false;
  int n_used = 0;
  std::span<const int32_t> experts;
  std::span<const float> weights;
};

struct SessionOptions {
  int n_ctx = 0;  // tokens the session can hold; 0: as trained, at most 4096
  KvType k_type = KvType::f16;
  KvType v_type = KvType::f16;
  // Tokens of a prompt computed together; 1 is pure decode. 0: 512 on the CPU; with a device more,
  // where its memory allows (PlacementInfo::prefill_chunk).
  int prefill_chunk = 0;
  DeviceOptions device;

  // Called while experts are loaded before the first token.
  std::function<void(uint64_t n_done, uint64_t n_total)> progress;

  // Sees what every token used, after its step; valid during the call.
  std::function<void(const RoutedToken&)> on_routing;

  // Puts other experts ([n_used], all different) in the place of those that the router will choose
  // for the token at `pos`: to measure with a recorded routing. Asked before the step, for every
  // token and layer; all are -1 then, and what is left so is the router's.
  std::function<void(int pos, int layer, std::span<int32_t> experts)> reroute;
};

// How a prompt is taken in. It is computed in chunks of SessionOptions::prefill_chunk tokens.
struct PromptOptions {
  // Hears how many of the prompt's tokens are done: at the start, and after every layer of a chunk
  // with that share of the chunk.
  std::function<void(int n_done, int n_total)> progress = {};

  // Asked before each chunk; true ends the prompt there. The text then holds the chunks before.
  std::function<bool()> should_stop = {};

  // Positions, ascending, to which the text may have to go back, such as the ends of messages: a
  // model with recurrent layers keeps its state there, others can go back anywhere. More points
  // than there is room for are thinned out, the newest last.
  std::vector<int> keep_at = {};

  // Session::append hands over the logits of tokens from this position on. For those before it none
  // are computed.
  int logits_from = 0;
};

struct GenerateOptions {
  int n_tokens = 128;                    // at most so many new tokens
  std::vector<TokenId> end_tokens = {};  // each of them ends the text

  // Picks the next token by the scores of all of them; empty: the most probable.
  std::function<TokenId(std::span<const float> logits)> choose = {};

  // Tokens that follow whatever the model thinks, to replay or to measure: the i-th new one is
  // given[i], while there are any. `choose` is not asked for them.
  std::span<const TokenId> given = {};

  PromptOptions prompt = {};
};

// The last three are those of an Engine's requests (engine.h).
enum class StopReason { length, end_of_text, callback, context_full, cancelled, deadline, failed };

struct GenerateResult {
  std::vector<TokenId> tokens;  // the new ones; an end token is not among them
  StopReason reason = StopReason::length;
};

// Sums over the life of a session. Seconds are those of the device's clock, which may be virtual.
struct Stats {
  int64_t n_prefill_tokens = 0;
  int64_t n_prefill_steps = 0;  // chunks
  int64_t n_decode_tokens = 0;
  double prefill_seconds = 0.0;
  double decode_seconds = 0.0;
  // Tokens by which truncate() got to its position with recurrent layers: by the updates they had
  // left, and by computing them again.
  int64_t n_replayed_tokens = 0;
  int64_t n_recomputed_tokens = 0;
  uint64_t kv_bytes = 0;  // held for the whole context
};

// One text in the making. Sessions of one model may live side by side; calls to one session must
// not overlap. Where a call throws, the text holds the chunks and tokens that were finished before,
// and the session can be used as ever.
class SLUICE_API Session {
 public:
  explicit Session(const Model& model, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Sees the scores of what may follow the token at `pos`: n_vocab numbers, not normalised, valid
  // during the call.
  using OnLogits = std::function<void(int pos, std::span<const float> logits)>;

  // Appends tokens to the text; `on_logits` (may be empty) is called for each of them, in order.
  // Says whether all were appended: options.should_stop may have left some out.
  bool append(std::span<const TokenId> tokens, const OnLogits& on_logits = {},
              const PromptOptions& options = {});

  // Appends the prompt and continues it; the new tokens become part of the text.
  // `on_token` (may be empty) sees each of them, and ends the generation by returning false. A
  // prompt that was stopped ends it too: StopReason::callback, without tokens.
  GenerateResult generate(std::span<const TokenId> prompt, const GenerateOptions& options = {},
                          const std::function<bool(TokenId)>& on_token = {});

  // Forgets all but the first n_tokens. Models with recurrent layers can go back to some points of
  // a text and by 16 tokens of an answer; else what lies between such a point and n_tokens is
  // computed again.
  void truncate(int n_tokens);

  // Of the first n_tokens, how many the session can go back to without computing any.
  int kept_tokens(int n_tokens) const;

  // Writes the text to a file, with all that was computed of it. The file appears whole or not at
  // all. Throws Errc::bad_request where there is no text yet, Errc::bad_file where it cannot be
  // written.
  void save(const std::string& path);

  // Becomes the text of such a file, which may have been written with another device, and returns
  // its tokens. What follows is what would have followed there, to the bit where devices agree; the
  // scores of the last token are not in the file. Of models with recurrent layers no earlier point
  // is kept. Throws Errc::bad_file where the file cannot be read or is damaged, and
  // Errc::bad_request where it is no saved text, or one of another model, of other KV types, of
  // another version or too long for the context. The session is then as before; where a device
  // fails later, it is empty.
  std::vector<TokenId> load(const std::string& path);

  int n_tokens() const;  // in the text so far
  int n_ctx() const;
  const Stats& stats() const;
  const PlacementInfo& placement() const;
  ExpertStats expert_stats() const;  // without layers where all is computed by the CPU alone

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice

#endif  // __cplusplus
