// The trunk of a model's last layers, with norm and output matrix behind them, in a device's
// memory; and the model as the device's operations see it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/device/device_block.h"
#include "model/model.h"

namespace sluice::engine {

class DeviceTrunk {
 public:
  // From layer `first` on; as large as `price` says. The model outlives it.
  DeviceTrunk(const model::Model& model, backend::Device& device, int first,
              const policy::VramBytes& price);

  // Experts of its layers are still where the host has them.
  const model::Model& model() const { return model_; }

 private:
  void move(const model::TrunkTensors& tensors, DeviceBlock& to, backend::Stream& copies);

  model::Model model_;
  DeviceBlock layers_, output_;
};

}  // namespace sluice::engine
