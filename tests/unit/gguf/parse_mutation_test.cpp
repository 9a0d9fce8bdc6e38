// The parser on a valid file with one thing wrong, everywhere: it parses or throws Error, and does
// nothing else. Run under ASan this is also the proof that it reads no byte beyond the end.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <exception>
#include <memory>

#include "base/error.h"
#include "gguf/parse.h"
#include "unit/gguf/file_bytes.h"

namespace sluice::gguf::test {
namespace {

enum class Outcome { parsed, refused };

// The bytes lie in a block of exactly their size, so that ASan sees a read of one too many.
Outcome try_parse(const std::string& bytes) {
  const auto block = std::make_unique<std::byte[]>(bytes.size());
  std::copy_n(as_bytes(bytes).data(), bytes.size(), block.get());
  try {
    const ParsedFile file = parse({block.get(), bytes.size()}, "m.gguf");
    for (const TensorInfo& tensor : file.tensors) {
      EXPECT_LE(tensor.offset, bytes.size()) << tensor.name;
      EXPECT_LE(tensor.n_bytes, bytes.size() - tensor.offset) << tensor.name;
    }
    return Outcome::parsed;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_file) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return Outcome::refused;
  }
}

TEST(ParseMutation, EveryTruncationIsRefused) {
  const std::string valid = small_valid_file();
  ASSERT_EQ(try_parse(valid), Outcome::parsed);
  for (size_t n = 0; n < valid.size(); ++n) {
    EXPECT_EQ(try_parse(valid.substr(0, n)), Outcome::refused) << "cut to " << n << " bytes";
  }
}

TEST(ParseMutation, EveryFlippedBitParsesOrThrowsError) {
  const std::string valid = small_valid_file();
  size_t refused = 0;
  for (size_t bit = 0; bit < valid.size() * 8; ++bit) {
    std::string flipped = valid;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    SCOPED_TRACE(cat("bit ", bit % 8, " of byte ", bit / 8));
    EXPECT_NO_THROW(refused += try_parse(flipped) == Outcome::refused);
  }
  EXPECT_GT(refused, valid.size()) << "of " << valid.size() * 8 << " flips; the file is mostly "
                                   << "lengths and ids, so that many must be noticed";
}

TEST(ParseMutation, EveryByteSetToAnExtremeParsesOrThrowsError) {
  const std::string valid = small_valid_file();
  for (size_t i = 0; i < valid.size(); ++i) {
    for (const int value : {0x00, 0x7f, 0x80, 0xff}) {
      std::string changed = valid;
      changed[i] = static_cast<char>(value);
      SCOPED_TRACE(cat("byte ", i, " set to ", value));
      EXPECT_NO_THROW(try_parse(changed));
    }
  }
}

}  // namespace
}  // namespace sluice::gguf::test
