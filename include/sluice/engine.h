// Many texts at once on one model: requests come and go, and each step computes the next token of
// every text that is running and a piece of a prompt that waits. Tokens only; text is made in
// chat/.
//
//   sluice::Engine engine(model, {.session = {.n_ctx = 8192}});
//   const uint64_t id = engine.submit({.prompt = tokens, .n_tokens = 100, .on_token = show});
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/export.h"
#include "sluice/sluice.h"

namespace sluice {

struct EngineOptions {
  // n_ctx is that of each text. on_routing and reroute are those of sessions: not used here.
  SessionOptions session;
  int n_sequences = 8;  // texts that are computed at the same time
  int n_queued = 64;    // requests that may wait besides; one more is refused
  // KV pages, shared by all texts and by those kept for later ones. 0: room for n_sequences whole
  // contexts, or fewer where memory is short.
  uint64_t kv_bytes = 0;
};

// How a request ended, and what it cost.
struct RequestEnd {
  StopReason reason = StopReason::length;
  std::optional<Error> error;   // with StopReason::failed
  int n_prompt = 0;             // tokens,
  int n_reused = 0;             // of which so many were found computed,
  int n_new = 0;                // and new ones
  double queue_seconds = 0.0;   // before its first step,
  double prompt_seconds = 0.0;  // then to the first new token,
  double decode_seconds = 0.0;  // then to the end
};

// Callbacks are called by the engine's thread, one at a time, and may be empty; while they run, or
// a file is read or written, no text goes on. They may call the engine, but neither drain() nor
// destroy it. One that throws ends its own request (StopReason::failed) and no other; on_end must
// not throw.
struct Request {
  std::vector<TokenId> prompt;
  std::vector<int> keep_at = {};         // as PromptOptions::keep_at
  int n_tokens = -1;                     // at most so many new ones; -1: as many as fit
  std::vector<TokenId> end_tokens = {};  // each of them ends the text

  // A file that is written where the text ends by itself, with all that was computed of it, as
  // Session::save() writes one. Where that fails, so does the request.
  std::string save_to = {};
  // Such a file, in the place of a prompt: its text is read, and kept as one that was computed, for
  // requests that begin like it. No new tokens come. It ends with StopReason::length, or fails with
  // the errors of Session::load(), and the file is not looked at before its turn has come.
  std::string restore_from = {};

  // Picks the next token by the scores of all of them; empty: the most probable.
  std::function<TokenId(std::span<const float> logits)> choose = {};
  // Sees each new token; false ends the text (StopReason::callback).
  std::function<bool(TokenId)> on_token = {};
  // Hears how many tokens of the prompt are done, after each piece.
  std::function<void(int n_done, int n_total)> on_prompt = {};
  // Once for every request that was not refused.
  std::function<void(const RequestEnd&)> on_end = {};

  // Ends it with StopReason::deadline, wherever it is.
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max();
};

// Counters over the life of an engine, and gauges: as they were at the end of the last step.
struct EngineStats {
  int n_running = 0;
  int n_queued = 0;

  int64_t n_submitted = 0;
  int64_t n_refused = 0;  // the queue was full, or the request made no sense
  int64_t n_finished = 0;
  int64_t n_cancelled = 0;
  int64_t n_expired = 0;  // by their deadline
  int64_t n_failed = 0;
  int64_t n_paused = 0;  // times a request gave its KV pages to older ones, to be computed again

  int64_t n_prompt_tokens = 0;  // computed
  int64_t n_reused_tokens = 0;  // of prompts, found computed
  int64_t n_new_tokens = 0;
  // By which texts with recurrent layers got back to a position: by the updates that their tokens
  // had left, and by computing them again.
  int64_t n_replayed_tokens = 0;
  int64_t n_recomputed_tokens = 0;

  int64_t n_steps = 0;
  double prompt_seconds = 0.0;  // of steps with a piece of a prompt
  double decode_seconds = 0.0;  // of the others
  int last_decode_rows = 0;
  int last_prompt_rows = 0;

  int page_tokens = 0;  // of a KV page
  int n_pages = 0;
  int n_free_pages = 0;
  int n_kept_texts = 0;  // that no request uses, kept for those that begin like them
  uint64_t kv_bytes = 0;
  ExpertStats experts;  // without layers where all is computed by the CPU alone
};

// Where each expert of each layer is, and how much it was used lately.
struct ExpertMap {
  enum class Where : uint8_t { ram, vram, arriving };
  int n_layers = 0;
  int n_experts = 0;
  std::vector<Where> where;  // [n_layers, n_experts]
  std::vector<float> heat;   // [n_layers, n_experts]: calls, of which old ones count less and less
};

// One thread of its own takes the steps. Every call is safe from any thread.
class SLUICE_API Engine {
 public:
  // Throws as Session does; and Errc::bad_request where kv_bytes do not hold one context.
  explicit Engine(const Model& model, const EngineOptions& options = {});
  // Ends all requests with StopReason::cancelled.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Puts a request into the queue; its number is never 0. Throws Errc::bad_request where the prompt
  // is empty (or is not, beside restore_from), holds tokens that are none, or does not fit into the
  // context; Errc::busy where the queue is full; Errc::shutting_down after drain().
  uint64_t submit(Request request);
  // Ends it with StopReason::cancelled: at once where it waits, else after the step under way.
  // Numbers of requests that have ended are ignored.
  void cancel(uint64_t id);
  // Refuses new requests, and returns when all others have ended.
  void drain();

  int n_ctx() const;  // of each text
  EngineStats stats() const;
  PlacementInfo placement() const;
  ExpertMap expert_map() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
