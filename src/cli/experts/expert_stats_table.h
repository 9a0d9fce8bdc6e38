// What became of a session's experts: where they were found, what that took, and how they were
// placed. As a table for people, and as JSON.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

#include "cli/files/json_text.h"
#include "sluice/sluice.h"

namespace sluice::cli {

// "expert cache on RAM device: 8 of 8 layers, 40 of 64 experts in 1.20 MiB"
std::string describe(const PlacementInfo& placement);

Json placement_json(const PlacementInfo& placement);
Json expert_stats_json(const PlacementInfo& placement, const ExpertStats& stats);

void print_expert_stats(std::FILE* to, const PlacementInfo& placement, const ExpertStats& stats);

}  // namespace sluice::cli
