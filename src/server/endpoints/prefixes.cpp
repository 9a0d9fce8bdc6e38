// GET /prefixes, POST /prefixes/save, /prefixes/restore and /prefixes/erase: the beginnings of
// prompts that are kept on disk, with all that was computed of them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "server/answering/answer_plan.h"
#include "server/endpoints/endpoints.h"
#include "server/saved_prefixes.h"

namespace sluice::server {
namespace {

using Clock = std::chrono::steady_clock;

// A chat ends with its last message: what the template opens for an answer is not kept, since the
// next prompt goes on with another message there.
std::vector<TokenId> chat_tokens(const ModelService& service, const Fields& fields) {
  std::vector<TokenId> tokens = plan_chat(service, read_chat(fields), {}).prompt;
  const std::vector<int> ends = service.text().ends_of_messages(tokens);
  if (!ends.empty()) tokens.resize(static_cast<size_t>(ends.back()));
  return tokens;
}

std::vector<TokenId> tokens_of(const ModelService& service, const Fields& fields) {
  const Json* prompt = fields.find("prompt");
  if (fields.find("messages")) {
    if (prompt) fields.fail("prompt", "none where there are messages");
    return chat_tokens(service, fields);
  }
  if (prompt && prompt->is_string()) {
    return plan_completion(service, prompt->get<std::string>(), {}).prompt;
  }
  if (!prompt || !prompt->is_array()) {
    fields.fail("prompt", "a text or a list of token ids, or else messages");
  }
  return fields.integers("prompt");
}

// What an error says of the file, without where it is.
std::string without_path(std::string text, const std::string& path) {
  if (!text.starts_with(path)) return ": its file cannot be used";  // behind a link, say
  text.erase(0, path.size());
  constexpr std::string_view kUnfinished = ".partial";
  if (text.starts_with(kUnfinished)) text.erase(0, kUnfinished.size());
  return text;
}

// Clients see names, not where files are; the log sees neither. What is not about the file is told
// as everywhere.
ApiError file_error(const Error& error, const std::string& path, const std::string& name,
                    const AnswerContext& context) {
  const std::string text = error.what();
  if (error.code() != Errc::bad_file && !text.starts_with(path)) {
    ApiError told = to_api_error(error);
    if (told.status() >= 500) context.log(cat("fault: ", text));
    return told;
  }
  const std::string what = without_path(text, path);
  if (error.code() == Errc::bad_request) {
    return ApiError(400, "the prefix " + name + what, "name", "prefix_mismatch");
  }
  context.log("fault: a prefix" + what);
  return ApiError(500, "the prefix " + name + what, "name", "prefix_file_failed");
}

struct FileRequest {
  std::string name, path;
  Request request;
  bool is_save = false;
};

// A request of the engine that writes or reads a file: its end is the answer.
void run(const AnswerContext& context, const std::shared_ptr<Exchange>& exchange,
         FileRequest file) {
  const auto on_end = [context, exchange, name = file.name, path = file.path,
                       is_save = file.is_save](const RequestEnd& end) {
    const auto refuse = [&](const ApiError& error) {
      exchange->send(error_response(Api::openai, error));
    };
    if (end.error) return refuse(file_error(*end.error, path, name, context));
    if (end.reason == StopReason::cancelled) {
      return refuse(ApiError(503, "the server is ending; nothing was done"));
    }
    if (end.reason == StopReason::deadline) {
      return refuse(ApiError(408, "this was not done within the 'timeout' of its request"));
    }
    std::error_code ignored;
    const uint64_t n_bytes = std::filesystem::file_size(path, ignored);
    send_json(*exchange,
              {{"name", name},
               {"status", is_save ? "saved" : "restored"},
               {"model", context.service.name()},
               {"n_tokens", end.n_prompt},
               {"n_reused", end.n_reused},
               {"bytes", ignored ? 0 : n_bytes},
               {"seconds", end.queue_seconds + end.prompt_seconds + end.decode_seconds}});
  };
  file.request.on_end = on_end;
  const std::weak_ptr<const ModelService> model = context.model;
  const uint64_t id = context.service.engine().submit(std::move(file.request));
  exchange->on_gone([model, id] {
    if (const auto service = model.lock()) service->engine().cancel(id);
  });
}

Clock::time_point deadline_of(const Fields& fields) {
  const std::optional<double> seconds = read_openai_generation(fields).limit_seconds;
  if (!seconds) return Clock::time_point::max();
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::min(*seconds, 1e6)));
}

}  // namespace

void add_prefixes(Router& router, const EndpointContext& all, const SavedPrefixes& prefixes) {
  router.get("/prefixes", [&prefixes](const std::shared_ptr<Exchange>& exchange) {
    Json list = Json::array();
    for (const auto& [name, n_bytes] : prefixes.list()) {
      list.push_back({{"name", name}, {"bytes", n_bytes}});
    }
    send_json(*exchange, {{"prefixes", list}});
  });
  add_with_model(
      router, all, "/prefixes/save",
      [&prefixes](const AnswerContext& context, const std::shared_ptr<Exchange>& exchange) {
        const Json body = parse_body(exchange->request().body);
        const Fields fields(body);
        FileRequest file{.name = fields.required_string("name"), .is_save = true};
        file.path = file.request.save_to = prefixes.path_of(file.name);
        file.request.prompt = tokens_of(context.service, fields);
        file.request.keep_at = context.service.text().ends_of_messages(file.request.prompt);
        file.request.n_tokens = 0;
        file.request.deadline = deadline_of(fields);
        run(context, exchange, std::move(file));
      });
  add_with_model(
      router, all, "/prefixes/restore",
      [&prefixes](const AnswerContext& context, const std::shared_ptr<Exchange>& exchange) {
        const Json body = parse_body(exchange->request().body);
        const Fields fields(body);
        FileRequest file{.name = fields.required_string("name")};
        file.path = file.request.restore_from = prefixes.existing_path_of(file.name);
        file.request.deadline = deadline_of(fields);
        run(context, exchange, std::move(file));
      });
  router.post("/prefixes/erase", [&prefixes](const std::shared_ptr<Exchange>& exchange) {
    const Json body = parse_body(exchange->request().body);
    const std::string name = Fields(body).required_string("name");
    prefixes.erase(name);
    send_json(*exchange, {{"name", name}, {"status", "erased"}});
  });
}

}  // namespace sluice::server
