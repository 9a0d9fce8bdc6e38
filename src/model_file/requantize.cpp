// See requantize.h.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/requantize.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "gguf/in_quotes.h"
#include "gguf/writer.h"
#include "quant/decode.h"
#include "quant/encode.h"

namespace sluice::model_file {
namespace {

quant::Type type_of(const gguf::Tensor& tensor) {
  return static_cast<quant::Type>(tensor.type->id);
}

// From the names and shapes alone, so that it works for architectures the engine cannot run.
MixContext context_of(const gguf::ModelFile& file) {
  MixContext context;
  while (file.find(cat("blk.", context.n_layers, ".attn_norm.weight"))) ++context.n_layers;
  for (const gguf::Tensor& tensor : file.tensors()) {
    if (tensor.name.find("_exps.") != std::string::npos && tensor.shape.size() == 3) {
      context.n_experts = static_cast<int>(std::min<int64_t>(tensor.shape[2], 1 << 20));
    }
  }
  return context;
}

// Rows [first, first + n) of a tensor in another type; returns the first row that holds a number
// which is not finite, or -1.
int64_t convert_rows(const gguf::Tensor& tensor, quant::Type to, int64_t first, int64_t n,
                     ThreadPool& pool, std::byte* out) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  const quant::Type from = type_of(tensor);
  const int64_t n_cols = tensor.shape[0];
  const uint64_t from_bytes = quant::row_bytes(from, n_cols);
  const uint64_t to_bytes = quant::row_bytes(to, n_cols);
  std::atomic<int64_t> bad_row{kNone};  // the least one that any thread found
  pool.parallel_for(n, 1, [&](int64_t begin, int64_t end, int) {
    std::vector<float> values(static_cast<size_t>(n_cols));
    for (int64_t r = begin; r < end; ++r) {
      quant::decode_row(from, tensor.data.data() + static_cast<uint64_t>(first + r) * from_bytes,
                        values);
      if (!std::ranges::all_of(values, [](float v) { return std::isfinite(v); })) {
        int64_t earlier = bad_row.load(std::memory_order_relaxed);
        while (first + r < earlier && !bad_row.compare_exchange_weak(earlier, first + r)) {
        }
        continue;
      }
      quant::encode_row(to, values, out + static_cast<uint64_t>(r) * to_bytes);
    }
  });
  return bad_row == kNone ? -1 : bad_row.load();
}

// The mix's type, or one with an encoder: substitutes such as Q5_0 have none, but blocks that fit.
quant::Type target_type(const gguf::Tensor& tensor, const QuantMix& mix,
                        const MixContext& context) {
  const quant::Type wanted = mix.type_of(tensor.name, tensor.shape, context);
  if (quant::can_encode(wanted)) return wanted;
  return quant::Type::q8_0;
}

// One run over a file.
class Requantizer {
 public:
  Requantizer(const gguf::ModelFile& in, const std::string& out_path, const QuantMix& mix,
              ThreadPool& pool)
      : in_(in), mix_(mix), context_(context_of(in)), pool_(pool), writer_(out_path) {}

  RequantizeResult run(const std::function<void(uint64_t, uint64_t)>& progress) {
    declare();
    writer_.begin();
    uint64_t done = 0;
    for (size_t i = 0; i < in_.tensors().size(); ++i) {
      const gguf::Tensor& tensor = in_.tensors()[i];
      const gguf::TensorInfo& target = writer_.tensors()[i];
      if (target.type == tensor.type) {
        writer_.write(tensor.data);
      } else {
        convert(tensor, target);
      }
      result_.bytes_after += target.n_bytes;
      done += tensor.n_bytes;
      if (progress) progress(done, result_.bytes_before);
    }
    writer_.finish();
    return result_;
  }

 private:
  [[noreturn]] void refuse(const gguf::Tensor& tensor, const std::string& text) const {
    throw Error(Errc::bad_file,
                cat(in_.metadata().origin(), ": tensor ", gguf::in_quotes(tensor.name), " ", text));
  }

  void declare() {
    for (const auto& [key, value] : in_.metadata().entries()) {
      if (!key.starts_with("split.")) writer_.metadata().set(key, value);
    }
    writer_.metadata().set("general.file_type", mix_.file_type());
    writer_.metadata().set("general.quantization_version", uint32_t{2});
    for (const gguf::Tensor& tensor : in_.tensors()) {
      result_.bytes_before += tensor.n_bytes;
      const quant::Type target = target_type(tensor, mix_, context_);
      // Vectors stay whatever they are; so do matrices that have the wanted type already.
      if (tensor.shape.size() < 2 || type_of(tensor) == target) {
        writer_.add_tensor(tensor.name, *tensor.type, tensor.shape);
        ++result_.n_kept;
        continue;
      }
      if (!tensor.type->supported) {
        refuse(tensor, cat("is of type ", tensor.type->name, ", which sluice cannot decode"));
      }
      writer_.add_tensor(tensor.name, target, tensor.shape);
      ++result_.n_converted;
      if (!quant::is_float(type_of(tensor))) ++result_.n_from_quantized;
    }
  }

  void convert(const gguf::Tensor& tensor, const gguf::TensorInfo& target) {
    constexpr uint64_t kPiece = 16 * kMiB;
    const auto to = static_cast<quant::Type>(target.type->id);
    const uint64_t row_bytes = quant::row_bytes(to, tensor.shape[0]);
    if (row_bytes == 0) return;
    const auto n_rows = static_cast<int64_t>(target.n_bytes / row_bytes);
    const auto step = static_cast<int64_t>(std::max<uint64_t>(1, kPiece / row_bytes));
    for (int64_t first = 0; first < n_rows; first += step) {
      const int64_t n = std::min(step, n_rows - first);
      piece_.resize(static_cast<size_t>(n) * row_bytes);
      const int64_t bad = convert_rows(tensor, to, first, n, pool_, piece_.data());
      if (bad >= 0) {
        refuse(tensor, cat("holds a number that is not finite in row ", bad,
                           "; the file is damaged or was converted wrongly"));
      }
      writer_.write(piece_);
    }
  }

  const gguf::ModelFile& in_;
  const QuantMix& mix_;
  MixContext context_;
  ThreadPool& pool_;
  gguf::Writer writer_;
  RequantizeResult result_;
  std::vector<std::byte> piece_;
};

}  // namespace

RequantizeResult requantize(const gguf::ModelFile& in, const std::string& out_path,
                            const QuantMix& mix, ThreadPool& pool,
                            const std::function<void(uint64_t, uint64_t)>& progress) {
  if (!quant::can_encode(mix.base())) {
    std::string known;
    for (const quant::Type type : quant::supported_types()) {
      if (quant::can_encode(type)) known += cat(" ", quant::type_name(type));
    }
    throw Error(Errc::bad_request, cat("sluice cannot write ", mix.name(), "; expected one of",
                                       known, " Q4_K_M Q5_K_M"));
  }
  return Requantizer(in, out_path, mix, pool).run(progress);
}

}  // namespace sluice::model_file
