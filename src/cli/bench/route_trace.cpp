// See route_trace.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/route_trace.h"

#include <algorithm>

#include "base/error.h"
#include "cli/simulate/trace_file.h"

namespace sluice::cli {

RouteTrace::RouteTrace(std::string path, const policy::RoutingShape& model, int n_positions)
    : path_(std::move(path)),
      n_used_(static_cast<size_t>(model.n_experts_used)),
      step_size_(n_used_ * static_cast<size_t>(model.n_layers)) {
  const TraceInput input = open_trace(path_);
  const policy::RoutingShape& trace = input.header.shape;
  if (trace.n_layers < model.n_layers || trace.n_experts_used < model.n_experts_used) {
    throw Error(Errc::bad_request,
                cat(path_, ": routes ", trace.n_experts_used, " experts in each of ",
                    trace.n_layers, " layers; expected at least ", model.n_experts_used, " in ",
                    model.n_layers, ", as the model uses"));
  }
  policy::RoutingStep step;
  while (n_steps() < static_cast<size_t>(n_positions) && input.next(step)) take(step, model);
  if (experts_.empty()) {
    throw Error(Errc::bad_request, cat(path_, ": no step routes ", n_used_, " experts in all of ",
                                       model.n_layers, " layers; expected some that do"));
  }
}

void RouteTrace::take(const policy::RoutingStep& step, const policy::RoutingShape& model) {
  const size_t before = experts_.size();
  for (int l = 0; l < model.n_layers; ++l) {
    const auto routed = step.layer(l);
    if (routed.size() < n_used_) return experts_.resize(before);
    for (const policy::RoutedExpert& r : routed.first(n_used_)) {
      if (r.expert.value >= model.n_experts) {
        throw Error(Errc::bad_request,
                    cat(path_, ": uses expert ", r.expert.value, " in layer ", l,
                        "; expected 0 to ", model.n_experts - 1, ", which the model has"));
      }
      experts_.push_back(r.expert.value);
    }
  }
}

void RouteTrace::apply(int pos, int layer, std::span<int32_t> experts) const {
  const size_t step = static_cast<size_t>(pos) % n_steps();
  const auto begin =
      experts_.begin() +
      static_cast<std::ptrdiff_t>(step * step_size_ + static_cast<size_t>(layer) * n_used_);
  std::copy_n(begin, n_used_, experts.begin());
}

}  // namespace sluice::cli
