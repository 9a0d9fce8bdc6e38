// See device_trunk.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/device_trunk.h"

#include "engine/woven_weights.h"

namespace sluice::engine {

DeviceTrunk::DeviceTrunk(const model::Model& model, int first, const Memory& memory, Upload& upload,
                         bool weaves)
    : model_(model) {
  const int n_layers = model.config().n_layers;
  for (int i = first; i < n_layers; ++i) move(model_.trunk(i), memory.layers, upload, weaves);
  move(model_.trunk(n_layers), memory.output, upload, weaves);
  if (!weaves) return;
  for (backend::ExpertsView* e : model_.experts()) {
    for (backend::WeightView* w : {&e->gate, &e->up, &e->down}) {
      if (can_be_woven(*w)) w->layout = quant::Layout::stripes;
    }
  }
}

void DeviceTrunk::move(const model::TrunkTensors& tensors, DeviceBlock& to, Upload& upload,
                       bool weaves) {
  for (backend::WeightView* w : tensors.matrices) {
    std::byte* const place = to.take(static_cast<uint64_t>(w->n_mats) * w->matrix_bytes());
    upload.add(place, *w, weaves);
    if (weaves && can_be_woven(*w)) w->layout = quant::Layout::stripes;
    w->data = place;
    w->groups = {};
  }
  for (const auto& [data, n] : tensors.vectors) {
    const auto values = std::as_bytes(std::span(*data, static_cast<size_t>(n)));
    std::byte* const place = to.take(values.size());
    upload.add(place, values, Upload::From::file);  // unless the model has widened them
    *data = reinterpret_cast<const float*>(place);
  }
}

}  // namespace sluice::engine
