// See tool_calls.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tool_calls.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/json_depth.h"
#include "text/thinking.h"

namespace sluice::text {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kBlank = " \t\r\n";

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

std::string as_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Discarded where it is no JSON, or nests as no arguments do.
Json parse_shallow(std::string_view text) {
  constexpr int kMostDepth = 64;
  if (json_depth(text) > kMostDepth) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

// Whether JSON that is cut off here is cut off within a string.
bool ends_in_string(std::string_view json) {
  bool is_inside = false;
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') is_inside = !is_inside;
    if (json[i] == '\\' && is_inside) ++i;
  }
  return is_inside;
}

// What stands from `open` to the next `close`, which both are taken from the front of `text`.
std::optional<std::string_view> take_between(std::string_view& text, std::string_view open,
                                             std::string_view close) {
  if (!text.starts_with(open)) return std::nullopt;
  const size_t end = text.find(close, open.size());
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view inside = text.substr(open.size(), end - open.size());
  text = trimmed(text.substr(end + close.size()));
  return inside;
}

// <function=name><parameter=key>value</parameter>...</function>. A value that is JSON counts as
// such; any other is a text.
std::optional<ToolCall> parse_tagged_call(std::string_view text) {
  std::optional<std::string_view> name = take_between(text, "<function=", ">");
  if (!name || name->empty()) return std::nullopt;
  Json arguments = Json::object();
  while (text.starts_with("<parameter=")) {
    const auto key = take_between(text, "<parameter=", ">");
    const size_t end = text.find("</parameter>");
    if (!key || end == std::string_view::npos) return std::nullopt;
    const std::string_view value = trimmed(text.substr(0, end));
    text = trimmed(text.substr(end + std::string_view("</parameter>").size()));
    const Json parsed = parse_shallow(value);
    arguments[std::string(*key)] = parsed.is_discarded() ? Json(value) : parsed;
  }
  return ToolCall{std::string(*name), as_line(arguments)};
}

}  // namespace

std::optional<ToolCall> parse_tool_call(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with("<function=")) return parse_tagged_call(text);
  const Json json = parse_shallow(text);
  if (!json.is_object()) return std::nullopt;
  const auto name = json.find("name");
  if (name == json.end() || !name->is_string()) return std::nullopt;
  auto arguments = json.find("arguments");
  if (arguments == json.end()) arguments = json.find("parameters");
  ToolCall call{name->get<std::string>(), "{}"};
  if (arguments == json.end() || arguments->is_null()) return call;
  call.arguments = arguments->is_string() ? arguments->get<std::string>() : as_line(*arguments);
  return call;
}

void ToolCallSplitter::push(std::string_view text) {
  held_ += text;
  while (in_call_ ? take_call() : take_text()) {
  }
}

// Hands over text up to a call; whether there is one.
bool ToolCallSplitter::take_text() {
  const size_t open = held_.find(kToolCallOpen);
  const bool found = open != std::string::npos;
  std::string_view shown(held_);
  shown = shown.substr(0, found ? open : held_.size() - partial_match(held_, kToolCallOpen));
  const size_t last = shown.find_last_not_of(kBlank);
  shown = shown.substr(0, last == std::string_view::npos ? 0 : last + 1);
  const std::string text(shown);
  held_.erase(0, found ? open + kToolCallOpen.size() : text.size());
  if (!text.empty()) on_text_(text);
  in_call_ = found;
  return found;
}

bool ToolCallSplitter::take_call() {
  for (;;) {
    const size_t close = held_.find(kToolCallClose, n_searched_);
    if (close == std::string::npos) {
      n_searched_ = std::max(n_searched_, held_.size() - partial_match(held_, kToolCallClose));
      return false;
    }
    const std::string_view inside = std::string_view(held_).substr(0, close);
    if (!trimmed(inside).starts_with('{') || !ends_in_string(inside)) {
      end_call(close);
      return true;
    }
    n_searched_ = close + kToolCallClose.size();
  }
}

// What is held begins with a call that ends at `close`, where a closing tag stands.
void ToolCallSplitter::end_call(size_t close) {
  const std::string inside = held_.substr(0, close);
  held_.erase(0, close + kToolCallClose.size());
  in_call_ = false;
  n_searched_ = 0;
  if (std::optional<ToolCall> call = parse_tool_call(inside)) {
    on_call_(*std::move(call));
    const size_t next = held_.find_first_not_of(kBlank);
    held_.erase(0, std::min(next, held_.size()));
  } else {
    on_text_(std::string(kToolCallOpen) + inside + std::string(kToolCallClose));
  }
}

void ToolCallSplitter::finish() {
  // In JSON whose last string was never closed, the tags in it close the call after all.
  while (in_call_ && !parse_tool_call(held_)) {
    const size_t close = held_.find(kToolCallClose);
    if (close == std::string::npos) break;
    end_call(close);
    push("");
  }
  const std::string rest = std::exchange(held_, {});
  n_searched_ = 0;
  if (!std::exchange(in_call_, false)) {
    if (!rest.empty()) on_text_(rest);
  } else if (std::optional<ToolCall> call = parse_tool_call(rest)) {
    on_call_(*std::move(call));
  } else {
    on_text_(std::string(kToolCallOpen) + rest);
  }
}

}  // namespace sluice::text
