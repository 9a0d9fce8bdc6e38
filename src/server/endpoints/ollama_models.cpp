// GET /api/tags, /api/ps and /api/version, POST /api/show: the model as Ollama's clients list it.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <ctime>
#include <filesystem>

#include "server/endpoints/endpoints.h"
#include "text/fill_prompt.h"

namespace sluice::server {
namespace {

Json details(const ModelService& service) {
  return {{"format", "gguf"},
          {"family", service.info().architecture},
          {"families", Json::array({service.info().architecture})},
          {"parameter_size", ""},
          {"quantization_level", ""}};
}

std::string time_text(std::time_t time) {
  std::tm parts = {};
  gmtime_r(&time, &parts);
  std::array<char, 32> text;
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

Json entry(const ModelService& service) {
  return {{"name", service.name()},
          {"model", service.name()},
          {"modified_at", time_text(static_cast<std::time_t>(service.started()))},
          {"size", service.info().file_bytes},
          {"digest", ""},
          {"details", details(service)}};
}

// One that is not loaded: more than its file is not known.
Json entry(const ModelHost::Known& known) {
  std::error_code ignored;
  const uint64_t n_bytes = std::filesystem::file_size(known.path, ignored);
  return {{"name", known.name},
          {"model", known.name},
          {"modified_at", time_text(0)},
          {"size", ignored ? 0 : n_bytes},
          {"digest", ""},
          {"details", {{"format", "gguf"}}}};
}

Json loaded_models(const ModelHost& host) {
  const ModelHost::Handle model = host.peek();
  return model ? Json::array({entry(*model)}) : Json::array();
}

Json show(const ModelService& service) {
  Json capabilities = Json::array({"completion"});
  if (service.text().template_mentions("tools")) capabilities.push_back("tools");
  if (service.text().template_mentions("enable_thinking")) capabilities.push_back("thinking");
  if (text::missing_fill_tokens(service.text().tokenizer()).empty()) {
    capabilities.push_back("insert");
  }
  const ModelInfo& info = service.info();
  return {{"modelfile", ""},
          {"parameters", ""},
          {"template", ""},
          {"details", details(service)},
          {"model_info",
           {{"general.architecture", info.architecture},
            {"general.name", info.name},
            {info.architecture + ".context_length", service.n_ctx()},
            {info.architecture + ".block_count", info.n_layers},
            {info.architecture + ".embedding_length", info.d_model},
            {info.architecture + ".expert_count", info.is_dense ? 0 : info.n_experts},
            {info.architecture + ".expert_used_count", info.is_dense ? 0 : info.n_experts_used}}},
          {"capabilities", capabilities}};
}

}  // namespace

void add_ollama_models(Router& router, const EndpointContext& all) {
  router.get("/api/tags", [&all](const std::shared_ptr<Exchange>& exchange) {
    Json models = loaded_models(all.host);
    const std::string loaded = models.empty() ? "" : models[0]["name"].get<std::string>();
    for (const ModelHost::Known& known : all.host.list()) {
      const bool may_ask = all.host.swaps() || (loaded.empty() && known.name == all.host.name());
      if (may_ask && known.name != loaded) models.push_back(entry(known));
    }
    send_json(*exchange, {{"models", models}});
  });
  router.get("/api/ps", [&all](const std::shared_ptr<Exchange>& exchange) {
    send_json(*exchange, {{"models", loaded_models(all.host)}});
  });
  router.get("/api/version", [](const std::shared_ptr<Exchange>& exchange) {
    send_json(*exchange, {{"version", SLUICE_VERSION}});
  });
  router.post("/api/show", [&all](const std::shared_ptr<Exchange>& exchange) {
    parse_body(exchange->request().body);
    send_json(*exchange, show(*all.host.loaded()));
  });
}

}  // namespace sluice::server
