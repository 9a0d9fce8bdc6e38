// See parse.h. The order of the checks is the order of the bytes: header, keys, tensor infos, and
// last what only the whole directory shows (bounds, overlaps).
// SPDX-License-Identifier: Apache-2.0
#include "gguf/parse.h"

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "gguf/byte_reader.h"
#include "gguf/in_quotes.h"
#include "gguf/layout.h"
#include "gguf/read_value.h"

namespace sluice::gguf {
namespace {

// The least that a key (length, one letter, type, one byte) and a tensor info (length, one letter,
// n_dims, type, offset) take: they bound the counts before a loop uses them.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorInfoBytes = 8 + 1 + 4 + 4 + 8;

uint32_t read_version(ByteReader& reader) {
  const auto version = reader.read<uint32_t>("the header");
  if (version != 0 && (version & 0xffff) == 0) {
    reader.fail(
        "the file is byte-swapped (made for a big-endian machine); expected little endian: "
        "fetch or convert a little-endian file");
  }
  if (version < kMinVersion || version > kVersion) {
    reader.fail("GGUF version ", version, "; expected ", kMinVersion, " or ", kVersion,
                version < kMinVersion ? " (convert the model again with a current tool)" : "");
  }
  return version;
}

uint64_t read_count(ByteReader& reader, std::string_view what) {
  const auto count = reader.read<int64_t>("the header");
  if (count < 0) reader.fail("the header counts ", count, " ", what, "; expected 0 or more");
  return static_cast<uint64_t>(count);
}

void check_count(const ByteReader& reader, uint64_t count, uint64_t min_bytes,
                 std::string_view what) {
  if (count > reader.left() / min_bytes) {
    reader.fail("the header counts ", count, " ", what, ", but only ", reader.left(),
                " bytes follow; expected at least ", min_bytes,
                " bytes for each (an incomplete download?)");
  }
}

Metadata read_metadata(ByteReader& reader, uint64_t n_kv, const std::string& path) {
  check_count(reader, n_kv, kMinEntryBytes, "keys");
  Metadata metadata(path);
  for (uint64_t i = 0; i < n_kv; ++i) {
    const std::string_view key = reader.read_string(cat("the name of key ", i));
    check_key(path, key);
    if (metadata.contains(key)) {
      reader.fail("key ", in_quotes(key), " occurs more than once; expected unique keys");
    }
    metadata.set(key, read_value(reader, "key " + in_quotes(key)));
  }
  return metadata;
}

const quant::TypeInfo* read_tensor_type(ByteReader& reader, const std::string& where) {
  const auto id = reader.read<int32_t>(where);
  const quant::TypeInfo* type = quant::find_type_info(static_cast<uint32_t>(id));
  if (type != nullptr) return type;
  constexpr int32_t kRemoved[] = {4, 5, 31, 32, 33, 36, 37, 38};
  if (std::ranges::find(kRemoved, id) != std::end(kRemoved)) {
    reader.fail(
        where, " has type id ", id,
        ", which was removed from the format; expected a current type: quantise the model again");
  }
  reader.fail(where, " has the unknown type id ", id, "; expected a type that this version knows");
}

TensorInfo read_tensor_info(ByteReader& reader, uint64_t index, const std::string& path) {
  const std::string_view name = reader.read_string(cat("the name of tensor ", index));
  check_tensor_name(path, name);
  TensorInfo tensor;
  tensor.name = name;
  const std::string where = "tensor " + in_quotes(tensor.name);
  const auto n_dims = reader.read<uint32_t>(where);
  if (n_dims > kMaxDims) {
    reader.fail(where, " has ", n_dims, " dimensions; expected at most ", kMaxDims);
  }
  for (uint32_t i = 0; i < n_dims; ++i) tensor.shape.push_back(reader.read<int64_t>(where));
  tensor.type = read_tensor_type(reader, where);
  tensor.n_bytes = checked_tensor_bytes(path, tensor);
  tensor.offset = reader.read<uint64_t>(where);  // relative until place_tensors()
  return tensor;
}

// Turns the offsets into absolute ones, and measures them against the file.
void place_tensors(ParsedFile& file, const ByteReader& reader, uint64_t file_bytes) {
  constexpr uint64_t kTooFar = std::numeric_limits<uint64_t>::max();
  const TensorInfo* outside = nullptr;
  uint64_t needed = 0;
  for (TensorInfo& tensor : file.tensors) {
    if (tensor.offset % file.alignment != 0) {
      reader.fail("tensor ", in_quotes(tensor.name), " has offset ", tensor.offset,
                  "; expected a multiple of the alignment, ", file.alignment);
    }
    uint64_t end = 0;
    if (__builtin_add_overflow(tensor.offset, file.data_start, &tensor.offset) ||
        __builtin_add_overflow(tensor.offset, tensor.n_bytes, &end)) {
      end = kTooFar;
    }
    if (end > file_bytes && outside == nullptr) outside = &tensor;
    needed = std::max(needed, end);
  }
  if (outside != nullptr) {
    reader.fail("tensor ", in_quotes(outside->name), " of ", outside->n_bytes,
                " bytes reaches beyond the end of the file, which has ", file_bytes, " bytes (",
                format_bytes(file_bytes), "); expected at least ", needed, " (",
                format_bytes(needed), "): an incomplete download?");
  }
}

void check_no_overlap(const ParsedFile& file, const ByteReader& reader) {
  std::vector<const TensorInfo*> sorted;
  sorted.reserve(file.tensors.size());
  for (const TensorInfo& tensor : file.tensors) {
    if (tensor.n_bytes > 0) sorted.push_back(&tensor);
  }
  std::ranges::sort(sorted, {}, &TensorInfo::offset);
  for (size_t i = 1; i < sorted.size(); ++i) {
    const TensorInfo& a = *sorted[i - 1];
    const TensorInfo& b = *sorted[i];
    if (a.offset + a.n_bytes > b.offset) {
      reader.fail("tensors ", in_quotes(a.name), " (bytes ", a.offset, " to ", a.offset + a.n_bytes,
                  ") and ", in_quotes(b.name), " (from byte ", b.offset,
                  ") overlap; expected separate ranges");
    }
  }
}

}  // namespace

ParsedFile parse(std::span<const std::byte> bytes, const std::string& path) {
  return parse_header(bytes, path, bytes.size());
}

ParsedFile parse_header(std::span<const std::byte> bytes, const std::string& path,
                        uint64_t file_bytes) {
  ByteReader reader(bytes, path, file_bytes);
  if (file_bytes < kHeaderBytes) {
    reader.fail("the file has ", file_bytes, " bytes; expected at least the ", kHeaderBytes,
                " of a GGUF header");
  }
  const auto magic = reader.take(kMagic.size(), "the header");
  const std::string_view found(reinterpret_cast<const char*>(magic.data()), magic.size());
  if (found != kMagic) {
    reader.fail("the file starts with ", in_quotes(found), "; expected ", in_quotes(kMagic),
                ": this is not a GGUF file");
  }

  ParsedFile file;
  file.version = read_version(reader);
  const uint64_t n_tensors = read_count(reader, "tensors");
  const uint64_t n_kv = read_count(reader, "keys");
  file.metadata = read_metadata(reader, n_kv, path);
  file.alignment = alignment_of(file.metadata);

  check_count(reader, n_tensors, kMinTensorInfoBytes, "tensors");
  file.tensors.reserve(n_tensors);
  for (uint64_t i = 0; i < n_tensors; ++i) {
    file.tensors.push_back(read_tensor_info(reader, i, path));
  }
  check_unique_names(path, file.tensors);

  file.data_start = round_up(reader.pos(), file.alignment);
  place_tensors(file, reader, file_bytes);
  check_no_overlap(file, reader);
  return file;
}

}  // namespace sluice::gguf
