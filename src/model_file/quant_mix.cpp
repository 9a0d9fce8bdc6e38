// See quant_mix.h.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/quant_mix.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/error.h"

namespace sluice::model_file {
namespace {

using quant::Type;

struct NamedMix {
  std::string_view name;
  Type base;
  bool mixed;
  uint32_t file_type;
};

constexpr NamedMix kMixes[] = {
    {"F32", Type::f32, false, 0},        {"F16", Type::f16, false, 1},
    {"BF16", Type::bf16, false, 32},     {"Q8_0", Type::q8_0, false, 7},
    {"Q4_0", Type::q4_0, false, 2},      {"Q4_1", Type::q4_1, false, 3},
    {"Q5_0", Type::q5_0, false, 8},      {"Q5_1", Type::q5_1, false, 9},
    {"Q2_K", Type::q2_k, false, 10},     {"Q3_K", Type::q3_k, false, 12},
    {"Q4_K", Type::q4_k, false, 14},     {"Q5_K", Type::q5_k, false, 16},
    {"Q6_K", Type::q6_k, false, 18},     {"IQ4_NL", Type::iq4_nl, false, 25},
    {"IQ4_XS", Type::iq4_xs, false, 30}, {"MXFP4", Type::mxfp4, false, 38},
    {"Q4_K_M", Type::q4_k, true, 15},    {"Q5_K_M", Type::q5_k, true, 17},
};

// "blk.12.attn_v.weight" -> 12; -1 outside the layers.
int layer_of(std::string_view tensor) {
  if (!tensor.starts_with("blk.")) return -1;
  int layer = -1;
  std::from_chars(tensor.data() + 4, tensor.data() + tensor.size(), layer);
  return layer;
}

// Mixes spend more bits on the first and last eighth of the layers and on every third between.
bool gets_more_bits(int layer, int n_layers) {
  const int eighth = n_layers / 8;
  return layer < eighth || layer >= 7 * n_layers / 8 || (layer - eighth) % 3 == 2;
}

Type mixed_type(Type base, std::string_view tensor, const MixContext& context) {
  const auto is = [&](std::string_view part) {
    return tensor.find(part) != std::string_view::npos;
  };
  if (tensor == "output.weight") return Type::q6_k;
  if (context.n_experts == 8) {  // Mixtral: attention is small beside the experts
    if (is(".attn_k.") || is(".attn_v.")) return Type::q8_0;
    if (is(".attn_output.")) return Type::q5_k;
  }
  const bool sensitive = is(".attn_v.") || is(".attn_qkv.") || is(".ffn_down");
  if (sensitive && gets_more_bits(layer_of(tensor), context.n_layers)) return Type::q6_k;
  return base;
}

// The substitute for a row that blocks of 256 do not divide.
Type with_smaller_blocks(Type type) {
  switch (type) {
    case Type::q2_k:
    case Type::q3_k:
      return Type::q4_0;
    case Type::q4_k:
      return Type::q5_0;
    case Type::q5_k:
      return Type::q5_1;
    case Type::q6_k:
      return Type::q8_0;
    case Type::iq4_xs:
      return Type::iq4_nl;
    default:
      return Type::f16;
  }
}

}  // namespace

std::vector<std::string_view> QuantMix::names() {
  std::vector<std::string_view> names;
  for (const NamedMix& m : kMixes) names.push_back(m.name);
  return names;
}

QuantMix QuantMix::parse(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  std::string known;
  for (const NamedMix& m : kMixes) {
    if (m.name == upper) {
      QuantMix mix;
      mix.name_ = m.name;
      mix.base_ = m.base;
      mix.mixed_ = m.mixed;
      mix.file_type_ = m.file_type;
      return mix;
    }
    known += cat(known.empty() ? "" : " ", m.name);
  }
  throw Error(Errc::bad_request, cat("unknown type '", name, "'; expected one of ", known));
}

Type QuantMix::type_of(std::string_view tensor, std::span<const int64_t> shape,
                       const MixContext& context) const {
  const bool is_vector = shape.size() < 2;
  const bool is_router = tensor.find(".ffn_gate_inp") != std::string_view::npos;
  const bool is_convolution = tensor.find(".ssm_conv1d") != std::string_view::npos;
  if (is_vector || is_router || is_convolution) return Type::f32;
  Type type = mixed_ ? mixed_type(base_, tensor, context) : base_;
  while (shape[0] % quant::type_info(type).block_elems != 0) type = with_smaller_blocks(type);
  return type;
}

}  // namespace sluice::model_file
