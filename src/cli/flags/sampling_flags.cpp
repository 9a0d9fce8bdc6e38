// See sampling_flags.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/flags/sampling_flags.h"
#include "cli/flags/flag_checks.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "chat/sampling.h"
#include "cli/files/text_file.h"
#include "sampler/parameters.h"
#include "text/grammar/gbnf.h"
#include "text/json_schema/json_schema.h"

namespace sluice::cli {
namespace {

// What each parameter does, for the help.
constexpr std::pair<std::string_view, std::string_view> kEffects[] = {
    {"temp", "how freely tokens are drawn: higher is more varied"},
    {"dynatemp_range", "let the temperature vary by so much, higher where the model is unsure"},
    {"dynatemp_exponent", "how that grows with the model's doubt"},
    {"top_p", "draw from the most probable tokens that have this probability together"},
    {"min_p", "leave out tokens less probable than this share of the best one"},
    {"typical_p", "draw from tokens that are about as surprising as the model expects"},
    {"top_n_sigma", "leave out tokens so many standard deviations below the best score"},
    {"xtc_probability", "how often all but the least of several good tokens are left out"},
    {"xtc_threshold", "how probable such good tokens are at least"},
    {"repeat_penalty", "make tokens that came before less probable"},
    {"frequency_penalty", "lower a token's score for each time it came"},
    {"presence_penalty", "lower a token's score once it came"},
    {"dry_multiplier", "how much the repetition of whole passages costs (DRY)"},
    {"dry_base", "how that grows with the length of the passage"},
    {"mirostat_tau", "the surprise that Mirostat aims at"},
    {"mirostat_eta", "how fast Mirostat corrects itself"},
    {"top_k", "draw from so many of the most probable tokens"},
    {"repeat_last_n", "how far back the penalties look"},
    {"dry_allowed_length", "passages up to this length may be repeated"},
    {"dry_last_n", "how far back DRY looks"},
    {"mirostat", "instead of the stages above, keep the surprise constant: version"},
    {"min_keep", "every stage leaves so many tokens at least"},
};

// "how freely tokens are drawn: ...; a finite number (0.8)"
template <typename T>
std::string describe_parameter(const sampler::Parameter<T>& p) {
  const auto* const found =
      std::ranges::find(kEffects, p.name, &std::pair<std::string_view, std::string_view>::first);
  CHECK(found != std::end(kEffects));
  return cat(found->second, "; ", p.expected, " (", p.fallback, ")");
}

// "top_k" -> "--top-k"
std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

// "15043+1.5", "15043-1", "15043-inf"
sampler::LogitBias parse_bias(const std::string& text) {
  sampler::LogitBias bias;
  const char* const end = text.data() + text.size();
  const auto [after_id, id_error] = std::from_chars(text.data(), end, bias.id);
  if (id_error == std::errc() && after_id < end && (*after_id == '+' || *after_id == '-')) {
    const std::string_view amount(after_id + 1, static_cast<size_t>(end - after_id - 1));
    float size = INFINITY;
    bool good = amount == "inf";
    if (!good) {
      const auto [stop, error] = std::from_chars(amount.begin(), amount.end(), size);
      good = error == std::errc() && stop == amount.end();
    }
    bias.bias = *after_id == '-' ? -size : size;
    if (good && bias.bias < INFINITY) return bias;
  }
  throw Error(Errc::bad_request,
              cat("logit bias '", text, "'; expected a token id and an amount, such as 15043-inf"));
}

}  // namespace

void SamplingFlags::add_to(CLI::App& command) {
  const std::string group = "Sampling";
  for (const auto& p : sampler::kFloatParameters) {
    command.add_option(flag_of(p.name), user.*p.member, describe_parameter(p))->group(group);
  }
  for (const auto& p : sampler::kIntParameters) {
    if (p.name == "n_probs") continue;  // for a caller that reads probabilities
    command.add_option(flag_of(p.name), user.*p.member, describe_parameter(p))->group(group);
  }
  command.add_option("-s,--seed", seed, "seed of the draws; -1: a random one (-1)")
      ->transform(whole_number(-1, int64_t{sampler::kRandomSeed}))
      ->group(group);
  command.add_option("--samplers", stages, "order of the stages, such as top_k;top_p;temperature")
      ->group(group);
  command.add_option("--logit-bias", biases, "a token's score, such as 15043+1.5 or 15043-inf")
      ->group(group)
      ->allow_extra_args(false);
  command.add_option("--dry-breaker", dry_breakers, "a text that DRY does not match across")
      ->group(group)
      ->allow_extra_args(false);
  auto* endless =
      command.add_flag("--ignore-eos", user.ignore_eos, "go on where the model would end")
          ->group(group);
  // What a grammar allows may end, so the model must be able to say so.
  auto* text = command.add_option("--grammar", grammar, "GBNF that the answer must match")
                   ->group(group)
                   ->excludes(endless);
  auto* file = command.add_option("--grammar-file", grammar_file, "a file with such a grammar")
                   ->group(group)
                   ->excludes(text)
                   ->excludes(endless);
  command
      .add_option("-j,--json-schema", json_schema,
                  "JSON schema that the answer must match, or @FILE; {} allows any JSON")
      ->group(group)
      ->excludes(text)
      ->excludes(file)
      ->excludes(endless);
}

sampler::SamplerOptions SamplingFlags::resolve(const chat::TextModel& model) const {
  sampler::SamplerOptions mine = user;
  if (seed) mine.seed = static_cast<uint32_t>(*seed);  // -1 is kRandomSeed
  for (const std::string& text : biases) mine.logit_bias.push_back(parse_bias(text));
  if (!stages.empty()) mine.stages = sampler::parse_stage_names(stages);
  return chat::resolve_sampling(std::move(mine), model, dry_breakers);
}

std::unique_ptr<text::GrammarMatcher> SamplingFlags::make_matcher(
    const chat::TextModel& model) const {
  if (!has_grammar()) return nullptr;
  const auto compile = [&]() -> text::Grammar {
    if (grammar) return text::compile_gbnf(*grammar);
    if (grammar_file) return text::compile_gbnf(read_text_file(*grammar_file));
    return text::compile_json_schema(
        json_schema->starts_with('@') ? read_text_file(json_schema->substr(1)) : *json_schema);
  };
  return chat::make_matcher(compile(), model);
}

}  // namespace sluice::cli
