// See sampling_defaults.h.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/sampling_defaults.h"

#include "base/error.h"
#include "sampler/parameters.h"

namespace sluice::model_file {
namespace {

using sampler::SamplerOptions;

std::string sampling_key(std::string_view name) { return cat("general.sampling.", name); }

[[noreturn]] void refuse(const gguf::Metadata& m, std::string_view key, const std::string& text) {
  throw Error(Errc::bad_file, cat(m.origin(), ": key '", key, "' ", text));
}

void read(const gguf::Metadata& m, const sampler::Parameter<float>& parameter, SamplerOptions& to) {
  const std::string key = sampling_key(parameter.file_key);
  if (parameter.file_key.empty() || !m.contains(key)) return;
  const float value = m.get_float(key);
  if (!parameter.allows(value)) {
    refuse(m, key, cat("is ", value, "; expected ", parameter.expected));
  }
  to.*parameter.member = value;
}

void read(const gguf::Metadata& m, const sampler::Parameter<int>& parameter, SamplerOptions& to) {
  const std::string key = sampling_key(parameter.file_key);
  if (parameter.file_key.empty() || !m.contains(key)) return;
  const int64_t value = m.get_int(key);
  if (value < parameter.min || value > parameter.max) {
    refuse(m, key, cat("is ", value, "; expected ", parameter.expected));
  }
  to.*parameter.member = static_cast<int>(value);
}

// Names in their order, as in "top_k;top_p;temperature".
void read_stages(const gguf::Metadata& m, SamplerOptions& to) {
  const std::string key = sampling_key("sequence");
  if (!m.contains(key)) return;
  const std::string& names = m.get_string(key);
  try {
    to.stages = sampler::parse_stage_names(names);
  } catch (const Error& e) {
    refuse(m, key, cat("is no list of samplers: ", e.what()));
  }
}

}  // namespace

SamplerOptions read_sampling_defaults(const gguf::Metadata& metadata) {
  SamplerOptions defaults;
  for (const auto& parameter : sampler::kFloatParameters) read(metadata, parameter, defaults);
  for (const auto& parameter : sampler::kIntParameters) read(metadata, parameter, defaults);
  read_stages(metadata, defaults);
  return defaults;
}

}  // namespace sluice::model_file
