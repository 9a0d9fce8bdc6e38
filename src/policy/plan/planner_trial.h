// Plans that are too close to tell by prediction which one is faster: these are tried.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "policy/plan/planner.h"

namespace sluice::policy {

// A prediction is this far off at most, on the machines it was compared with
// (tests/unit/engine/forecast_test.cpp).
constexpr double kForecastError = 0.15;

// The plan of make_plan(), and those of other modes that may be as fast for all it knows. Only that
// plan where a wish has settled the mode.
std::vector<Plan> close_plans(const ModelShape& model, const Hardware& hardware,
                              const Wishes& wishes,
                              const LocalityCurve& locality = LocalityCurve::typical());

}  // namespace sluice::policy
