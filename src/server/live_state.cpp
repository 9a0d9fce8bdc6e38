// See live_state.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/live_state.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice::server {

std::string base64(std::span<const uint8_t> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = 0;
    for (size_t j = 0; j < 3; ++j) bits = bits << 8 | (j < n ? bytes[i + j] : 0);
    for (size_t j = 0; j < 4; ++j) text += j <= n ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

Json map_json(const ExpertMap& map) {
  std::vector<uint8_t> where;
  std::vector<uint8_t> heat;
  for (const ExpertMap::Where w : map.where) where.push_back(static_cast<uint8_t>(w));
  const float most = map.heat.empty() ? 0.0f : *std::ranges::max_element(map.heat);
  const float scale = most > 0.0f ? 255.0f / std::log1p(most) : 0.0f;
  for (const float h : map.heat) {
    heat.push_back(static_cast<uint8_t>(std::clamp(scale * std::log1p(h), 0.0f, 255.0f)));
  }
  return {{"layers", map.n_layers},
          {"experts", map.n_experts},
          {"where", base64(where)},
          {"heat", base64(heat)}};
}

LiveState::LiveState(const ModelHost& host)
    : host_(host), last_time_(std::chrono::steady_clock::now()), thread_([this] { run(); }) {}

LiveState::~LiveState() {
  end();
  thread_.join();
}

void LiveState::end() {
  const std::scoped_lock lock(mutex_);
  ends_ = true;
  for (const Listener& listener : listeners_) listener.exchange->end_stream();
  listeners_.clear();
  wake_.notify_all();
}

void LiveState::follow(std::shared_ptr<Exchange> exchange) {
  auto is_gone = std::make_shared<std::atomic<bool>>(false);
  exchange->on_gone([is_gone] { *is_gone = true; });
  exchange->begin_stream({.content_type = "text/event-stream",
                          .body = "data: " + dump(now()) + "\n\n",
                          .headers = {{"Cache-Control", "no-cache"}}});
  const std::scoped_lock lock(mutex_);
  if (ends_) return exchange->end_stream();
  listeners_.push_back({std::move(exchange), std::move(is_gone)});
}

void LiveState::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    const bool is_busy = last_.n_running > 0 || last_.n_queued > 0;
    wake_.wait_for(lock, std::chrono::milliseconds(is_busy ? 250 : 1000), [&] { return ends_; });
    if (!ends_) look();
  }
}

// With the lock held.
void LiveState::look() {
  const ModelHost::Handle model = host_.peek();
  EngineStats stats;
  if (model) stats = model->engine().stats();
  const auto time = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(time - last_time_).count();
  const std::string name = model ? model->name() : "";
  // Another engine, or the same model loaded again, begins to count at 0.
  if (std::exchange(last_name_, name) != name || stats.n_steps < last_.n_steps) last_ = {};
  rates_ = {static_cast<double>(stats.n_new_tokens - last_.n_new_tokens) / seconds,
            static_cast<double>(stats.n_prompt_tokens - last_.n_prompt_tokens) / seconds};
  last_ = stats;
  last_time_ = time;
  std::erase_if(listeners_, [](const Listener& l) { return l.is_gone->load(); });
  if (listeners_.empty()) return;
  const std::string event = "data: " + dump(state()) + "\n\n";
  for (const Listener& listener : listeners_) listener.exchange->write(event);
}

Json LiveState::now() const {
  const std::scoped_lock lock(mutex_);
  return state();
}

// With the lock held.
Json LiveState::state() const {
  if (const ModelHost::Handle model = host_.peek()) {
    last_state_ = state_of(*model, rates_);
  } else if (last_state_.is_object()) {
    last_state_["speed"] = {
        {"decode_tps", 0.0}, {"prefill_tps", 0.0}, {"running", 0}, {"queued", 0}};
  }
  return last_state_;
}

Json LiveState::state_of(const ModelService& service, const Rates& rates) {
  const EngineStats stats = service.engine().stats();
  const ModelInfo& info = service.info();
  const PlacementInfo plan = service.engine().placement();
  const LayerStats calls = stats.experts.total();
  const double hit_rate = calls.n_calls() > 0 ? static_cast<double>(calls.n_hits + calls.n_staged) /
                                                    static_cast<double>(calls.n_calls())
                                              : 0.0;
  return {{"model",
           {{"name", info.name.empty() ? service.name() : info.name},
            {"architecture", info.architecture},
            {"n_layers", info.n_layers},
            {"n_experts", info.n_experts},
            {"n_experts_used", info.n_experts_used},
            {"is_dense", info.is_dense},
            {"n_ctx", service.n_ctx()}}},
          {"plan",
           {{"device", plan.device},
            {"mode", plan.mode},
            {"reason", plan.reason},
            {"vram_bytes", plan.vram_bytes},
            {"n_slots", plan.n_slots},
            {"predicted_decode", plan.predicted_decode}}},
          {"speed",
           {{"decode_tps", rates.decode},
            {"prefill_tps", rates.prefill},
            {"running", stats.n_running},
            {"queued", stats.n_queued}}},
          {"experts",
           {{"hits", calls.n_hits},
            {"staged", calls.n_staged},
            {"link", calls.n_link},
            {"cpu", calls.n_cpu},
            {"link_bytes", calls.link_bytes},
            {"hit_rate", hit_rate}}},
          {"map", map_json(service.engine().expert_map())}};
}

}  // namespace sluice::server
