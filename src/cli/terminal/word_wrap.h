// Text that comes piece by piece, wrapped at words: what is to be written for each piece, so that a
// word that does not fit into its line is taken back and written on the next one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

class WordWrap {
 public:
  // Bytes for the terminal. `text`: whole characters. n_columns below 20: as it is.
  std::string add(std::string_view text, int n_columns);
  void end_line() { column_ = word_columns_ = 0, word_.clear(); }

 private:
  void put_character(std::string_view character, int n_columns, std::string& out);

  int column_ = 0;        // where the cursor is
  int word_columns_ = 0;  // of them, the word that is being written
  std::string word_;
};

}  // namespace sluice::cli
