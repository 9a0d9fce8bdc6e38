// What the server knows about models besides the one it serves; the command line fills it in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sluice/chat.h"
#include "sluice/sluice.h"

namespace sluice::server {

struct LoadedModel {
  Model model;
  SessionOptions session;  // for this model
};

// Called from several threads. An empty function: there are no other models.
struct ModelSource {
  std::function<std::vector<FoundModel>()> list = {};
  std::function<LoadedModel(const std::string& path)> load = {};
  // What would live where, as JSON. Throws Error where the file is no model that can be used.
  std::function<std::string(const std::string& path)> plan = {};
};

}  // namespace sluice::server
