// See device_experts.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/device_experts.h"

#include <algorithm>

#include "base/error.h"
#include "base/patience.h"

namespace sluice::engine {
namespace {

backend::ExpertsView experts_of(const ExpertParts& p, LayerId layer) {
  return p.model.layers()[static_cast<size_t>(layer.value)].experts;
}

}  // namespace

void WholeExperts::run(LayerId layer, const backend::ExpertInputView& a,
                       const backend::RoutingView& routing, backend::RowsView x) {
  find(layer, a, routing);
  foresee(layer, x);
  p_.ops.compute_found(experts_of(p_, layer), a);
  p_.ops.add_found(routing, x);
}

void WholeExperts::find(LayerId layer, const backend::ExpertInputView& a,
                        const backend::RoutingView& routing, int part) {
  const backend::LookupView lookup{.layer = layer,
                                   .part = part,
                                   .step = p_.step,
                                   .n_live = p_.n_live,
                                   .table = p_.slots.table(layer),
                                   .staged = p_.staging.slots(),
                                   .host = p_.host.slots(layer),
                                   .link_share = p_.link_share,
                                   .log = p_.logs ? log_.view(layer) : backend::LayerLogView{}};
  p_.ops.find_experts(experts_of(p_, layer), lookup, a, routing);
}

void WholeExperts::foresee(LayerId layer, backend::ConstRowsView x) {
  p_.staging.foresee(p_.ops, layer, p_.step, x);
}

// As many rows at a time as the mailbox holds.
void SegmentedExperts::run(LayerId layer, const backend::ExpertInputView& a,
                           const backend::RoutingView& routing, backend::RowsView x) {
  const int64_t at_once = p_.mailbox.view().shape.max_rows;
  for (int part = 0; part * at_once < a.n_rows; ++part) {
    const int64_t first = part * at_once;
    const int64_t n_rows = std::min(at_once, a.n_rows - first);
    const backend::RoutingView some = backend::rows_from(routing, first);
    whole_.find(layer, backend::some_rows(a, first, n_rows), some, part);
    if (n_rows == a.n_rows) whole_.foresee(layer, x);
    p_.ops.compute_found(experts_of(p_, layer), backend::some_rows(a, first, n_rows));
    p_.main.finish();
    for (Patience patience; p_.mailbox.open_number() != 0;) patience.wait();
    if (p_.mailbox.is_aborted()) {
      throw Error(Errc::device, cat("layer ", layer.value, ": the CPU's experts did not come"));
    }
    p_.ops.add_found(some, {x.row(first), n_rows, x.n_cols});
  }
}

StreamedExperts::StreamedExperts(const ExpertParts& parts, backend::Device& device, RoutingLog& log,
                                 SegmentedExperts& segmented, std::span<std::byte> buffers,
                                 Prefers prefers)
    : p_(parts),
      log_(log),
      segmented_(segmented),
      half_bytes_(buffers.size() / 2),
      prefers_(std::move(prefers)),
      pairs_(static_cast<size_t>(parts.model.config().n_experts)) {
  for (Half& half : halves_) {
    half.data = buffers.data() + (&half - halves_) * static_cast<std::ptrdiff_t>(half_bytes_);
    half.arrived = device.make_event();
    half.is_free = device.make_event();
  }
}

void StreamedExperts::run(LayerId layer, const backend::ExpertInputView& a,
                          const backend::RoutingView& routing, backend::RowsView x) {
  p_.ops.log_routing(routing, a.n_rows, log_.view(layer));
  p_.main.finish();
  sort_pairs(layer, routing.n_used);
  const backend::ExpertsView experts = experts_of(p_, layer);
  const uint64_t slot_bytes = policy::slot_bytes(p_.slots.layout(layer).n_bytes);
  int64_t n_pairs = 0;
  for (const int32_t e : missing_) n_pairs += std::ssize(pairs_[static_cast<size_t>(e)]);
  const uint64_t n_bytes = slot_bytes * missing_.size();
  const auto in_half = static_cast<size_t>(half_bytes_ / slot_bytes);
  const bool can_stream = p_.host.is_copyable(layer) && in_half > 0;
  if (!missing_.empty() && !(can_stream && prefers_(n_bytes, n_pairs, layer))) {
    segmented_.run(layer, a, routing, x);
    return;
  }
  backend::LayerLog& counts = log_.layer(layer);
  counts.n_hits = static_cast<int32_t>(a.n_rows * routing.n_used - n_pairs);
  counts.n_staged = static_cast<int32_t>(n_pairs);
  counts.link_bytes = n_bytes;

  const size_t n_groups = missing_.empty() ? 0 : (missing_.size() - 1) / in_half + 1;
  if (groups_.size() < n_groups + 1) groups_.resize(n_groups + 1);
  Group& resident = groups_[0];
  for (size_t g = 0; g < n_groups; ++g) {  // the first copies run while the residents are computed
    const auto some = std::span(missing_).subspan(g * in_half);
    stream_group(layer, some.first(std::min(in_half, some.size())), halves_[g % 2], groups_[g + 1]);
    if (g == 0) submit(experts, resident, a, /*with_shared=*/true);
    p_.main.wait(*halves_[g % 2].arrived);
    submit(experts, groups_[g + 1], a, /*with_shared=*/false);
    p_.main.record(*halves_[g % 2].is_free);
  }
  if (n_groups == 0) submit(experts, resident, a, /*with_shared=*/true);
  p_.ops.add_pairs(experts, routing, x);
  streamed_bytes_ += n_bytes;
}

void StreamedExperts::sort_pairs(LayerId layer, int32_t n_used) {
  for (auto& pairs : pairs_) pairs.clear();
  int32_t slot = 0;
  for (const RoutedExpert& routed : log_.routed(layer)) {
    const int32_t e = routed.expert.value;
    pairs_[static_cast<size_t>(e)].push_back({e, slot / n_used, slot});
    ++slot;
  }
  if (groups_.empty()) groups_.resize(1);
  Group& resident = groups_[0];
  resident.table.assign(pairs_.size(), nullptr);
  resident.pairs.clear();
  missing_.clear();
  for (size_t e = 0; e < pairs_.size(); ++e) {
    if (pairs_[e].empty()) continue;
    const auto expert = static_cast<int32_t>(e);
    resident.table[e] = p_.slots.published({layer, ExpertId(expert)});
    if (resident.table[e]) {
      resident.pairs.insert(resident.pairs.end(), pairs_[e].begin(), pairs_[e].end());
    } else {
      missing_.push_back(expert);
    }
  }
}

void StreamedExperts::stream_group(LayerId layer, std::span<const int32_t> experts, Half& half,
                                   Group& group) {
  const backend::ExpertLayout& layout = p_.slots.layout(layer);
  group.table.assign(pairs_.size(), nullptr);
  group.pairs.clear();
  p_.copies.wait(*half.is_free);
  std::byte* next = half.data;
  for (const int32_t e : experts) {
    p_.host.copy({layer, ExpertId(e)}, layout, next, p_.copies);
    const auto& pairs = pairs_[static_cast<size_t>(e)];
    group.table[static_cast<size_t>(e)] = next;
    group.pairs.insert(group.pairs.end(), pairs.begin(), pairs.end());
    next += policy::slot_bytes(layout.n_bytes);
  }
  p_.copies.record(*half.arrived);
}

void StreamedExperts::submit(const backend::ExpertsView& experts, const Group& group,
                             const backend::ExpertInputView& a, bool with_shared) {
  backend::ExpertsView view = experts;
  view.table = group.table.data();
  if (!with_shared) view.shared_gate = {};
  p_.ops.compute_pairs(view, group.pairs, a);
}

}  // namespace sluice::engine
