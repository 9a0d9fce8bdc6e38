// Where a model's routing profile is kept between runs (policy/routing_profile.h has its format).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "policy/trace/routing_profile.h"

namespace sluice::engine {

struct ProfileFile {
  // Nothing where there is no file. Nothing either where it is damaged, or is that of a model of
  // another shape; `warning` is then one line that says so.
  static std::optional<policy::RoutingProfile> load(const std::string& path, int n_layers,
                                                    int n_experts, std::string* warning);

  // As write_state_file(): whole or not at all. Throws Errc::bad_file.
  static void save(const std::string& path, const policy::RoutingProfile& profile);
};

}  // namespace sluice::engine
