// Tells models apart by their files, so that what was computed with one is never taken for
// another's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "gguf/model_file.h"

namespace sluice::engine {

struct ModelStamp {
  std::string name;         // for people: the architecture, and the model's own name
  uint64_t file_bytes = 0;  // of all shards
  // Of metadata and tensor directory, and of the beginnings of some tensors: two trainings of one
  // model differ in nothing else.
  uint64_t sum = 0;
  int n_vocab = 0;  // ids of tokens are below it
};

ModelStamp make_stamp(const gguf::ModelFile& file, int n_vocab);

}  // namespace sluice::engine
