// Recorded routing as a compact binary stream: which experts every token used in every layer, and
// with which gates. A trace may be longer than memory: it is written and read step by step.
//
// Format, little-endian:
//   "SLRT", u32 version = 1, u32 n_layers, u32 n_experts, u32 n_experts_used,
//   u32 name bytes, model name, u64 expert_bytes[n_layers]
//   step:  u8 1 (prefill) or 2 (decode), i32 token or -1, u8 n_routed[n_layers], then for every
//          routed expert u16 id and u16 gate (bfloat16: the upper half of an f32, rounded)
//   end:   u8 0, u64 number of steps; a stream without it was cut off
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/trace/routing.h"

namespace sluice::policy {

struct TraceHeader {
  std::string model;
  RoutingShape shape;
  friend bool operator==(const TraceHeader&, const TraceHeader&) = default;
};

// A whole trace in memory.
struct RoutingTrace {
  TraceHeader header;
  std::vector<RoutingStep> steps;
};

// Throws Errc::bad_file where `step` does not fit the shape: ids out of range or twice in a layer,
// more experts than a token uses, gates that are no such numbers. "<where> <number>" opens the
// text.
void check_step(const RoutingShape& shape, const RoutingStep& step, const char* where,
                uint64_t number);

// Hands the bytes to `sink` in pieces of about one step.
class TraceWriter {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;

  TraceWriter(const TraceHeader& header, Sink sink);
  void write(const RoutingStep& step);
  void finish();  // nothing may be written after it

 private:
  void flush();

  RoutingShape shape_;
  Sink sink_;
  std::vector<std::byte> buffer_;
  uint64_t n_steps_ = 0;
  bool finished_ = false;
};

// Takes the bytes in any pieces and gives the steps back. Holds at most the pieces not yet read and
// one step. Whatever is wrong throws Errc::bad_file, with the number of the step.
class TraceReader {
 public:
  void feed(std::span<const std::byte> bytes);

  // Null until enough was fed.
  const TraceHeader* header();

  // False: feed more, or the trace is at its end.
  bool next(RoutingStep& step);

  bool at_end() const { return at_end_; }

  // Call when there is no more to feed: throws if the trace has not come to its end.
  void finish() const;

 private:
  bool read_end();

  std::vector<std::byte> buffer_;
  size_t pos_ = 0;
  std::optional<TraceHeader> header_;
  uint64_t n_steps_ = 0;
  bool at_end_ = false;
};

std::vector<std::byte> encode_trace(const RoutingTrace& trace);
RoutingTrace decode_trace(std::span<const std::byte> bytes);

}  // namespace sluice::policy
