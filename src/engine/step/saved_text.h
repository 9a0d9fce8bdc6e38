// A text in a file, with what was computed of it. Little-endian:
//   header       SavedTextHeader, with a sum of its own
//   tokens       int32 each
//   data         as text_data.h has it
//   sum          uint64 of tokens and data (base/checksum.h)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/model_stamp.h"
#include "engine/step/text_memory.h"

namespace sluice::engine {

struct SavedTextHeader {
  static constexpr char kMagic[8] = {'S', 'L', 'U', 'I', 'C', 'E', 'T', 'X'};
  static constexpr uint32_t kVersion = 1;

  char magic[8];
  uint32_t version;
  uint32_t n_tokens;
  uint64_t file_bytes;  // of this file, all of it
  uint64_t model_bytes;
  uint64_t model_sum;  // ModelStamp's
  char model[80];      // its name, ended by a 0
  char k_type[8];      // of the cache
  char v_type[8];
  uint32_t page_tokens;  // of a KV page: bytes stand page by page
  uint32_t unused;
  uint64_t sum;  // of all before it
};
static_assert(sizeof(SavedTextHeader) == 152);

// The file appears whole or not at all. Throws Errc::bad_request for an empty text, and
// Errc::bad_file where it cannot be written.
void save_text(const std::string& path, const TextMemory& memory, SequenceId sequence,
               const ModelStamp& model);

// The tokens of a file that load_text() would take, as far as header and tokens tell. Throws as it
// does.
std::vector<TokenId> read_saved_tokens(const std::string& path, const TextMemory& memory,
                                       const ModelStamp& model);

// The sequence becomes the text of a file; returns its tokens. Throws Errc::bad_file for a file
// that cannot be read or is damaged, and Errc::bad_request for one that is no saved text, or not
// one for this model and cache: nothing has changed then. Where memory fails after that, it is
// empty.
std::vector<TokenId> load_text(const std::string& path, const TextMemory& memory,
                               SequenceId sequence, const ModelStamp& model);

}  // namespace sluice::engine
