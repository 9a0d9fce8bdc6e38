// See json.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/json.h"

#include <limits>

#include "text/jinja/values/print.h"
#include "text/utf8.h"

namespace sluice::text::jinja {
namespace {

Value from_text(Runtime& runtime, const std::string& text) {
  if (text.size() > kLargestLimit) runtime.fail("the input has a string of more than 4 GiB");
  if (const size_t valid = valid_utf8_length(text); valid < text.size()) {
    runtime.fail(cat("the input has a string that is not valid UTF-8 at its byte ", valid, ": ",
                     quoted(std::string_view(text).substr(0, valid))));
  }
  return Value::string(text);
}

}  // namespace

Value from_json(Runtime& runtime, const Json& json) {
  const Runtime::Level level(runtime);
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = json.get<uint64_t>();
      return number <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
                 ? Value::integer(static_cast<int64_t>(number))
                 : Value::number(static_cast<double>(number));
    }
    case Json::value_t::number_float:
      return Value::number(json.get<double>());
    case Json::value_t::string:
      return from_text(runtime, json.get_ref<const std::string&>());
    case Json::value_t::array: {
      List& list = runtime.make_list();
      for (const Json& item : json) runtime.append(list, from_json(runtime, item));
      return Value::list(list);
    }
    case Json::value_t::object: {
      Dict& dict = runtime.make_dict();
      for (const auto& [key, value] : json.get_ref<const Json::object_t&>()) {
        runtime.set(dict, from_text(runtime, key), from_json(runtime, value));
      }
      return Value::dict(dict);
    }
    default:
      return Value::none();
  }
}

namespace {

// Keeps a parsed document, whose strings values point into, as long as the runtime.
class Document : public Object {
 public:
  explicit Document(Json json) : json_(std::move(json)) {}
  const Json& json() const { return json_; }
  std::string describe(Runtime& /*runtime*/) const override { return "<document>"; }

 private:
  const Json json_;
};

// What a document of nothing but brackets takes for each of its bytes.
constexpr size_t kDocumentBytesPerByte = 128;

}  // namespace

Value parse_json(Runtime& runtime, std::string_view text) {
  runtime.step(1 + text.size());
  runtime.charge(kDocumentBytesPerByte * text.size());
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) runtime.fail(cat(quoted(text), " is not valid JSON"));
  return from_json(runtime, runtime.make_object<Document>(std::move(json)).json());
}

Json to_json(Runtime& runtime, Value value) {
  const Runtime::Level level(runtime);
  runtime.step();
  switch (value.kind()) {
    case Kind::undefined:
      runtime.fail_undefined(value);
    case Kind::none:
      return nullptr;
    case Kind::boolean:
      return value.as_boolean();
    case Kind::integer:
      return value.as_integer();
    case Kind::number:
      return value.as_number();
    case Kind::string:
      return std::string(value.as_string());
    case Kind::list:
    case Kind::tuple: {
      Json array = Json::array();
      for (const Value item : value.as_list().items) array.push_back(to_json(runtime, item));
      return array;
    }
    case Kind::dict: {
      Json object = Json::object();
      for (const auto& [key, entry] : value.as_dict().entries()) {
        object[std::string(to_text(runtime, key).as_string())] = to_json(runtime, entry);
      }
      return object;
    }
    case Kind::object:
      runtime.fail("a function or object has no JSON form");
  }
  return nullptr;
}

}  // namespace sluice::text::jinja
