// The shape of a model file's experts, as routing traces have it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "policy/trace/routing.h"

namespace sluice::cli {

// Of the layers with experts of a model, by a name or its file. Throws Errc::unsupported_model
// where there are none, or where layers differ in their number.
policy::RoutingShape read_routing_shape(const std::string& name);

}  // namespace sluice::cli
