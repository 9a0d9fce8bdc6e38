// The names of the files of a split model: <prefix>-00001-of-00003.gguf, numbered from 1.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::gguf {

struct ShardName {
  std::string prefix;  // the path up to the "-00001-of-"
  int64_t number = 0;  // from 1
  int64_t count = 0;

  std::string path() const;
  // The same model's shard with another number.
  ShardName with_number(int64_t other) const { return {prefix, other, count}; }
};

constexpr int64_t kMaxShards = 65535;  // split.count is a u16

// Nothing when the path does not have the pattern.
std::optional<ShardName> parse_shard_name(std::string_view path);

}  // namespace sluice::gguf
