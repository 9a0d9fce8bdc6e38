// SHA-256 against the examples of FIPS 180-4 and NIST's long one, whole and in pieces.
// SPDX-License-Identifier: Apache-2.0
#include "hub/sha256.h"

#include <gtest/gtest.h>

namespace sluice::hub::test {
namespace {

std::string hex_of(const std::string& text, size_t piece) {
  Sha256 hash;
  const auto bytes = std::as_bytes(std::span(text));
  for (size_t at = 0; at < bytes.size(); at += piece) {
    hash.add(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  }
  return hash.hex();
}

TEST(Sha256, GivesTheStandardsExamples) {
  const std::pair<std::string, std::string> kExamples[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
       "lmnopqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1000000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}};
  for (const auto& [text, expected] : kExamples) {
    for (const size_t piece : {1u, 7u, 63u, 64u, 65u, 4096u, 2000000u}) {
      EXPECT_EQ(hex_of(text, piece), expected) << text.size() << " bytes in pieces of " << piece;
    }
  }
}

// Around the ends of blocks, where the padding needs one block more or does not.
TEST(Sha256, DoesNotDependOnThePieces) {
  for (size_t n = 50; n < 200; ++n) {
    std::string text(n, '\0');
    for (size_t i = 0; i < n; ++i) text[i] = static_cast<char>(i * 37);
    EXPECT_EQ(hex_of(text, 1), hex_of(text, n)) << n << " bytes";
  }
}

}  // namespace
}  // namespace sluice::hub::test
