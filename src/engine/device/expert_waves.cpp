// See expert_waves.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/expert_waves.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "backend/mailbox.h"
#include "base/carver.h"
#include "base/check.h"
#include "base/patience.h"

namespace sluice::engine {

ExpertWaves::ExpertWaves(backend::Device& device, const model::Model& model, const Parts& parts,
                         std::span<std::byte> buffer, backend::Buffer mapped)
    : device_(device),
      p_(parts),
      n_layers_(model.config().n_layers),
      n_experts_(static_cast<size_t>(model.config().n_experts)),
      half_bytes_(buffer.size() / 2),
      layers_(model.layers().size()),
      by_heat_(n_experts_),
      thread_([this] { work(); }) {
  const auto lay_out = [&](std::byte* base) {
    Carver carver(base);
    ended_ = carver.take<uint64_t>(1);
    begun_ = carver.take<uint64_t>(1);
    told_ = carver.take<uint64_t>(n_layers_);
    n_pairs_ = carver.take<int32_t>(n_layers_ * static_cast<int64_t>(n_experts_));
    for (Half& half : halves_) {
      half.table = carver.take<const std::byte*>(static_cast<int64_t>(n_experts_));
      half.arrived = carver.take<uint64_t>(1);
      half.freed = carver.take<uint64_t>(1);
    }
    return carver.n_bytes();
  };
  mapped_ = std::move(mapped);
  std::fill_n(mapped_.data(), mapped_.n_bytes(), std::byte{0});
  CHECK(lay_out(mapped_.data()) == mapped_.n_bytes());
  for (Half& half : halves_) {
    half.data = buffer.data() + (&half - halves_) * static_cast<std::ptrdiff_t>(half_bytes_);
  }
}

size_t ExpertWaves::in_half(LayerId layer) const {
  return static_cast<size_t>(half_bytes_ / policy::slot_bytes(p_.slots.layout(layer).n_bytes));
}

void ExpertWaves::begin_step(uint32_t step, LayerId first, const Prefers& prefers) {
  in_step_ = true;
  step_ = step;
  first_layer_ = first;
  fault_.clear();
  std::atomic_ref(*ended_).store(0, std::memory_order_release);
  int n_waves = 0;
  for (int i = first.value; i < n_layers_; ++i) {
    const LayerId layer(i);
    find_missing(layer);
    LayerWaves& waves = layers_[index(layer)];
    const auto n_missing = static_cast<int>(waves.missing.size());
    const bool can_come = p_.host.is_copyable(layer) && in_half(layer) > 0;
    waves.is_here = n_missing == 0 || (can_come && prefers(layer, n_missing));
    waves.first_wave = n_waves;
    waves.n_waves = 0;
    if (!waves.is_here || n_missing == 0) continue;
    waves.n_waves = static_cast<int>((waves.missing.size() - 1) / in_half(layer) + 1);
    n_waves += waves.n_waves;
  }
  has_waves_ = n_waves > 0;
  if (!has_waves_) return;
  p_.main.set(begun_, step);  // on the virtual clock: when the thread may begin
  thread_.begin();
}

void ExpertWaves::find_missing(LayerId layer) {
  std::vector<Missing>& missing = layers_[index(layer)].missing;
  missing.clear();
  for (size_t e = 0; e < n_experts_; ++e) by_heat_[e] = ExpertId(static_cast<int32_t>(e));
  const auto is_here = [&](ExpertId e) { return p_.slots.published({layer, e}) != nullptr; };
  if (std::ranges::all_of(by_heat_, is_here)) return;  // and who is hotter does not matter
  policy::sort_by_heat(by_heat_, p_.cache.uses().subspan(index(layer) * n_experts_, n_experts_));
  for (size_t rank = 0; rank < n_experts_; ++rank) {
    if (p_.slots.published({layer, by_heat_[rank]})) continue;
    missing.push_back({by_heat_[rank], static_cast<int>(rank)});
  }
}

void ExpertWaves::end_step() {
  if (!std::exchange(in_step_, false)) return;
  thread_.end();
  for (int i = first_layer_.value; i < n_layers_; ++i) {
    if (has(LayerId(i))) count(LayerId(i));
  }
}

// Pairs, by where their expert was.
void ExpertWaves::count(LayerId layer) const {
  int32_t n_missed = 0, n_experts = 0;
  for (const Missing& m : layers_[index(layer)].missing) {
    const int32_t n = n_pairs(layer)[m.expert.value];
    n_missed += n;
    n_experts += n > 0;
  }
  backend::LayerLog& log = p_.log.layer(layer);
  log.n_hits = static_cast<int32_t>(p_.log.routed(layer).size()) - n_missed;
  log.n_staged = n_missed;
  log.link_bytes = static_cast<uint64_t>(n_experts) * p_.slots.layout(layer).n_bytes;
}

bool ExpertWaves::is_routed(LayerId layer) const {
  return std::atomic_ref(*told(layer)).load(std::memory_order_acquire) ==
         backend::request_number(step_, layer);
}

ExpertWaves::Wave ExpertWaves::wave(LayerId layer, int i) const {
  const int wave = layers_[index(layer)].first_wave + i;
  const Half& half = halves_[wave % 2];
  return {number(wave), half.arrived, half.freed, half.table};
}

void ExpertWaves::work() {
  wave_ = 0;
  is_open_ = false;
  guess_.begin_step();
  try {
    bool goes_on = await(begun_, step_);
    for (int i = first_layer_.value; i < n_layers_ && goes_on; ++i) {
      if (n_waves(LayerId(i)) > 0) goes_on = copy_layer(LayerId(i));
    }
    // What was asked for last may still fail.
    for (Patience patience; !thread_.is_over(); patience.wait()) {
      if (p_.copies.has_failed()) end_waits();
    }
  } catch (const std::exception& e) {
    fault_ = e.what();
    end_waits();
  }
}

// First what is sure to be used, then what was routed besides. False where the step is at its end.
bool ExpertWaves::copy_layer(LayerId layer) {
  const LayerWaves& waves = layers_[index(layer)];
  const int n_sure = guess_.n_sure(static_cast<int>(n_experts_));
  for (const Missing& m : waves.missing) {
    if (m.rank < n_sure && !copy_expert(layer, m.expert)) return false;
  }
  if (!await(told(layer), backend::request_number(step_, layer))) return false;
  const std::span routed(n_pairs(layer), n_experts_);
  guess_.learn(static_cast<int>(std::ranges::count_if(routed, [](int32_t n) { return n > 0; })),
               static_cast<int>(n_experts_));
  for (const Missing& m : waves.missing) {
    const bool is_used = routed[static_cast<size_t>(m.expert.value)] > 0;
    if (m.rank >= n_sure && is_used && !copy_expert(layer, m.expert)) return false;
  }
  while (wave_ < waves.first_wave + waves.n_waves) {
    if (!is_open_ && !open_wave()) return false;
    close_wave();
  }
  return true;
}

bool ExpertWaves::copy_expert(LayerId layer, ExpertId expert) {
  if (!is_open_ && !open_wave()) return false;
  const backend::ExpertLayout& layout = p_.slots.layout(layer);
  const uint64_t slot_bytes = policy::slot_bytes(layout.n_bytes);
  std::byte* const slot = half(wave_).data + n_in_wave_ * slot_bytes;
  p_.host.copy({layer, expert}, layout, slot, p_.copies);
  half(wave_).table[expert.value] = slot;
  copied_bytes_ += slot_bytes;
  if (++n_in_wave_ == in_half(layer)) close_wave();
  return true;
}

// Of the wave that had the half before, the experts are computed. The first two find it free.
bool ExpertWaves::open_wave() {
  if (wave_ >= 2 && !await(half(wave_).freed, number(wave_ - 2))) return false;
  std::fill_n(half(wave_).table, n_experts_, nullptr);
  n_in_wave_ = 0;
  is_open_ = true;
  return true;
}

void ExpertWaves::close_wave() {
  p_.copies.set(half(wave_).arrived, number(wave_));
  ++wave_;
  is_open_ = false;
}

// False where the step is at its end, or has failed: the device may read any table then.
bool ExpertWaves::await(const uint64_t* word, uint64_t value) {
  return device_.await(word, value, [this] {
    const bool has_failed = p_.copies.has_failed();
    if (has_failed) end_waits();
    return has_failed || thread_.is_over();
  });
}

// The device waits for no more waves; the step has failed.
void ExpertWaves::end_waits() { std::atomic_ref(*ended_).store(1, std::memory_order_release); }

}  // namespace sluice::engine
