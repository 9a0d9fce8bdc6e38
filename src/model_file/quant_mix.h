// Which type each tensor of a model gets: one type for all matrices, or one of the usual mixes. For
// writing files; reading takes any type in any place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quant/type.h"

namespace sluice::model_file {

struct MixContext {
  int n_layers = 0;
  int n_experts = 0;
};

class QuantMix {
 public:
  // A type's name, or Q4_K_M or Q5_K_M, in any case. Throws Errc::bad_request with the known names.
  static QuantMix parse(std::string_view name);

  // All names that parse() takes, in the order of the table.
  static std::vector<std::string_view> names();

  // shape: fastest dimension first. Vectors and routers stay F32; rows that the wanted type's
  // blocks do not divide get the usual smaller-block substitute.
  quant::Type type_of(std::string_view tensor, std::span<const int64_t> shape,
                      const MixContext& context) const;

  const std::string& name() const { return name_; }
  // The type of most matrices.
  quant::Type base() const { return base_; }
  // The value of general.file_type that other tools show for such a file.
  uint32_t file_type() const { return file_type_; }

 private:
  std::string name_;
  quant::Type base_ = quant::Type::f32;
  bool mixed_ = false;
  uint32_t file_type_ = 0;
};

}  // namespace sluice::model_file
