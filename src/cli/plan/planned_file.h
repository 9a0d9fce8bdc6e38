// The plan of a model file as text, for programs that show it before they load the model.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/flags/model_options.h"

namespace sluice::cli {

// As `sluice plan --json` prints it, for this machine. Memory that is short is a warning there,
// since another model may have to leave first. Throws Error where the file is no model that can be
// planned for.
std::string plan_text(const std::string& path, const ModelOptions& flags,
                      const SessionOptions& session, int n_sequences);

}  // namespace sluice::cli
