// sluice_c.h: models, and text to tokens and back.
// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <vector>

#include "c_api/guard.h"
#include "c_api/handles.h"
#include "c_api/options.h"

namespace sluice::c_api {
namespace {

sluice_model_info describe(const ModelInfo& info) {
  return {.path = info.path.c_str(),
          .architecture = info.architecture.c_str(),
          .name = info.name.c_str(),
          .n_layers = info.n_layers,
          .d_model = info.d_model,
          .n_vocab = info.n_vocab,
          .n_ctx_train = info.n_ctx_train,
          .n_experts = info.n_experts,
          .n_experts_used = info.n_experts_used,
          .eos = info.eos.value_or(-1),
          .file_bytes = info.file_bytes};
}

// Whether n_needed elements fit into the caller's array; without an array they are only counted.
int check_room(size_t n_needed, size_t capacity, const void* array, const char* what) {
  if (!array && capacity == 0) return SLUICE_OK;
  if (n_needed <= capacity) return SLUICE_OK;
  return fail(SLUICE_NO_ROOM,
              cat(what, " has room for ", capacity, ", and ", n_needed, " are needed").c_str());
}

std::vector<TokenId> encode(const chat::TextModel& model, const char* text, bool is_prompt) {
  if (is_prompt) return model.encode_prompt({.text = text});
  return model.tokenizer().encode(text, {.add_special = false, .parse_special = false});
}

}  // namespace
}  // namespace sluice::c_api

using namespace sluice::c_api;  // NOLINT(google-build-using-namespace): the names below are C's

sluice_model* sluice_model_open(const char* path_or_name, const sluice_model_options* options) {
  return guarded_pointer([&] {
    require(path_or_name, "sluice_model_open: path_or_name");
    const sluice::LoadOptions load = read(options);
    sluice::Model model = sluice::Model::load(sluice::find_model(path_or_name), load);
    auto handle = std::make_unique<sluice_model>();
    handle->open = std::make_shared<OpenModel>(std::move(model));
    return handle.release();
  });
}

void sluice_model_free(sluice_model* model) { std::unique_ptr<sluice_model>{model}; }

int sluice_model_describe(const sluice_model* model, sluice_model_info* info, size_t size) {
  return guarded([&] {
    require(info, "sluice_model_describe: info");
    const auto& open = require(model, "sluice_model_describe: model").open;
    hand_over(describe(open->model().info()), info, size);
    return SLUICE_OK;
  });
}

int sluice_tokenize(const sluice_model* model, const char* text, int is_prompt, int32_t* tokens,
                    size_t capacity, size_t* n_tokens) {
  return guarded([&] {
    const auto& open = require(model, "sluice_tokenize: model").open;
    require(text, "sluice_tokenize: text");
    require(n_tokens, "sluice_tokenize: n_tokens");
    require_array(tokens, capacity, "sluice_tokenize: tokens");
    const auto ids = encode(open->text(), text, is_prompt != 0);
    *n_tokens = ids.size();
    const int status = check_room(ids.size(), capacity, tokens, "tokens");
    if (status == SLUICE_OK && tokens) std::ranges::copy(ids, tokens);
    return status;
  });
}

int sluice_detokenize(const sluice_model* model, const int32_t* tokens, size_t n_tokens, char* text,
                      size_t capacity, size_t* n_bytes) {
  return guarded([&] {
    const auto& open = require(model, "sluice_detokenize: model").open;
    require_array(tokens, n_tokens, "sluice_detokenize: tokens");
    require(n_bytes, "sluice_detokenize: n_bytes");
    require_array(text, capacity, "sluice_detokenize: text");
    const std::string decoded = open->text().tokenizer().decode({tokens, n_tokens});
    *n_bytes = decoded.size();
    const int status = check_room(decoded.size() + 1, capacity, text, "text");
    if (status == SLUICE_OK && text) std::memcpy(text, decoded.c_str(), decoded.size() + 1);
    return status;
  });
}
