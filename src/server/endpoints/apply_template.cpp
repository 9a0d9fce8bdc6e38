// POST /apply-template: the prompt that a chat would become.
// SPDX-License-Identifier: Apache-2.0
#include "chat/opened_prompt.h"
#include "server/endpoints/endpoints.h"

namespace sluice::server {

void add_apply_template(Router& router, const EndpointContext& all) {
  add_with_model(router, all, "/apply-template",
                 [](const AnswerContext& context, const std::shared_ptr<Exchange>& exchange) {
                   const chat::TextModel& model = context.service.text();
                   if (!model.has_template())
                     throw bad_request("", "the model has no chat template");
                   const Json body = parse_body(exchange->request().body);
                   ChatFields chat = read_chat(Fields(body));
                   text::ChatInput input;
                   input.messages = std::move(chat.messages);
                   input.tools = std::move(chat.tools);
                   input.variables = std::move(chat.variables);
                   input.enable_thinking = chat.enable_thinking;
                   const chat::OpenedPrompt opened =
                       open_prompt(model, std::move(input), chat::TextModel::Messages::text,
                                   text::ThinkingSplitter::State::undecided);
                   send_json(*exchange, {{"prompt", opened.prompt.shown()}});
                 });
}

}  // namespace sluice::server
