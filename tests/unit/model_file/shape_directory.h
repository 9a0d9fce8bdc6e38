// A model's keys and tensor directory without a file behind it, written as text.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "model_file/shape.h"
#include "unit/model/tiny_model.h"

namespace sluice::model_file::test {

using namespace model::test;  // tiny models to start from

class Directory {
 public:
  // keys: "block_count 48, expert_count 128", without the architecture in front.
  Directory(const std::string& architecture, const std::string& keys)
      : architecture_(architecture) {
    metadata_.set("general.architecture", architecture);
    set("context_length", int64_t{4096});
    set("attention.layer_norm_rms_epsilon", 1e-6f);
    for (const auto& [key, value] : entries(keys)) set(key, int64_t{std::stoll(value)});
  }

  void set(const std::string& key, gguf::Value value) {
    metadata_.set(architecture_ + "." + key, std::move(value));
  }

  void add(const std::string& name, quant::Type type, std::vector<int64_t> shape) {
    gguf::TensorInfo t{.name = name, .shape = std::move(shape), .type = &quant::type_info(type)};
    t.n_bytes = gguf::checked_tensor_bytes("m.gguf", t);
    tensors_.push_back(std::move(t));
  }
  // tensors: "attn_q 2048x4096, attn_q.bias 4096", all of one type. A name without a dot is a
  // weight's, but for ssm_a.
  void add_to(int layer, quant::Type type, const std::string& tensors) {
    for (const auto& [name, dims] : entries(tensors)) {
      std::vector<int64_t> shape;
      std::istringstream in(dims);
      for (std::string dim; std::getline(in, dim, 'x');) shape.push_back(std::stoll(dim));
      const bool whole = name.find('.') != std::string::npos || name == "ssm_a";
      add(cat("blk.", layer, ".", name, whole ? "" : ".weight"), type, shape);
    }
  }
  void add_ends(int64_t d_model, int64_t n_vocab, quant::Type embedding,
                std::optional<quant::Type> output) {
    set("vocab_size", n_vocab);
    add("token_embd.weight", embedding, {d_model, n_vocab});
    add("output_norm.weight", quant::Type::f32, {d_model});
    if (output) add("output.weight", *output, {d_model, n_vocab});
  }

  std::vector<gguf::TensorInfo>& tensors() { return tensors_; }
  uint64_t n_bytes() const {  // with every tensor on a boundary
    uint64_t sum = 0;
    for (const gguf::TensorInfo& t : tensors_) sum += round_up(t.n_bytes, policy::kTensorAlignment);
    return sum;
  }
  policy::ModelShape shape() const { return read_shape(metadata_, tensors_); }
  std::string refusal(Errc code = Errc::unsupported_model) const {
    return error_of(code, [&] { shape(); });
  }

 private:
  // "name value, name value".
  static std::vector<std::pair<std::string, std::string>> entries(const std::string& text) {
    std::vector<std::pair<std::string, std::string>> out;
    std::istringstream in(text);
    for (std::string entry; std::getline(in, entry, ',');) {
      auto& [name, value] = out.emplace_back();
      std::istringstream(entry) >> name >> value;
    }
    return out;
  }

  std::string architecture_;
  gguf::Metadata metadata_{"m.gguf"};
  std::vector<gguf::TensorInfo> tensors_;
};

}  // namespace sluice::model_file::test
