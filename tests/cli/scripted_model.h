// A model that says what a test wants: whatever it is asked, each token is followed by the next one
// of a script, and the last by the end of the turn. Attention and experts add nothing, so the
// output matrix, which knows every token by its embedding, decides alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cli/edit.h"
#include "cli/models.h"
#include "text/tokenizer/byte_alphabet.h"

namespace sluice::test {

constexpr int kEndOfTurn = 258;

class ScriptedModel : public EditableModel {
 public:
  // Each piece becomes one token, of which none may come twice: single bytes are the tokens that
  // texts consist of too, longer pieces take the places of unused tokens. The line end behind
  // <|im_start|>assistant is the first.
  // `base`: a model of make_model() with one layer in F32.
  ScriptedModel(const std::string& base, const std::vector<std::string>& pieces)
      : EditableModel(base) {
    for (const char* silent : {"blk.0.attn_output.weight", "blk.0.ffn_down_exps.weight"}) {
      tensor(silent).data.assign(tensor(silent).data.size(), '\0');
    }
    std::ranges::fill(floats("output_norm.weight"), 1.0f);
    std::ranges::fill(floats("output.weight"), 0.0f);
    int last = '\n';
    for (const std::string& piece : pieces) {
      const int token = piece.size() == 1 ? static_cast<unsigned char>(piece[0]) : name(piece);
      follow(last, token);
      last = token;
    }
    follow(last, kEndOfTurn);
  }

  // The token `next` comes after `token`.
  void follow(int token, int next) {
    constexpr float kGain = 4.0f;
    const auto from = row("token_embd.weight", token);
    const auto to = row("output.weight", next);
    float sum = 0.0f;
    for (const float x : from) sum += x * x;
    for (size_t i = 0; i < to.size(); ++i) to[i] += kGain * from[i] / std::sqrt(sum);
  }

  // A new token with this text.
  int name(const std::string& text) {
    constexpr int32_t kNormal = 1;
    const auto i = static_cast<size_t>(next_free_);
    std::string& word = key<std::vector<std::string>>("tokenizer.ggml.tokens").at(i);
    word.clear();
    for (const char byte : text) word += text::byte_alphabet()[static_cast<unsigned char>(byte)];
    key<std::vector<int32_t>>("tokenizer.ggml.token_type").at(i) = kNormal;
    return next_free_++;
  }

 private:
  std::span<float> floats(const std::string& name) {
    std::string& data = tensor(name).data;
    return {reinterpret_cast<float*>(data.data()), data.size() / sizeof(float)};
  }
  std::span<float> row(const std::string& name, int i) {
    const auto width = static_cast<size_t>(tensor(name).shape[0]);
    return floats(name).subspan(static_cast<size_t>(i) * width, width);
  }

  template <typename T>
  T& key(const std::string& name) {
    for (auto& entry : keys) {
      if (entry.key == name) return std::get<T>(entry.value);
    }
    throw std::runtime_error("the test's model has no key " + name);
  }
  int next_free_ = 261;  // behind the bytes, the control tokens and the merged ones
};

}  // namespace sluice::test
