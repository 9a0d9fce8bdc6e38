// See routing_shape.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/simulate/routing_shape.h"

#include "base/error.h"
#include "cli/files/hub_models.h"
#include "model_file/shape.h"

namespace sluice::cli {

policy::RoutingShape read_routing_shape(const std::string& name) {
  const DescribedModel described = describe_model(name);
  const std::string& path = described.path;
  const policy::ModelShape model = model_file::read_shape(described.file);
  policy::RoutingShape shape;
  shape.n_experts_used = model.n_experts_used;
  for (const policy::LayerShape& layer : model.layers) {
    if (layer.n_experts == 0) continue;
    if (shape.n_layers > 0 && layer.n_experts != shape.n_experts) {
      throw Error(Errc::unsupported_model,
                  cat(path, ": layers of ", shape.n_experts, " and of ", layer.n_experts,
                      " experts; expected the same number in all"));
    }
    ++shape.n_layers;
    shape.n_experts = layer.n_experts;
    shape.expert_bytes.push_back(layer.expert_bytes);
  }
  if (shape.n_layers == 0) {
    throw Error(Errc::unsupported_model, cat(path, ": has no experts; expected a model with some"));
  }
  return shape;
}

}  // namespace sluice::cli
