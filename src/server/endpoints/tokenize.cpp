// POST /tokenize and /detokenize: texts to ids of tokens, and back.
// SPDX-License-Identifier: Apache-2.0
#include "server/endpoints/endpoints.h"

namespace sluice::server {
namespace {

Json tokenize(const ModelService& service, const Fields& fields) {
  const text::Tokenizer& tokenizer = service.text().tokenizer();
  const std::string content = fields.required_string("content");
  const text::EncodeOptions options{
      .add_special = fields.boolean("add_special").value_or(false),
      .parse_special = fields.boolean("parse_special").value_or(true)};
  Json tokens = Json::array();
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  for (const TokenId id : tokenizer.encode(content, options)) {
    if (with_pieces) {
      tokens.push_back({{"id", id}, {"piece", tokenizer.piece(id, /*render_special=*/true)}});
    } else {
      tokens.push_back(id);
    }
  }
  return {{"tokens", tokens}};
}

}  // namespace

void add_tokenize(Router& router, const EndpointContext& all) {
  add_with_model(router, all, "/tokenize",
                 [](const AnswerContext& context, const std::shared_ptr<Exchange>& exchange) {
                   const Json body = parse_body(exchange->request().body);
                   send_json(*exchange, tokenize(context.service, Fields(body)));
                 });
  add_with_model(router, all, "/detokenize",
                 [](const AnswerContext& context, const std::shared_ptr<Exchange>& exchange) {
                   const Json body = parse_body(exchange->request().body);
                   const Fields fields(body);
                   if (!fields.array("tokens")) fields.fail("tokens", "a list of token ids");
                   const std::vector<TokenId> tokens = fields.integers("tokens");
                   const std::string text =
                       context.service.text().tokenizer().decode(tokens, /*render_special=*/true);
                   send_json(*exchange, {{"content", text}});
                 });
}

}  // namespace sluice::server
