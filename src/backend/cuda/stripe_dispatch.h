// From a weight's type at run time to one that templates can have. Host code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/check.h"
#include "quant/type.h"

namespace sluice::backend::cuda {

// call.operator()<type>(), for the types that are woven into stripes.
template <typename Call>
void with_stripe_type(quant::Type type, const Call& call) {
  using quant::Type;
  switch (type) {
    case Type::q4_0:
      return call.template operator()<Type::q4_0>();
    case Type::q4_1:
      return call.template operator()<Type::q4_1>();
    case Type::q5_0:
      return call.template operator()<Type::q5_0>();
    case Type::q5_1:
      return call.template operator()<Type::q5_1>();
    case Type::q8_0:
      return call.template operator()<Type::q8_0>();
    case Type::q2_k:
      return call.template operator()<Type::q2_k>();
    case Type::q3_k:
      return call.template operator()<Type::q3_k>();
    case Type::q4_k:
      return call.template operator()<Type::q4_k>();
    case Type::q5_k:
      return call.template operator()<Type::q5_k>();
    case Type::q6_k:
      return call.template operator()<Type::q6_k>();
    case Type::iq4_nl:
      return call.template operator()<Type::iq4_nl>();
    case Type::iq4_xs:
      return call.template operator()<Type::iq4_xs>();
    case Type::mxfp4:
      return call.template operator()<Type::mxfp4>();
    case Type::f32:
    case Type::f16:
    case Type::bf16:
      break;
  }
  check_failed("with_stripe_type: a quantised type", __FILE__, __LINE__);
}

}  // namespace sluice::backend::cuda
