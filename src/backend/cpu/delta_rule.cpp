// See delta_rule.h: sixteen lanes are two of quant/float8.h's.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/delta_rule.h"

#include "backend/cpu/attend_lanes.h"
#include "backend/cpu/delta_rule_lanes.h"

namespace sluice::backend::cpu {
namespace {

struct TwoEights {
  using Vector = Float8;
  static constexpr int kRegisters = 2;
  static constexpr int kColumns = 2;  // eight sums: what sixteen registers have room for

  SLUICE_INLINE static Vector load(const float* x) { return cpu::load(x); }
  SLUICE_INLINE static Vector load_half(const float* x) { return cpu::load(x); }
  SLUICE_INLINE static void store(Vector v, float* out) { quant::store(v, out); }
  SLUICE_INLINE static void store_half(Vector v, float* out) { quant::store(v, out); }
  SLUICE_INLINE static Vector all(float x) { return in_all_lanes(x); }
  SLUICE_INLINE static Vector product(Vector a, Vector b) { return cpu::product(a, b); }
  SLUICE_INLINE static Vector fma(Vector a, Vector b, Vector c) { return quant::fma(a, b, c); }
  // Lane i + (i+8), then as quant::sum_of_chains.
  using Sums = Vector[kRegisters];
  SLUICE_INLINE static void store_sums(const Sums& a, const Sums& b, const Sums& c, const Sums& d,
                                       float* out) {
    cpu::store_sums(sum(a[0], a[1]), sum(b[0], b[1]), sum(c[0], c[1]), sum(d[0], d[1]), out);
  }
};

}  // namespace

void delta_rule(const DeltaToken* tokens, int64_t n_tokens, const DeltaColumns& s) {
  DeltaRule<TwoEights>::run(tokens, n_tokens, s);
}

#if !defined(__x86_64__)
void wide_delta_rule(const DeltaToken* tokens, int64_t n_tokens, const DeltaColumns& s) {
  delta_rule(tokens, n_tokens, s);
}
#endif

}  // namespace sluice::backend::cpu
