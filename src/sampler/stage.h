// The stages of the chain between logits and token: their names, and the order in which a user
// wants them. What a stage does stands in its own file. All inline, so that model/ can read the
// order in a file without linking the sampler.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::sampler {

enum class Stage : uint8_t {
  penalties,
  dry,
  top_n_sigma,
  top_k,
  typical_p,
  top_p,
  min_p,
  xtc,
  temperature,
};

struct StageName {
  Stage stage;
  char letter;
  std::string_view name;
};

// In the default order, "edskypmxt".
inline constexpr StageName kStageNames[] = {
    {Stage::penalties, 'e', "penalties"},
    {Stage::dry, 'd', "dry"},
    {Stage::top_n_sigma, 's', "top_n_sigma"},
    {Stage::top_k, 'k', "top_k"},
    {Stage::typical_p, 'y', "typ_p"},
    {Stage::top_p, 'p', "top_p"},
    {Stage::min_p, 'm', "min_p"},
    {Stage::xtc, 'x', "xtc"},
    {Stage::temperature, 't', "temperature"},
};

// A longer chain is refused: every stage costs time on each token.
inline constexpr size_t kMaxStages = 32;

inline std::vector<Stage> default_stages() {
  std::vector<Stage> stages;
  for (const StageName& known : kStageNames) stages.push_back(known.stage);
  return stages;
}

// Lower case without '_', '-' and spaces, so that "top_k", "top-k" and "TopK" are one name.
inline std::string plain_stage_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return plain;
}

[[noreturn]] inline void fail_unknown_stage(std::string_view found) {
  std::string shown(found.substr(0, 40));  // it comes from outside: one line of printable text
  std::ranges::replace_if(
      shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  std::string known;
  for (const StageName& s : kStageNames) {
    known += cat(known.empty() ? "" : ", ", s.name, " (", s.letter, ")");
  }
  throw Error(Errc::bad_request, cat("unknown sampler '", shown, "'; expected one of ", known));
}

inline Stage stage_of_letter(char letter) {
  for (const StageName& known : kStageNames) {
    if (known.letter == letter) return known.stage;
  }
  fail_unknown_stage({&letter, 1});
}

inline Stage stage_of_name(std::string_view name) {
  const std::string plain = plain_stage_name(name);
  for (const StageName& known : kStageNames) {
    if (plain == plain_stage_name(known.name)) return known.stage;
  }
  if (plain == "temp") return Stage::temperature;
  if (plain == "nucleus") return Stage::top_p;
  if (plain == "typ" || plain == "typical" || plain == "typicalp") return Stage::typical_p;
  fail_unknown_stage(name);
}

inline void check_stage_count(size_t n) {
  if (n <= kMaxStages) return;
  throw Error(Errc::bad_request, cat("a chain of ", n, " samplers; expected at most ", kMaxStages));
}

// "kpt": one letter each. An empty text is an empty chain: nothing but the draw.
inline std::vector<Stage> parse_stage_letters(std::string_view letters) {
  check_stage_count(letters.size());
  std::vector<Stage> stages;
  for (const char letter : letters) stages.push_back(stage_of_letter(letter));
  return stages;
}

// "top_k;top_p;temperature".
inline std::vector<Stage> parse_stage_names(std::string_view names) {
  std::vector<Stage> stages;
  while (!names.empty()) {
    const size_t end = std::min(names.find(';'), names.size());
    stages.push_back(stage_of_name(names.substr(0, end)));
    check_stage_count(stages.size());
    if (end + 1 == names.size()) fail_unknown_stage("");  // "top_k;" names nothing after the ';'
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return stages;
}

}  // namespace sluice::sampler
