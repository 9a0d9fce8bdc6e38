// See expert_staging.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/expert_staging.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "backend/mailbox.h"
#include "base/check.h"
#include "base/error.h"
#include "base/step_memory.h"

namespace sluice::engine {
namespace {

constexpr int kMostAhead = 4;     // layers; each further one is foreseen less well
constexpr int64_t kLessons = 16;  // before a rank is believed
constexpr uint32_t kRests = 16;   // steps

policy::PrefetchOptions planner_options(const model::Model& model, uint64_t block_bytes,
                                        double copy_cost) {
  policy::PrefetchOptions options;
  options.copy_cost = copy_cost;
  const model::Config& c = model.config();
  options.shape = {.n_layers = c.n_layers,
                   .n_experts = c.n_experts,
                   .n_experts_used = c.n_experts_used,
                   .expert_bytes = {}};
  for (const model::Layer& layer : model.layers()) {
    options.shape.expert_bytes.push_back(backend::ExpertLayout(layer.experts).n_bytes);
    options.slot_bytes =
        std::max(options.slot_bytes, policy::slot_bytes(options.shape.expert_bytes.back()));
  }
  options.n_slots = static_cast<int>(block_bytes / std::max<uint64_t>(options.slot_bytes, 1));
  return options;
}

bool contains(std::span<const RoutedExpert> routed, int32_t expert) {
  return std::ranges::any_of(routed,
                             [expert](const RoutedExpert& r) { return r.expert.value == expert; });
}

}  // namespace

double ExpertStaging::Trust::probability() const {
  return n < kLessons ? 0.0 : static_cast<double>(n_right) / static_cast<double>(n + 1);
}

ExpertStaging::ExpertStaging(backend::Device& device, const model::Model& device_model,
                             DeviceBlock memory, const Parts& parts, int max_rows,
                             const StagingOptions& options)
    : device_(device),
      model_(device_model),
      host_(parts.host),
      cache_(parts.cache),
      copies_(parts.copies),
      demand_(parts.demand),
      log_(parts.log),
      options_(options),
      max_rows_(max_rows),
      waste_(options.max_waste, static_cast<double>(memory.n_bytes())),
      memory_(std::move(memory)),
      planner_(planner_options(device_model, memory_.n_bytes(), options.copy_cost)),
      predicted_(device_model.layers().size()) {
  const policy::PrefetchOptions sizes =
      planner_options(device_model, memory_.n_bytes(), options.copy_cost);
  if (!options.enabled || sizes.n_slots == 0) return;
  int n_copies = 0;  // that bring an expert
  for (const model::Layer& layer : model_.layers()) {
    n_copies = std::max(n_copies, host_.n_copies(layer.id));
  }
  copy_seconds_ = n_copies * options.delay_us * 1e-6 +
                  static_cast<double>(sizes.slot_bytes) / (options.link_gbps * 1e9);
  const double n_ahead = std::ceil(copy_seconds_ / options.layer_seconds);
  n_ahead_ = n_ahead <= kMostAhead ? static_cast<int>(n_ahead) : 0;
  for (const model::Layer& layer : model_.layers()) layouts_.emplace_back(layer.experts);
  const int n_used = model_.config().n_experts_used;
  const auto n_slots = static_cast<size_t>(sizes.n_slots);
  const size_t n_layers = model_.layers().size();
  static_assert(sizeof(backend::LayerNews) == 24);
  const uint64_t n_mapped =
      foresight_bytes(std::ssize(model_.layers()), max_rows, n_used, sizes.n_slots);
  CHECK(n_mapped == n_layers * (sizeof(backend::LayerNews) + prediction_bytes()) +
                        (n_slots + 1) * sizeof(uint64_t));
  try {
    mapped_ = device.allocate(backend::MemoryKind::mapped, n_mapped);
  } catch (const Error&) {
    n_ahead_ = 0;  // so little pinned memory: then nothing comes ahead
    return;
  }
  news_ = {mapped_.as<backend::LayerNews>(), n_layers};
  std::ranges::fill(news_, backend::LayerNews{});
  words_ = {reinterpret_cast<uint64_t*>(news_.data() + n_layers), n_slots};
  is_wanted_ = reinterpret_cast<uint32_t*>(words_.data() + n_slots);
  *is_wanted_ = 1;
  predictions_ = reinterpret_cast<std::byte*>(words_.data() + n_slots + 1);
  for (uint64_t& word : words_) {
    word = 0;
    slots_.push_back(memory_.take(sizes.slot_bytes));
    views_.push_back({slots_.back(), &word});
  }
  const auto n_predicted = static_cast<size_t>(max_rows) * static_cast<size_t>(n_used);
  for (Prediction& p : predicted_) {
    p.experts.reserve(n_predicted);
    p.was_missing.reserve(n_predicted);
  }
  candidates_.reserve(n_predicted);
  last_routed_.reserve(n_predicted);
  keys_.resize(n_slots, 0);
  is_under_way_.resize(n_slots, false);
  trust_.resize(static_cast<size_t>(n_used));
  if (is_on()) thread_.emplace([this] { work(); });
}

// Experts, weights and the shared expert's, of max_rows rows.
size_t ExpertStaging::prediction_bytes() const {
  const auto n_used = static_cast<size_t>(model_.config().n_experts_used);
  return static_cast<size_t>(max_rows_) * (2 * n_used + 1) * sizeof(float);
}

backend::RoutingView ExpertStaging::prediction(LayerId layer) const {
  const int n_used = model_.config().n_experts_used;
  const auto at = static_cast<size_t>(layer.value) * prediction_bytes();
  auto* const values = reinterpret_cast<float*>(predictions_ + at);
  const int64_t n_pairs = int64_t{max_rows_} * n_used;
  return {n_used, reinterpret_cast<int32_t*>(values), values + n_pairs, values + 2 * n_pairs};
}

void ExpertStaging::foresee(backend::DeviceOps& ops, LayerId layer, const uint32_t* step,
                            backend::ConstRowsView x) {
  if (!is_on() || x.n_rows > max_rows_) return;
  const backend::ForeseeView view{.layer = layer,
                                  .step = step,
                                  .wanted = is_wanted_,
                                  .news = &news_[static_cast<size_t>(layer.value)]};
  const LayerId target(layer.value + n_ahead_);
  if (target.value >= model_.config().n_layers) {
    ops.foresee(view, x, {}, {}, prediction(layer));
    return;
  }
  const model::Layer& later = model_.layers()[static_cast<size_t>(target.value)];
  ops.foresee(view, x, later.ffn_norm, later.router, prediction(layer));
}

void ExpertStaging::begin_step(uint32_t step, int64_t n_rows, LayerId first) {
  if (!is_on() || n_rows > max_rows_) return;
  step_ = step;
  first_layer_ = first;
  thread_->begin();
}

// The thread still reads what was told.
void ExpertStaging::end_step() {
  if (!is_on()) return;
  thread_->end();
  finish_layer();
}

void ExpertStaging::work() {
  for (int i = first_layer_.value; i < model_.config().n_layers; ++i) {
    backend::LayerNews& news = news_[static_cast<size_t>(i)];
    const uint64_t number = backend::request_number(step_, LayerId(i));
    if (!device_.await(&news.told, number, [this] { return thread_->is_over(); })) return;
    try {
      if (!has_failed_) layer_routed(LayerId(i));
    } catch (const std::exception&) {
      has_failed_ = true;  // out of memory, say: steps go on without what comes ahead
    }
    std::atomic_ref(news.heard).store(number, std::memory_order_release);
  }
}

// Before its experts are computed, or soon after.
void ExpertStaging::layer_routed(LayerId layer) {
  const std::span<const RoutedExpert> routed = log_.routed(layer);
  const backend::LayerLog& found = log_.layer(layer);
  finish_layer();  // the one before: its experts are computed
  note_arrivals();
  learn(layer, routed);
  last_layer_ = layer;
  last_routed_.assign(routed.begin(), routed.end());
  has_reads_ |= found.link_bytes > 0;
  const auto expert_bytes = static_cast<double>(layouts_[static_cast<size_t>(layer.value)].n_bytes);
  const double missed = expert_bytes * (found.n_staged + found.n_link + found.n_cpu);
  const double carried = static_cast<double>(found.link_bytes + settled_bytes() -
                                             std::exchange(settled_, settled_bytes()));
  waste_.account(missed, carried);
  const bool was_asked = news_[static_cast<size_t>(layer.value)].is_asked != 0;
  std::atomic_ref(*is_wanted_).store(has_room() && is_asking(), std::memory_order_relaxed);
  const LayerId target(layer.value + n_ahead_);
  const bool is_last = target.value >= model_.config().n_layers;
  if (!was_asked || !has_room() || is_last || found.n_rows > max_rows_) return;
  take_prediction(layer, target, found.n_rows);
  if (host_.is_copyable(target) && demand_.is_idle()) begin_copies(room_on_link(found.link_bytes));
}

void ExpertStaging::forget() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!is_under_way_[i]) continue;
    is_under_way_[i] = false;
    keys_[i] = 0;
    planner_.arrived(policy::SlotId(static_cast<int32_t>(i)));
  }
}

void ExpertStaging::finish_layer() {
  if (last_routed_.empty()) return;
  planner_.routed(last_layer_, last_routed_);
  last_routed_.clear();
}

// Copies whose layer has been.
uint64_t ExpertStaging::settled_bytes() const {
  const policy::PrefetchCounts& counts = planner_.counts();
  return counts.useful_bytes + counts.late_bytes + counts.wasted_bytes;
}

void ExpertStaging::note_arrivals() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!is_under_way_[i] || device_.read(&words_[i]) != keys_[i]) continue;
    is_under_way_[i] = false;
    planner_.arrived(policy::SlotId(static_cast<int32_t>(i)));
  }
}

void ExpertStaging::learn(LayerId layer, std::span<const RoutedExpert> routed) {
  Prediction& p = predicted_[static_cast<size_t>(layer.value)];
  for (size_t i = 0; i < p.experts.size(); ++i) {
    const bool is_right = contains(routed, p.experts[i]);
    ++all_.n, all_.n_right += is_right;
    if (!p.was_missing[i]) continue;
    Trust& trust = trust_[i % trust_.size()];
    ++trust.n, trust.n_right += is_right;
  }
  p.experts.clear();
  p.was_missing.clear();
}

// Asking costs a router's time. Where no rank is right often enough, only now and then.
bool ExpertStaging::is_asking() const {
  return step_ % kRests == 0 || std::ranges::any_of(trust_, [&](const Trust& trust) {
           return trust.n < kLessons || trust.probability() > options_.copy_cost;
         });
}

// What the later layer's router chose, of the rows that are real.
void ExpertStaging::take_prediction(LayerId from, LayerId layer, int n_rows) {
  Prediction& p = predicted_[static_cast<size_t>(layer.value)];
  const backend::RoutingView chosen = prediction(from);
  p.experts.assign(chosen.experts, chosen.experts + n_rows * chosen.n_used);
  p.was_missing.clear();
  candidates_.clear();
  for (size_t i = 0; i < p.experts.size(); ++i) {
    const policy::ExpertKey key{layer, ExpertId(p.experts[i])};
    p.was_missing.push_back(!cache_.resident(key.layer, key.expert));
    const double probability = trust_[i % trust_.size()].probability();
    const auto same = std::ranges::find(candidates_, key, &policy::PrefetchCandidate::key);
    if (!p.was_missing.back() || probability == 0.0) continue;
    if (same == candidates_.end()) {
      candidates_.push_back({key, probability});
    } else {
      same->probability = std::max(same->probability, probability);
    }
  }
}

// What it can carry until the layer is looked up; nothing while an earlier copy is on it. Where
// lookups read over it too (this one: read_bytes), until the next one at the earliest.
uint64_t ExpertStaging::room_on_link(uint64_t read_bytes) const {
  if (std::ranges::find(is_under_way_, true) != is_under_way_.end()) return 0;
  const double reads = static_cast<double>(read_bytes) / (options_.link_gbps * 1e9);
  const double seconds =
      has_reads_ ? options_.hits_seconds - reads : n_ahead_ * options_.layer_seconds;
  return static_cast<uint64_t>(std::max(0.0, seconds) / copy_seconds_) * planner_.slot_bytes();
}

void ExpertStaging::begin_copies(uint64_t max_bytes) {
  // As many of the surest as may turn out wrong together before the link carries too much.
  std::ranges::sort(candidates_, std::greater{}, &policy::PrefetchCandidate::probability);
  double in_vain = 0.0;
  size_t n = 0;
  for (; n < candidates_.size(); ++n) {
    const auto layer = static_cast<size_t>(candidates_[n].key.layer.value);
    in_vain += (1.0 - candidates_[n].probability) * static_cast<double>(layouts_[layer].n_bytes);
    if (!waste_.allows(in_vain)) break;
  }
  candidates_.resize(n);
  for (const policy::PrefetchCopy& copy : planner_.plan(candidates_, cache_, max_bytes)) {
    const auto i = static_cast<size_t>(copy.slot.value);
    keys_[i] = backend::staged_key(step_, copy.key.layer, copy.key.expert.value);
    is_under_way_[i] = true;
    host_.copy(copy.key, layouts_[static_cast<size_t>(copy.key.layer.value)], slots_[i], copies_);
    copies_.set(&words_[i], keys_[i]);
    ++n_copies_;
  }
}

const std::byte* ExpertStaging::find(policy::ExpertKey key) const {
  const uint64_t wanted = backend::staged_key(step_, key.layer, key.expert.value);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (keys_[i] == wanted && device_.read(&words_[i]) == wanted) return slots_[i];
  }
  return nullptr;
}

}  // namespace sluice::engine
