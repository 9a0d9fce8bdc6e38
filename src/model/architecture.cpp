// See architecture.h.
// SPDX-License-Identifier: Apache-2.0
#include "model/architecture.h"

#include <algorithm>

#include "base/error.h"
#include "gguf/in_quotes.h"

namespace sluice::model {
namespace {

template <typename Wanted>
std::string names_of(std::string_view separator, Wanted&& is_wanted) {
  std::string names;
  for (const Architecture* a : architectures()) {
    if (is_wanted(*a)) names += cat(names.empty() ? "" : separator, a->name);
  }
  return names;
}

}  // namespace

std::span<const Architecture* const> architectures() {
  static constexpr const Architecture* kAll[] = {&kQwen3Moe,  &kQwen2Moe,  &kOlmoe,    &kLlama,
                                                 &kQwen35Moe, &kQwen3Next, &kQwen3,    &kQwen35,
                                                 &kGptOss,    &kGlm4Moe,   &kDeepseek2};
  return kAll;
}

const Architecture* find_architecture(std::string_view name) {
  const auto found = std::ranges::find(architectures(), name, &Architecture::name);
  return found == architectures().end() ? nullptr : *found;
}

std::string runnable_architectures(std::string_view separator) {
  return names_of(separator, [](const Architecture& a) { return a.can_run(); });
}

const Architecture& architecture_of(const ConfigReader& in) {
  const Architecture* found = find_architecture(in.architecture());
  if (found && found->can_run()) return *found;
  in.refuse(cat("architecture ", gguf::in_quotes(in.architecture()), " is not supported",
                found ? " yet, but for planning" : "", "; sluice runs ",
                runnable_architectures(", ")));
}

const Architecture& described_architecture_of(const ConfigReader& in) {
  if (const Architecture* found = find_architecture(in.architecture())) return *found;
  in.refuse(cat("architecture ", gguf::in_quotes(in.architecture()),
                " is not known; sluice plans for ",
                names_of(", ", [](const Architecture&) { return true; })));
}

}  // namespace sluice::model
