// See device_trunk.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/device_trunk.h"

namespace sluice::engine {

DeviceTrunk::DeviceTrunk(const model::Model& model, backend::Device& device, int first,
                         const policy::VramBytes& price)
    : model_(model), layers_(device, price.trunk), output_(device, price.output) {
  const auto copies = device.make_stream("trunk");
  const int n_layers = model.config().n_layers;
  for (int i = first; i < n_layers; ++i) move(model_.trunk(i), layers_, *copies);
  move(model_.trunk(n_layers), output_, *copies);
  copies->finish();
}

void DeviceTrunk::move(const model::TrunkTensors& tensors, DeviceBlock& to,
                       backend::Stream& copies) {
  for (backend::WeightView* w : tensors.matrices) {
    const uint64_t n_bytes = static_cast<uint64_t>(w->n_mats) * w->matrix_bytes();
    std::byte* const place = to.take(n_bytes);
    copies.copy(place, w->data, n_bytes);
    w->data = place;
  }
  for (const auto& [data, n] : tensors.vectors) {
    const uint64_t n_bytes = static_cast<uint64_t>(n) * sizeof(float);
    std::byte* const place = to.take(n_bytes);
    copies.copy(place, reinterpret_cast<const std::byte*>(*data), n_bytes);
    *data = reinterpret_cast<const float*>(place);
  }
}

}  // namespace sluice::engine
