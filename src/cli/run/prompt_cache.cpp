// See prompt_cache.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/run/prompt_cache.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/error.h"
#include "cli/terminal/terminal_text.h"

namespace sluice::cli {
namespace {

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

bool is_readable(const std::string& path) { return std::ifstream(path).good(); }

}  // namespace

std::optional<std::vector<TokenId>> PromptCache::load(Session& session) {
  in_file_.clear();
  may_write_ = !options_.is_read_only;
  if (!is_there(options_.path)) return {};
  try {
    in_file_ = session.load(options_.path);
    return in_file_;
  } catch (const Error& e) {
    const bool is_damaged = e.code() == Errc::bad_file && is_readable(options_.path);
    if (!is_damaged && e.code() != Errc::bad_file && e.code() != Errc::bad_request) throw;
    if (!is_damaged) may_write_ = false;  // whatever it is, somebody may want it
    const char* const becomes = !may_write_ ? "the file stays as it is" : "the file is replaced";
    print_warning(cat("--prompt-cache: ", e.what(), "; the prompt is computed, and ", becomes));
    return {};
  }
}

std::string PromptCache::save(Session& session, std::span<const TokenId> tokens) {
  const bool is_held = in_file_.size() >= tokens.size() &&
                       std::ranges::equal(tokens, std::span(in_file_).first(tokens.size()));
  if (is_held || !may_write_) return "it stays as it is";
  try {
    session.save(options_.path);
  } catch (const Error& e) {
    if (e.code() != Errc::bad_file) throw;
    print_warning(cat("--prompt-cache: ", e.what()));
    return "it could not be written";
  }
  in_file_.assign(tokens.begin(), tokens.end());
  n_saved_ = tokens.size();
  return cat("now it holds ", n_saved_);
}

void PromptCache::prompt_was_read(Session& session, std::span<const TokenId> prompt,
                                  size_t n_found) {
  n_found_ = n_found;
  n_prompt_ = prompt.size();
  const std::span<const TokenId> read = prompt.first(prompt.size() - 1);
  const auto n_alike =
      static_cast<size_t>(std::ranges::mismatch(in_file_, read).in1 - in_file_.begin());
  std::string why;
  if (n_found < n_alike) {
    why = cat(" (", n_alike, " begin alike, but a model with recurrent layers uses the whole file ",
              "or nothing)");
  }
  const std::string outcome = save(session, read);
  print_note(cat(n_found, " of ", prompt.size(), " prompt tokens were in ", options_.path, why,
                 "; ", outcome));
}

Json PromptCache::to_json() const {
  return {{"file", options_.path},
          {"n_prompt", n_prompt_},
          {"n_found", n_found_},
          {"n_saved", n_saved_}};
}

}  // namespace sluice::cli
