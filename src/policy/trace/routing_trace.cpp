// See routing_trace.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/routing_trace.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "policy/trace/byte_codec.h"

namespace sluice::policy {

namespace {

constexpr char kMagic[4] = {'S', 'L', 'R', 'T'};
constexpr uint32_t kVersion = 1;
constexpr size_t kFixedHeader = sizeof kMagic + 5 * sizeof(uint32_t);
constexpr uint32_t kMaxName = 4096;
constexpr float kMaxGate = 1e6f;
constexpr uint8_t kEnd = 0;  // else 1 + Phase

[[noreturn]] void fail(const std::string& text) { throw Error(Errc::bad_file, text); }

// To nearest, ties to even. Gates are finite and not negative.
uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

float from_bfloat16(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

}  // namespace

void check_step(const RoutingShape& shape, const RoutingStep& step, const char* where,
                uint64_t number) {
  const auto n_layers = static_cast<size_t>(shape.n_layers);
  CHECK(step.begin.size() == n_layers + 1 &&
        static_cast<size_t>(step.begin.back()) == step.routed.size());
  for (int l = 0; l < shape.n_layers; ++l) {
    const auto routed = step.layer(l);
    if (routed.size() > static_cast<size_t>(shape.n_experts_used)) {
      fail(cat(where, " ", number, ": ", routed.size(), " experts in layer ", l,
               "; expected at most ", shape.n_experts_used));
    }
    std::bitset<kMaxExperts> seen;
    for (const RoutedExpert& r : routed) {
      const int expert = r.expert.value;
      if (expert < 0 || expert >= shape.n_experts) {
        fail(cat(where, " ", number, ": expert ", expert, " in layer ", l, "; expected 0 to ",
                 shape.n_experts - 1));
      }
      if (seen.test(static_cast<size_t>(expert))) {
        fail(
            cat(where, " ", number, ": expert ", expert, " twice in layer ", l, "; expected once"));
      }
      seen.set(static_cast<size_t>(expert));
      if (!(r.weight >= 0.0f && r.weight <= kMaxGate)) {  // catches NaN too
        fail(cat(where, " ", number, ": gate ", r.weight, " in layer ", l, "; expected 0 to ",
                 kMaxGate));
      }
    }
  }
}

TraceWriter::TraceWriter(const TraceHeader& header, Sink sink)
    : shape_(header.shape), sink_(std::move(sink)) {
  check_shape(shape_, "routing trace");
  if (header.model.size() > kMaxName) {
    fail(cat("routing trace: a model name of ", header.model.size(), " bytes; expected at most ",
             kMaxName));
  }
  put_bytes(buffer_, kMagic, sizeof kMagic);
  put(buffer_, kVersion);
  put(buffer_, static_cast<uint32_t>(shape_.n_layers));
  put(buffer_, static_cast<uint32_t>(shape_.n_experts));
  put(buffer_, static_cast<uint32_t>(shape_.n_experts_used));
  put(buffer_, static_cast<uint32_t>(header.model.size()));
  put_bytes(buffer_, header.model.data(), header.model.size());
  for (const uint64_t bytes : shape_.expert_bytes) put(buffer_, bytes);
  flush();
}

void TraceWriter::write(const RoutingStep& step) {
  CHECK(!finished_);
  check_step(shape_, step, "routing trace, step", n_steps_);
  put(buffer_, static_cast<uint8_t>(1 + static_cast<int>(step.phase)));
  put(buffer_, step.token);
  for (int l = 0; l < shape_.n_layers; ++l) {
    put(buffer_, static_cast<uint8_t>(step.layer(l).size()));
  }
  for (const RoutedExpert& r : step.routed) {
    put(buffer_, static_cast<uint16_t>(r.expert.value));
    put(buffer_, to_bfloat16(r.weight));
  }
  ++n_steps_;
  flush();
}

void TraceWriter::finish() {
  CHECK(!finished_);
  put(buffer_, kEnd);
  put(buffer_, n_steps_);
  flush();
  finished_ = true;
}

void TraceWriter::flush() {
  sink_(buffer_);
  buffer_.clear();
}

void TraceReader::feed(std::span<const std::byte> bytes) {
  if (at_end_ && !bytes.empty()) {
    fail(cat("routing trace: ", bytes.size(), " bytes after its end; expected none"));
  }
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(pos_));
  pos_ = 0;
  put_bytes(buffer_, bytes.data(), bytes.size());
}

const TraceHeader* TraceReader::header() {
  if (header_) return &*header_;
  const size_t n_magic = std::min(buffer_.size(), sizeof kMagic);
  if (n_magic > 0 && std::memcmp(buffer_.data(), kMagic, n_magic) != 0) {
    fail("routing trace: it does not begin with \"SLRT\"; expected a trace that sluice wrote");
  }
  if (buffer_.size() < kFixedHeader) return nullptr;
  size_t pos = sizeof kMagic;
  if (const auto version = take<uint32_t>(buffer_, pos); version != kVersion) {
    fail(cat("routing trace: version ", version, "; expected ", kVersion));
  }
  const auto n_layers = take<uint32_t>(buffer_, pos);
  const auto n_experts = take<uint32_t>(buffer_, pos);
  const auto n_used = take<uint32_t>(buffer_, pos);
  const auto n_name = take<uint32_t>(buffer_, pos);
  if (n_layers > kMaxLayers || n_experts > kMaxExperts || n_used > kMaxExpertsUsed ||
      n_name > kMaxName) {
    fail(cat("routing trace: ", n_layers, " layers, ", n_experts, " experts, ", n_used,
             " used, a name of ", n_name, " bytes; expected at most ", kMaxLayers, ", ",
             kMaxExperts, ", ", kMaxExpertsUsed, " and ", kMaxName));
  }
  if (buffer_.size() < pos + n_name + n_layers * sizeof(uint64_t)) return nullptr;
  TraceHeader header;
  header.model.assign(reinterpret_cast<const char*>(buffer_.data()) + pos, n_name);
  pos += n_name;
  header.shape = {.n_layers = static_cast<int>(n_layers),
                  .n_experts = static_cast<int>(n_experts),
                  .n_experts_used = static_cast<int>(n_used),
                  .expert_bytes = {}};
  for (uint32_t l = 0; l < n_layers; ++l) {
    header.shape.expert_bytes.push_back(take<uint64_t>(buffer_, pos));
  }
  check_shape(header.shape, "routing trace");
  pos_ = pos;
  header_ = std::move(header);
  return &*header_;
}

bool TraceReader::read_end() {
  constexpr size_t kEndBytes = 1 + sizeof(uint64_t);
  if (buffer_.size() - pos_ < kEndBytes) return false;
  size_t pos = pos_ + 1;
  if (const auto n = take<uint64_t>(buffer_, pos); n != n_steps_) {
    fail(cat("routing trace: it says it has ", n, " steps; ", n_steps_, " were found"));
  }
  if (pos != buffer_.size()) {
    fail(cat("routing trace: ", buffer_.size() - pos, " bytes after its end; expected none"));
  }
  pos_ = pos;
  at_end_ = true;
  return false;
}

bool TraceReader::next(RoutingStep& step) {
  if (at_end_ || header() == nullptr || pos_ == buffer_.size()) return false;
  const RoutingShape& shape = header_->shape;
  const auto n_layers = static_cast<size_t>(shape.n_layers);
  const auto kind = std::to_integer<uint8_t>(buffer_[pos_]);
  if (kind == kEnd) return read_end();
  if (kind > 2) {
    fail(cat("routing trace, step ", n_steps_, ": its kind is ", int{kind},
             "; expected 1 (prefill), 2 (decode) or 0 (the end)"));
  }
  size_t pos = pos_ + 1;
  if (buffer_.size() - pos < sizeof(TokenId) + n_layers) return false;
  step.phase = static_cast<Phase>(kind - 1);
  step.token = take<TokenId>(buffer_, pos);
  step.begin.assign(1, 0);
  for (size_t l = 0; l < n_layers; ++l) {
    step.begin.push_back(step.begin.back() + take<uint8_t>(buffer_, pos));
  }
  const auto n_routed = static_cast<size_t>(step.begin.back());
  if (buffer_.size() - pos < n_routed * 2 * sizeof(uint16_t)) return false;
  step.routed.clear();
  for (size_t i = 0; i < n_routed; ++i) {
    const auto expert = take<uint16_t>(buffer_, pos);
    step.routed.push_back({ExpertId(expert), from_bfloat16(take<uint16_t>(buffer_, pos))});
  }
  check_step(shape, step, "routing trace, step", n_steps_);
  pos_ = pos;
  ++n_steps_;
  return true;
}

void TraceReader::finish() const {
  if (at_end_) return;
  fail(cat("routing trace: it ends within ", header_ ? cat("step ", n_steps_) : "its header",
           "; expected its end mark (a recording that was cut off?)"));
}

std::vector<std::byte> encode_trace(const RoutingTrace& trace) {
  std::vector<std::byte> bytes;
  TraceWriter writer(trace.header, [&bytes](std::span<const std::byte> piece) {
    put_bytes(bytes, piece.data(), piece.size());
  });
  for (const RoutingStep& step : trace.steps) writer.write(step);
  writer.finish();
  return bytes;
}

RoutingTrace decode_trace(std::span<const std::byte> bytes) {
  TraceReader reader;
  reader.feed(bytes);
  RoutingTrace trace;
  RoutingStep step;
  while (reader.next(step)) trace.steps.push_back(step);
  reader.finish();
  trace.header = *reader.header();
  return trace;
}

}  // namespace sluice::policy
