// The trunk of a model's last layers, with norm and output matrix behind them, in a device's
// memory; and the model as the device's operations see it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/device/device_block.h"
#include "engine/device/upload.h"
#include "model/model.h"

namespace sluice::engine {

class DeviceTrunk {
 public:
  struct Memory {
    DeviceBlock &layers, &output;
  };
  // From layer `first` on, there when the upload is finished; woven by it, or as the host has it.
  // Then so are to be the experts that follow. The model and its memory outlive it.
  DeviceTrunk(const model::Model& model, int first, const Memory& memory, Upload& upload,
              bool weaves);

  // Experts of its layers are still where the host has them.
  const model::Model& model() const { return model_; }

 private:
  void move(const model::TrunkTensors& tensors, DeviceBlock& to, Upload& upload, bool weaves);

  model::Model model_;
};

}  // namespace sluice::engine
