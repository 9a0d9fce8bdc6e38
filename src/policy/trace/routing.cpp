// See routing.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/routing.h"

#include "base/error.h"

namespace sluice::policy {

namespace {

void check_between(const char* where, const char* what, int64_t value, int64_t most) {
  if (value < 1 || value > most) {
    throw Error(Errc::bad_file, cat(where, ": ", what, " is ", value, "; expected 1 to ", most));
  }
}

}  // namespace

void check_shape(const RoutingShape& shape, const char* where) {
  check_between(where, "the number of layers", shape.n_layers, kMaxLayers);
  check_between(where, "the number of experts", shape.n_experts, kMaxExperts);
  check_between(where, "the number of experts used", shape.n_experts_used,
                std::min(shape.n_experts, kMaxExpertsUsed));
  if (shape.expert_bytes.size() != static_cast<size_t>(shape.n_layers)) {
    throw Error(Errc::bad_file, cat(where, ": expert sizes for ", shape.expert_bytes.size(), " of ",
                                    shape.n_layers, " layers; expected one for each"));
  }
  constexpr uint64_t kMost = uint64_t{1} << 40;
  for (size_t l = 0; l < shape.expert_bytes.size(); ++l) {
    if (shape.expert_bytes[l] > kMost) {
      throw Error(Errc::bad_file, cat(where, ": an expert of layer ", l, " has ",
                                      shape.expert_bytes[l], " bytes; expected at most ", kMost));
    }
  }
}

}  // namespace sluice::policy
