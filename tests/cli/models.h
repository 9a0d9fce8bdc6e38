// Small models for the tests of the program, made with its own synth command, and the logits it
// prints for them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/program.h"

namespace sluice::test {

constexpr int kVocab = 320;

// Small, yet every type fits: widths are multiples of 256. A test's own flags replace these.
inline std::map<std::string, std::string> small_model_flags() {
  return {{"--layers", "1"},       {"--experts", "4"},
          {"--experts-used", "2"}, {"--vocab", std::to_string(kVocab)},
          {"--std", "0.05"},       {"--type", "F32"}};
}

// Writes the model and returns its path.
inline std::string make_model(const std::string& path,
                              const std::map<std::string, std::string>& flags = {}) {
  auto all = flags;
  all.merge(small_model_flags());  // keeps what is there
  Args args = {"synth", path};
  for (const auto& [flag, value] : all) args = args + Args{flag, value};
  EXPECT_TRUE(succeeded(run_sluice(args)));
  return path;
}

// "3,14,..." of n tokens, none of them special.
inline std::string prompt_of(int n) {
  std::string prompt;
  for (int i = 0; i < n; ++i) prompt += cat(i ? "," : "", (3 + 11 * i) % 256);
  return prompt;
}

struct Position {
  int pos = 0;
  int token = 0;
  std::vector<std::pair<int, double>> top;
};

// Of `logits --json`: exactly [{"pos":0,"token":1,"top":[[id,logprob],...]},...], in this order.
inline std::vector<Position> parse_logits(const std::string& text) {
  std::vector<Position> positions;
  const auto json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_array()) {
    ADD_FAILURE() << "expected a JSON array, got: " << text.substr(0, 300);
    return positions;
  }
  for (const auto& object : json) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    EXPECT_EQ(keys, (std::vector<std::string>{"pos", "token", "top"})) << object.dump();
    Position& position = positions.emplace_back(Position{object.at("pos"), object.at("token"), {}});
    for (const auto& candidate : object.at("top")) {
      const bool is_pair = candidate.is_array() && candidate.size() == 2 &&
                           candidate[0].is_number_integer() && candidate[1].is_number_float();
      EXPECT_TRUE(is_pair) << "expected [id, logprob], got " << candidate.dump();
      if (is_pair) position.top.emplace_back(candidate[0], candidate[1]);
    }
  }
  return positions;
}

inline std::vector<Position> logits_of(const std::string& model, const std::string& tokens,
                                       const Args& flags = {}) {
  return parse_logits(output_of(Args{"logits", "-m", model, "--tokens", tokens, "--json"} + flags));
}

// Of the whole vocabulary, by position and id.
using LogProbs = std::vector<std::vector<double>>;

inline LogProbs all_logprobs(const std::string& model, const std::string& tokens,
                             const Args& flags = {}) {
  LogProbs out;
  for (const Position& position : logits_of(model, tokens, Args{"--all"} + flags)) {
    std::vector<double>& row = out.emplace_back(position.top.size());
    for (const auto& [id, logprob] : position.top) row.at(static_cast<size_t>(id)) = logprob;
  }
  return out;
}

// How far q is from p: sum of p log(p / q), in nats, averaged over the positions.
inline double mean_divergence(const LogProbs& p, const LogProbs& q) {
  EXPECT_EQ(p.size(), q.size());
  EXPECT_FALSE(p.empty());
  double sum = 0.0;
  for (size_t pos = 0; pos < std::min(p.size(), q.size()); ++pos) {
    EXPECT_EQ(p[pos].size(), q[pos].size()) << "at position " << pos;
    for (size_t id = 0; id < std::min(p[pos].size(), q[pos].size()); ++id) {
      sum += std::exp(p[pos][id]) * (p[pos][id] - q[pos][id]);
    }
  }
  return sum / static_cast<double>(p.size());
}

}  // namespace sluice::test
