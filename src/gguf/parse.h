// The bytes of one GGUF file -> its metadata and its tensor directory, with every claim of the file
// checked. Pure: opens nothing, and does not look at the tensors' data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "gguf/tensor_info.h"

namespace sluice::gguf {

struct ParsedFile {
  uint32_t version = 0;
  uint64_t alignment = 0;
  uint64_t data_start = 0;  // beyond the end of a file that stops after its header
  Metadata metadata;
  std::vector<TensorInfo> tensors;  // in the file's order
};

// Throws Errc::bad_file, naming `path`, for whatever is not a sound file of version 2 or 3. After
// it returned, every tensor's [offset, offset + n_bytes) lies within the bytes and none overlaps
// another. Types that sluice cannot compute with are accepted: that is for the model to say.
// Allocates no more than a small multiple of the bytes that the metadata really has.
ParsedFile parse(std::span<const std::byte> bytes, const std::string& path);

// The same of the first bytes of a file of `file_bytes`, which must reach to the directory's end:
// throws NeedsMoreBytes (byte_reader.h) where they do not.
ParsedFile parse_header(std::span<const std::byte> bytes, const std::string& path,
                        uint64_t file_bytes);

}  // namespace sluice::gguf
