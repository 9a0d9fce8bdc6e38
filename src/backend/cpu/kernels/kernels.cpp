// See kernels.h: the scalar reference, and the choice of what this CPU has.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernels/kernels.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <vector>

#include "backend/cpu/kernels/families.h"
#include "quant/dot.h"

namespace sluice::backend::cpu {

#if defined(__x86_64__)
const bool kStripesAreFollowed = __builtin_cpu_is("amd");
#else
const bool kStripesAreFollowed = true;  // not known
#endif

namespace {

// Row r of inputs that stand side by side, by itself.
struct AloneRow {
  AloneRow(const QuantizedInputs& in, int r, int64_t n_cols) {
    const auto take = [&](const auto* values, int64_t n, int64_t width, auto& out) {
      for (int64_t i = 0; i < n; ++i) {
        const auto* const from = values + (i / width * in.n_rows + r) * width + i % width;
        out.push_back(*from);
      }
    };
    take(in.q, n_cols, 4, q);
    take(in.d, n_cols / 32, 1, d);
    take(in.y, n_cols / 32, 1, y);
  }
  std::vector<int8_t> q;
  std::vector<float> d, y;
};

template <quant::Type type>
void reference_rows(const WeightRows& rows, std::span<const QuantizedInputs> in, float* out,
                    int64_t out_stride) {
  std::vector<AloneRow> inputs;
  for (const QuantizedInputs& some : in) {
    for (int r = 0; r < some.n_rows; ++r) inputs.emplace_back(some, r, rows.n_cols);
  }
  const uint64_t row_bytes = quant::row_bytes(type, rows.n_cols);
  std::vector<std::byte> unwoven(rows.layout == quant::Layout::stripes ? row_bytes : 0);
  for (int64_t r = 0; r < rows.n_rows; ++r) {
    const std::byte* row = rows.data + static_cast<uint64_t>(r) * row_bytes;
    if (!unwoven.empty()) {
      const int64_t in_stripe = r % quant::kStripeRows;
      quant::unweave_row(type, rows.n_cols, row - static_cast<uint64_t>(in_stripe) * row_bytes,
                         static_cast<int>(in_stripe), unwoven.data());
      row = unwoven.data();
    }
    for (size_t t = 0; t < inputs.size(); ++t) {
      const auto& [q, d, y] = inputs[t];
      out[static_cast<int64_t>(t) * out_stride + r] =
          quant::dot(type, row, rows.n_cols, {q.data(), d.data(), y.data()});
    }
  }
}

template <quant::Type... types>
MultiplyRows reference_among(quant::Type type) {
  MultiplyRows found = nullptr;
  (void)((type == types && (found = reference_rows<types>, true)) || ...);
  return found;
}

MultiplyRows reference_rows_of(quant::Type type) {
  using quant::Type;
  return reference_among<Type::q4_0, Type::q4_1, Type::q5_0, Type::q5_1, Type::q8_0, Type::q2_k,
                         Type::q3_k, Type::q4_k, Type::q5_k, Type::q6_k, Type::iq4_nl, Type::iq4_xs,
                         Type::mxfp4>(type);
}

std::vector<Kernels> find_usable() {
  std::vector<Kernels> usable = {{"scalar", reference_rows_of}};
#if defined(__x86_64__)
  usable.push_back(kAvx2Kernels);  // the program's baseline (docs/decisions/0001)
  if (__builtin_cpu_supports("avxvnni")) usable.push_back(kAvxVnniKernels);
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni")) {
    usable.push_back(kAvx512Kernels);
  }
#elif defined(__aarch64__)
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) usable.push_back(kNeonKernels);
#endif
  return usable;
}

}  // namespace

std::span<const Kernels> usable_kernels() {
  static const std::vector<Kernels> usable = find_usable();
  return usable;
}

}  // namespace sluice::backend::cpu
