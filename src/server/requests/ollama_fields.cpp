// See ollama_fields.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/requests/ollama_fields.h"

#include <charconv>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "server/api_error.h"

namespace sluice::server {
namespace {

// true, false, or an effort.
std::optional<bool> read_think(const Fields& fields) {
  const Json* think = fields.find("think");
  if (!think || think->is_boolean()) return fields.boolean("think");
  return fields.string("think") != "none";
}

// An editor that sends pictures must not think that they were seen.
void refuse_images(const Fields& fields) {
  if (const Json* images = fields.array("images"); images && !images->empty()) {
    fields.fail("images", "none: the model reads texts alone");
  }
}

}  // namespace

GenerationFields read_ollama_generation(const Fields& fields) {
  GenerationFields to;
  if (const Json* options = fields.object("options")) {
    const Fields inside(*options, fields.path("options"));
    read_sampling(inside, to);
    read_stops(inside, "stop", to);
    to.n_tokens = inside.integer("num_predict", -2).value_or(-1);
    if (to.n_tokens == -2) to.n_tokens = -1;  // "fill the context"
  }
  if (const Json* format = fields.find("format")) {
    if (format->is_object()) {
      to.constraint = {.kind = Constraint::Kind::json_schema, .text = dump(*format)};
    } else if (*format == "json") {
      to.constraint = {.kind = Constraint::Kind::json_object};
    } else if (*format != "") {
      fields.fail("format", "json, or a JSON schema");
    }
  }
  to.stream = fields.boolean("stream").value_or(true);
  return to;
}

std::optional<double> read_keep_alive(const Fields& fields) {
  const Json* value = fields.find("keep_alive");
  if (!value) return std::nullopt;
  if (value->is_number()) return fields.number("keep_alive");
  const std::string text = fields.string("keep_alive").value_or("");
  const char* const end = text.data() + text.size();
  double number = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  if (error == std::errc()) {
    for (const auto& [name, seconds] :
         {std::pair("", 1.0), std::pair("s", 1.0), std::pair("m", 60.0), std::pair("h", 3600.0)}) {
      if (unit == name) return number * seconds;
    }
  }
  fields.fail("keep_alive", "seconds, or a time such as 30s, 5m or 24h; -1: for ever");
}

ChatFields read_ollama_chat(const Fields& fields) {
  if (const Json* messages = fields.array("messages")) {
    for (size_t i = 0; i < messages->size(); ++i) {
      refuse_images(Fields((*messages)[i], cat("messages[", i, "]")));
    }
  }
  ChatFields chat = read_chat(fields);
  chat.enable_thinking = read_think(fields);
  return chat;
}

ChatFields read_ollama_prompt(const Fields& fields) {
  refuse_images(fields);
  ChatFields chat;
  if (const auto system = fields.string("system"); system && !system->empty()) {
    chat.messages.push_back({{"role", "system"}, {"content", *system}});
  }
  chat.messages.push_back({{"role", "user"}, {"content", fields.required_string("prompt")}});
  chat.enable_thinking = read_think(fields);
  return chat;
}

}  // namespace sluice::server
