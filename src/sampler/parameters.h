// The table of sampling parameters: name, default and range of each, in one place for requests,
// flags and model files. Data, not code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <string_view>

#include "sampler/options.h"

namespace sluice::sampler {

template <typename T>
struct Parameter {
  std::string_view name;      // in requests and, with '-' for '_', as a flag
  std::string_view file_key;  // after "general.sampling."; empty: not for a model file to say
  std::optional<T> SamplerOptions::*member;
  T fallback;
  T min, max;                 // both ends belong to the range
  std::string_view expected;  // for errors: the range, and what switches the stage off

  constexpr bool allows(T value) const { return value >= min && value <= max; }  // NaN: no
};

inline constexpr float kMostFloat = std::numeric_limits<float>::max();
inline constexpr float kLeastPositive = std::numeric_limits<float>::denorm_min();
inline constexpr int kMostInt = std::numeric_limits<int>::max();
inline constexpr int kLeastInt = std::numeric_limits<int>::min();

inline constexpr Parameter<float> kFloatParameters[] = {
    {"temp", "temp", &SamplerOptions::temp, 0.8f, -kMostFloat, kMostFloat,
     "a finite number; 0 or less is greedy"},
    {"dynatemp_range", "dynatemp_range", &SamplerOptions::dynatemp_range, 0, 0, kMostFloat,
     "0 (off) or more"},
    {"dynatemp_exponent", "dynatemp_exponent", &SamplerOptions::dynatemp_exponent, 1, 0, kMostFloat,
     "0 or more"},
    {"top_p", "top_p", &SamplerOptions::top_p, 0.95f, 0, 1, "a number from 0 to 1 (off)"},
    {"min_p", "min_p", &SamplerOptions::min_p, 0.05f, 0, 1, "a number from 0 (off) to 1"},
    {"typical_p", "typical_p", &SamplerOptions::typical_p, 1, 0, 1, "a number from 0 to 1 (off)"},
    {"top_n_sigma", "top_n_sigma", &SamplerOptions::top_n_sigma, -1, -kMostFloat, kMostFloat,
     "a finite number; 0 or less is off"},
    {"xtc_probability", "xtc_probability", &SamplerOptions::xtc_probability, 0, 0, 1,
     "a number from 0 (off) to 1"},
    {"xtc_threshold", "xtc_threshold", &SamplerOptions::xtc_threshold, 0.1f, 0, 1,
     "a number from 0 to 1, where more than 0.5 is off"},
    {"repeat_penalty", "penalty_repeat", &SamplerOptions::repeat_penalty, 1, kLeastPositive,
     kMostFloat, "a number above 0; 1 is off"},
    {"frequency_penalty", "penalty_freq", &SamplerOptions::frequency_penalty, 0, -kMostFloat,
     kMostFloat, "a finite number; 0 is off"},
    {"presence_penalty", "penalty_present", &SamplerOptions::presence_penalty, 0, -kMostFloat,
     kMostFloat, "a finite number; 0 is off"},
    {"dry_multiplier", "dry_multiplier", &SamplerOptions::dry_multiplier, 0, 0, kMostFloat,
     "0 (off) or more"},
    {"dry_base", "dry_base", &SamplerOptions::dry_base, 1.75f, 1, kMostFloat, "1 or more"},
    {"mirostat_tau", "mirostat_tau", &SamplerOptions::mirostat_tau, 5, 0, kMostFloat, "0 or more"},
    {"mirostat_eta", "mirostat_eta", &SamplerOptions::mirostat_eta, 0.1f, 0, kMostFloat,
     "0 or more"},
};

inline constexpr Parameter<int> kIntParameters[] = {
    {"top_k", "top_k", &SamplerOptions::top_k, 40, kLeastInt, kMostInt,
     "a number of tokens; 0 or less is off"},
    {"repeat_last_n", "penalty_last_n", &SamplerOptions::repeat_last_n, 64, -1, kMostInt,
     "a number of tokens, 0 (off) or -1 (the whole context)"},
    {"dry_allowed_length", "dry_allowed_length", &SamplerOptions::dry_allowed_length, 2, 0,
     kMostInt, "a number of tokens, 0 or more"},
    {"dry_last_n", "dry_penalty_last_n", &SamplerOptions::dry_last_n, 64, -1, kMostInt,
     "a number of tokens, 0 (off) or -1 (the whole context)"},
    {"mirostat", "mirostat", &SamplerOptions::mirostat, 0, 0, 2, "0 (off), 1 or 2"},
    {"min_keep", "", &SamplerOptions::min_keep, 0, 0, kMostInt, "a number of tokens, 0 or more"},
    {"n_probs", "", &SamplerOptions::n_probs, 0, 0, kMostInt, "a number of tokens, 0 or more"},
};

}  // namespace sluice::sampler
