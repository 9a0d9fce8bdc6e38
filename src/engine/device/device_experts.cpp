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
  find(layer, a, routing, {});
  foresee(layer, x);
  p_.ops.compute_found(experts_of(p_, layer), a);
  p_.ops.add_found(routing, x);
}

// In wide steps nothing lands: a prompt's experts are in its place.
void WholeExperts::find(LayerId layer, const backend::ExpertInputView& a,
                        const backend::RoutingView& routing, Part part) {
  const bool lands = part.is_all && a.n_rows <= kNarrowRows;
  const backend::LookupView lookup{
      .layer = layer,
      .part = part.index,
      .step = p_.step,
      .n_live = p_.n_live,
      .table = p_.slots.table(layer),
      .staged = p_.staging.slots(),
      .host = p_.host.slots(layer),
      .link_share = p_.link_share,
      .landing = lands ? p_.landing.view(layer) : backend::LandingView{},
      .log = p_.logs ? log_.view(layer) : backend::LayerLogView{}};
  p_.ops.find_experts(experts_of(p_, layer), lookup, a, routing);
}

void WholeExperts::foresee(LayerId layer, backend::ConstRowsView x) {
  p_.staging.foresee(p_.ops, layer, p_.step, x);
}

// As many rows at a time as the device takes.
void SegmentedExperts::run(LayerId layer, const backend::ExpertInputView& a,
                           const backend::RoutingView& routing, backend::RowsView x) {
  const int64_t at_once = p_.ops.most_found_rows();
  for (int part = 0; part * at_once < a.n_rows; ++part) {
    const int64_t first = part * at_once;
    const int64_t n_rows = std::min(at_once, a.n_rows - first);
    const backend::RoutingView some = backend::rows_from(routing, first);
    whole_.find(layer, backend::some_rows(a, first, n_rows), some, {part, n_rows == a.n_rows});
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

// A device's queue is finite (of CUDA 1,024 launches): whoever finds it full stands in the driver,
// and nobody else gets in, not even to copy what the work in front waits for. So in a step with
// waves not more is enqueued than this layer's work and the rest of the one before. In one without
// waves the work waits for no copy, and only every eighth layer tells: there it is this layer, up
// to seven in front of it, and the rest of the one that tells.
void StreamedExperts::keep_close(LayerId layer) const {
  const LayerId before(layer.value - 1);
  if (before.value < 0 || !waves_.has(before) || !waves_.tells(before)) return;
  for (Patience patience; waves_.is_under_way(before) && !waves_.is_routed(before);) {
    if (p_.main.has_failed()) return;
    patience.wait();
  }
}

void StreamedExperts::run(LayerId layer, const backend::ExpertInputView& a,
                          const backend::RoutingView& routing, backend::RowsView x) {
  if (!waves_.has(layer)) {
    segmented_.run(layer, a, routing, x);
    return;
  }
  keep_close(layer);
  const bool tells = waves_.tells(layer);
  backend::ExpertsView experts = experts_of(p_, layer);
  p_.ops.sort_pairs(experts,
                    {.layer = layer,
                     .step = p_.step,
                     .pairs = pairs_,
                     .n_pairs = tells ? waves_.n_pairs(layer) : nullptr,
                     .told = tells ? waves_.told(layer) : nullptr},
                    routing, a.n_rows);
  experts.table = p_.slots.table(layer);
  p_.ops.compute_sorted(experts, pairs_, a);
  backend::ExpertsView arriving = experts;
  arriving.shared_gate = {};  // computed already
  for (int i = 0; i < waves_.n_waves(layer); ++i) {
    const ExpertWaves::Wave wave = waves_.wave(layer, i);
    arriving.table = wave.table;
    p_.main.await(wave.arrived, wave.number, waves_.ended());
    p_.ops.compute_sorted(arriving, pairs_, a);
    p_.main.set(wave.freed, wave.number);
  }
  p_.ops.add_sorted(experts, routing, log_.view(layer), x);
}

}  // namespace sluice::engine
