// What the host computes of a step's experts, as kernels wait for it: the host's words and rows
// stand in mapped memory (mailbox.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::backend {
struct LayerLog;
}

namespace sluice::backend::cuda {

// What kernels tell each other of a request to the host: one warp polls the host's word, the others
// wait for what it leaves here. Numbers of requests ascend, so nobody resets it.
struct AnswerRelay {
  uint64_t asked;             // the newest request that is with the host
  unsigned long long polled;  // the newest request that a warp polls for
  uint64_t answered;          // the newest whose wait has ended, with an answer or without
};

struct HostAnswers {
  const uint32_t* step = nullptr;      // [1]; null: the host computes nothing of this layer
  uint64_t number = 0;                 // of its request, but for the step (request_number)
  const uint64_t* answered = nullptr;  // MailboxWords
  uint64_t* fault = nullptr;
  AnswerRelay* relay = nullptr;          // device memory
  const float* rows = nullptr;           // [slots, d_model], once it is answered
  const long long* answer_ns = nullptr;  // that the host took
  const uint64_t* began = nullptr;       // device memory: when the layer's experts were looked up
  LayerLog* log = nullptr;               // what was waited, and taken in all, goes there
};

}  // namespace sluice::backend::cuda
