// See profile_file.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/profile_file.h"

#include "base/error.h"
#include "base/units.h"
#include "engine/machine/state_file.h"

namespace sluice::engine {
namespace {

constexpr uint64_t kMaxBytes = 32 * kMiB;  // the largest shape's is half of that

}  // namespace

std::optional<policy::RoutingProfile> ProfileFile::load(const std::string& path, int n_layers,
                                                        int n_experts, std::string* warning) {
  std::optional<policy::RoutingProfile> loaded;
  const auto parse = [&](std::span<const std::byte> bytes) {
    auto profile = policy::RoutingProfile::decode(bytes);
    if (profile.n_layers() != n_layers || profile.n_experts() != n_experts) {
      throw Error(Errc::bad_file,
                  cat("is the routing profile of a model of ", profile.n_layers(), " layers of ",
                      profile.n_experts(), " experts; expected ", n_layers, " of ", n_experts));
    }
    loaded = std::move(profile);
  };
  read_state_file(path, kMaxBytes, parse, warning);
  return loaded;
}

void ProfileFile::save(const std::string& path, const policy::RoutingProfile& profile) {
  write_state_file(path, profile.encode());
}

}  // namespace sluice::engine
