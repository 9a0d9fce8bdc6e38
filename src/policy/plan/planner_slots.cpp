// See planner_slots.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/planner_slots.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace sluice::policy {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw Error(Errc::bad_request, text); }

// The layers of a count: the first and the last with experts, then upwards from the second.
std::vector<int> counted_layers(const ModelShape& model, int n) {
  std::vector<int> routed;
  for (int i = 0; i < model.n_layers(); ++i) {
    if (model.layers[static_cast<size_t>(i)].n_experts > 0) routed.push_back(i);
  }
  if (n > std::ssize(routed)) {
    refuse(cat("--pin-layers ", n, ", but ", routed.size(),
               " layers have experts; expected at most that"));
  }
  if (routed.size() > 1) std::rotate(routed.begin() + 1, routed.end() - 1, routed.end());
  routed.resize(static_cast<size_t>(n));
  return routed;
}

}  // namespace

SlotRules slot_rules(const ModelShape& model, const Wishes& wishes, int n_gpu_layers) {
  const int n_layers = model.n_layers();
  SlotRules rules{std::vector<bool>(model.layers.size()), std::vector<bool>(model.layers.size())};
  const int first = std::max(n_layers - n_gpu_layers, wishes.n_cpu_moe);
  for (int i = first; i < n_layers; ++i) {
    const auto layer = static_cast<size_t>(i);
    rules.allowed[layer] = model.layers[layer].n_experts > 0;
  }
  const std::vector<int> pinned =
      wishes.n_pinned > 0 ? counted_layers(model, wishes.n_pinned) : wishes.pinned;
  if (!pinned.empty() && n_gpu_layers == 0) {
    refuse("--pin-layers keeps experts in VRAM; expected a GPU with layers on it");
  }
  for (const int i : pinned) {
    if (i < 0 || i >= n_layers) {
      refuse(cat("--pin-layers names layer ", i, "; expected 0 to ", n_layers - 1));
    }
    const auto layer = static_cast<size_t>(i);
    if (model.layers[layer].n_experts == 0) {
      refuse(cat("--pin-layers names layer ", i, ", which is dense; expected layers with experts"));
    }
    if (!rules.allowed[layer]) {
      refuse(cat("--pin-layers names layer ", i, ", whose experts are on the CPU; expected layers ",
                 "from ", first, " on (see -ngl and --n-cpu-moe)"));
    }
    rules.pinned[layer] = true;
  }
  return rules;
}

std::vector<int> share_out(const ModelShape& model, const SlotRules& rules, SlotLimit limit) {
  const size_t n_layers = model.layers.size();
  std::vector<int> n_slots(n_layers);
  uint64_t n_bytes = 0;
  int64_t n_given = 0;
  int most = 0;
  for (size_t i = 0; i < n_layers; ++i) {
    if (rules.allowed[i]) most = std::max(most, model.layers[i].n_experts);
    if (!rules.pinned[i]) continue;
    n_slots[i] = model.layers[i].n_experts;
    n_given += n_slots[i];
    n_bytes += static_cast<uint64_t>(n_slots[i]) * slot_bytes(model.layers[i]);
  }
  for (int round = 0; round < most; ++round) {
    for (size_t i = 0; i < n_layers; ++i) {
      if (!rules.allowed[i] || n_slots[i] > round || n_slots[i] == model.layers[i].n_experts) {
        continue;
      }
      n_bytes += slot_bytes(model.layers[i]);
      if (n_bytes > limit.n_bytes || ++n_given > limit.n_slots) return n_slots;
      ++n_slots[i];
    }
  }
  return n_slots;
}

std::vector<SizeClass> size_classes(const ModelShape& model, const std::vector<int>& n_slots) {
  std::map<uint64_t, SizeClass> classes;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerShape& layer = model.layers[i];
    if (layer.n_experts == 0) continue;
    SizeClass& c = classes[slot_bytes(layer)];
    c.slot_bytes = slot_bytes(layer);
    ++c.n_layers;
    c.n_experts += layer.n_experts;
    c.n_slots += n_slots[i];
  }
  std::vector<SizeClass> out;
  for (const auto& [bytes, c] : classes) out.push_back(c);
  return out;
}

}  // namespace sluice::policy
