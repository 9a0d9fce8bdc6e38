// See options.h.
// SPDX-License-Identifier: Apache-2.0
#include "c_api/options.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace sluice::c_api {
namespace {

// The defaults where they are not 0.
sluice_model_options default_of(const sluice_model_options*) { return {}; }
sluice_session_options default_of(const sluice_session_options*) { return {}; }
sluice_chat_options default_of(const sluice_chat_options*) {
  sluice_chat_options o = {};
  o.n_tokens = o.top_k = o.thinking = -1;
  o.temperature = o.top_p = o.min_p = -1.0f;
  o.seed = -1;
  return o;
}
sluice_generate_options default_of(const sluice_generate_options*) {
  sluice_generate_options o = {};
  o.n_tokens = 128;
  o.stops_at_end = 1;
  return o;
}

// As the program sees the struct: it may know fewer fields, or more, which are 0 then.
template <typename T>
void init(T* options, size_t size) {
  if (!options || size < sizeof(size_t)) return;
  T defaults = default_of(options);
  defaults.size = size;
  std::memset(options, 0, size);
  std::memcpy(options, &defaults, std::min(size, sizeof(T)));
}

template <typename T>
T complete(const T* options, const char* name) {
  T all = default_of(options);
  if (!options) return all;
  // All of these structs are as they were in the first version, so there is one right size.
  if (options->size != sizeof(T)) {
    throw Error(
        Errc::bad_request,
        cat(name, ".size is ", options->size, ", expected ", sizeof(T),
            options->size > sizeof(T)
                ? cat(": the program was compiled for a later version than this, " SLUICE_VERSION)
                : cat("; call ", name, "_init() first")));
  }
  std::memcpy(&all, options, sizeof(T));
  return all;
}

template <typename T, size_t n>
T by_name(const char* name, const std::pair<std::string_view, T> (&values)[n], const char* what) {
  std::string known;
  for (const auto& [text, value] : values) {
    if (text == name) return value;
    known += cat(known.empty() ? "" : ", ", text);
  }
  throw Error(Errc::bad_request, cat(what, " is '", name, "', expected one of: ", known));
}

constexpr std::pair<std::string_view, DeviceKind> kDevices[] = {{"cpu", DeviceKind::cpu},
                                                                {"cuda", DeviceKind::cuda},
                                                                {"sim", DeviceKind::sim},
                                                                {"auto", DeviceKind::automatic}};
constexpr std::pair<std::string_view, KvType> kKvTypes[] = {{"f32", KvType::f32},
                                                            {"f16", KvType::f16},
                                                            {"bf16", KvType::bf16},
                                                            {"q8_0", KvType::q8_0},
                                                            {"q4_0", KvType::q4_0}};
constexpr WeightMemory kWeights[] = {WeightMemory::automatic, WeightMemory::copied,
                                     WeightMemory::mapped};

// A number that says nothing below 0.
template <typename T>
std::optional<T> if_given(T value) {
  return value < 0 ? std::nullopt : std::optional<T>(value);
}

}  // namespace

LoadOptions read(const sluice_model_options* options) {
  const auto o = complete(options, "sluice_model_options");
  if (o.weights < 0 || o.weights >= static_cast<int32_t>(std::size(kWeights))) {
    throw Error(Errc::bad_request, cat("weights is ", o.weights, ", expected 0, 1 or 2"));
  }
  if (o.n_threads < 0) {
    throw Error(Errc::bad_request, cat("n_threads is ", o.n_threads, ", expected 0 or more"));
  }
  LoadOptions load{.n_threads = o.n_threads, .weights = kWeights[o.weights], .progress = {}};
  if (o.on_progress) {
    load.progress = [o](uint64_t done, uint64_t total) { o.on_progress(done, total, o.user); };
  }
  return load;
}

SessionOptions read(const sluice_session_options* options) {
  const auto o = complete(options, "sluice_session_options");
  SessionOptions session;
  session.n_ctx = o.n_ctx;
  if (o.kv_type) session.k_type = session.v_type = by_name(o.kv_type, kKvTypes, "kv_type");
  if (o.device) session.device.kind = by_name(o.device, kDevices, "device");
  session.device.gpu = o.gpu;
  if (o.vram_bytes > 0) session.device.vram_bytes = o.vram_bytes;
  return session;
}

ChatOptions read(const sluice_chat_options* options) {
  const auto o = complete(options, "sluice_chat_options");
  if (o.seed > std::numeric_limits<uint32_t>::max()) {
    throw Error(Errc::bad_request, cat("seed is ", o.seed, ", expected less than 2^32"));
  }
  ChatOptions chat;
  chat.session = read(o.session);
  if (o.system) chat.system = o.system;
  chat.n_tokens = std::max(o.n_tokens, -1);
  chat.temperature = if_given(o.temperature);
  chat.top_k = if_given(o.top_k);
  chat.top_p = if_given(o.top_p);
  chat.min_p = if_given(o.min_p);
  if (o.seed >= 0) chat.seed = static_cast<uint32_t>(o.seed);
  if (o.thinking >= 0) chat.thinking = o.thinking != 0;
  return chat;
}

sluice_generate_options read(const sluice_generate_options* options) {
  return complete(options, "sluice_generate_options");
}

}  // namespace sluice::c_api

using sluice::c_api::init;

void sluice_model_options_init(sluice_model_options* options, size_t size) { init(options, size); }
void sluice_session_options_init(sluice_session_options* options, size_t size) {
  init(options, size);
}
void sluice_chat_options_init(sluice_chat_options* options, size_t size) { init(options, size); }
void sluice_generate_options_init(sluice_generate_options* options, size_t size) {
  init(options, size);
}
