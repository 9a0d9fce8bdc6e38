// Models of the hub, as the command line uses them: found here, fetched with a bar and Ctrl-C, or
// looked at by their headers alone. $HF_ENDPOINT, $HF_TOKEN and $HF_HUB_OFFLINE are read here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/model_file.h"
#include "hub/repo_files.h"
#include "hub/repo_name.h"

namespace sluice::cli {

struct PullOptions {
  int n_connections = 4;
  int n_retries = 8;
  double stall_seconds = 30.0;
};

struct PulledModel {
  std::string name;  // as sluice list shows it
  std::string path;  // of a split model the first file
  uint64_t n_bytes = 0;
  uint64_t n_fetched = 0;  // now
  int n_failures = 0;      // that were taken up again
  double seconds = 0.0;
};

// Fetches what is not here already, or has changed. On Ctrl-C it says what is kept, and ends the
// program.
PulledModel pull_model(const hub::RepoName& name, const PullOptions& options);

// What a repository holds.
std::vector<hub::RepoModel> list_repo(const hub::RepoName& name, const PullOptions& options);

// The file of a model that is here; else it is pulled.
std::string hub_model_file(const hub::RepoName& name);

// A model that is looked at and not computed with: a file that is here, or the header of one that
// is not.
struct DescribedModel {
  gguf::ModelFile file;
  std::string path;
  std::string pull_name = {};  // what `sluice pull` takes; empty: the model is here
};
DescribedModel describe_model(const std::string& name);

}  // namespace sluice::cli
