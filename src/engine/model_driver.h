// Makes what takes the steps of a loaded model, for a session (one text) and for an engine (many):
// chooses the device where that is left open, plans, and builds the driver.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/device/device_steps.h"
#include "engine/loaded_model.h"

namespace sluice::engine {

struct DriverRequest {
  const LoadedModel& model;  // outlives the driver, as do the options
  SessionOptions& options;   // a device that is chosen is written here
  TextsWish texts = {};
  RouteOverride reroute = {};
};

// `placement` is what is known before the first step; with a device the driver knows more.
std::unique_ptr<StepDriver> make_driver(const DriverRequest& request, PlacementInfo& placement);

// Tokens of a text that the options ask for. Throws Errc::bad_request for numbers that make no
// sense.
int wished_context(const LoadedModel& model, const SessionOptions& options);

}  // namespace sluice::engine
