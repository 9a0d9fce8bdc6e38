// See model_stamp.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/model_stamp.h"

#include <algorithm>

#include "base/checksum.h"
#include "base/error.h"

namespace sluice::engine {
namespace {

// Few enough that a file which is not in memory gives them in milliseconds.
constexpr size_t kTensors = 16;
constexpr size_t kBytesOfEach = 4096;

}  // namespace

ModelStamp make_stamp(const gguf::ModelFile& file, int n_vocab) {
  Checksum sum;
  for (size_t i = 0; i < file.n_shards(); ++i) sum.add(file.header(i));
  const std::span<const gguf::Tensor> tensors = file.tensors();
  const size_t apart = std::max<size_t>(1, tensors.size() / kTensors);
  for (size_t i = 0; i < tensors.size(); i += apart) {
    const std::span<const std::byte> data = tensors[i].data;
    sum.add(data.first(std::min(data.size(), kBytesOfEach)));
  }
  const std::string architecture = file.metadata().get_string_or("general.architecture", "");
  const std::string name = file.metadata().get_string_or("general.name", "");
  return {.name = name.empty() ? architecture : cat(architecture, ", ", name),
          .file_bytes = file.file_bytes(),
          .sum = sum.value(),
          .n_vocab = n_vocab};
}

}  // namespace sluice::engine
