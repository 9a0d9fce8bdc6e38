// What a driver remembers of its sequences: their tokens, the pages of the KV caches and the
// recurrent states, which go back and fork together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>

#include "engine/step/recurrent_states.h"
#include "engine/step/step_driver.h"

namespace sluice::engine {

// How bytes move between the host and the memory of a layer, which may be a device's.
struct MemoryCopies {
  int n_host_layers = 0;  // the first ones, whose memory the host can address
  CopyBytes device_copy;  // enqueued; both places stay as they are until device_finish()
  std::function<void()> device_finish;

  bool is_device(int layer) const { return layer >= n_host_layers; }
  void copy(bool is_device, std::byte* to, const std::byte* from, uint64_t n_bytes) const {
    is_device ? device_copy(to, from, n_bytes) : void(std::copy_n(from, n_bytes, to));
  }
  void finish(bool is_device) const {
    if (is_device) device_finish();
  }
};

struct TextMemory {
  StepRows& rows;
  RecurrentStates& states;
  std::span<KvCache* const> caches;
  int n_layers = 0;  // of the model
  RecurrentStates::Replay replay;
  MemoryCopies copies;

  // A text is made shorter, or another made of its beginning, as far as points and updates lead.
  // Returns the tokens from there on: they are to be computed again.
  std::vector<TokenId> truncate(SequenceId sequence, int n_tokens) const;
  std::vector<TokenId> fork(SequenceId from, SequenceId to, int n_tokens) const;
  // Those that forked sequences need before they write (KvCache::make_copies).
  void make_page_copies() const;
};

// Appends tokens whose logits nobody wants, in steps as narrow as decoding's, so that it gives the
// bits that decoding gave. Returns how many they are.
int64_t compute_again(StepDriver& driver, SequenceId sequence, std::span<const TokenId> tokens);

}  // namespace sluice::engine
