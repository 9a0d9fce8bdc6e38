// See words.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/words.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/error.h"
#include "cli/files/model_registry.h"

namespace sluice::cli {
namespace {

// "qwen3:30b", "user/repo", "models/x.gguf"; not "hello?" and not "two words".
bool could_name_model(const std::string& word) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._:/-+~").find(c) != std::string_view::npos;
  };
  std::error_code ignored;
  return word != "-" && !word.empty() &&
         (std::ranges::all_of(word, is_plain) || word.ends_with(".gguf") ||
          std::filesystem::is_regular_file(word, ignored));
}

std::string joined(std::span<const std::string> words) {
  std::string text;
  for (const std::string& word : words) text += cat(text.empty() ? "" : " ", word);
  return text;
}

}  // namespace

ModelAndText sort_words(const std::vector<std::string>& words, bool has_model, bool has_text) {
  ModelAndText out;
  std::span<const std::string> rest = words;
  if (!rest.empty() && !has_model && (has_text || could_name_model(rest[0]))) {
    out.model = rest[0];
    rest = rest.subspan(1);
  }
  if (rest.empty()) return out;
  if (has_text) {
    throw Error(Errc::bad_request, cat("'", rest[0].substr(0, 40),
                                       "' is one word too many: the model and the text are "
                                       "given already; a text of several words goes in quotes"));
  }
  out.text = joined(rest);
  return out;
}

void require_model_word(const std::string& word) {
  try {
    std::error_code ignored;
    if (!std::filesystem::exists(find_model(word), ignored)) {
      throw Error(Errc::bad_request, cat("there is no file '", word.substr(0, 200), "'"));
    }
  } catch (const Error& error) {
    throw Error(error.code(), cat(error.what(), "; a prompt of one word goes behind -p"));
  }
}

}  // namespace sluice::cli
