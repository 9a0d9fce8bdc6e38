// See infill_fields.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/requests/infill_fields.h"

#include "base/error.h"
#include "server/api_error.h"

namespace sluice::server {

text::FillInput read_infill(const Fields& fields) {
  text::FillInput input;
  if (!fields.find("input_prefix") && !fields.find("input_suffix")) {
    fields.fail("input_prefix", "a text; and input_suffix, the text behind the gap");
  }
  input.prefix = fields.string("input_prefix").value_or("");
  input.suffix = fields.string("input_suffix").value_or("");
  input.begun = fields.string("prompt").value_or("");
  if (const Json* files = fields.array("input_extra")) {
    for (size_t i = 0; i < files->size(); ++i) {
      const Fields file((*files)[i], cat(fields.path("input_extra"), "[", i, "]"));
      input.files.push_back(
          {file.string("filename").value_or("tmp"), file.required_string("text")});
    }
  }
  return input;
}

GenerationFields read_infill_generation(const Json& body) {
  Json known = body;
  if (const auto samplers = known.find("samplers"); samplers != known.end()) {
    if (samplers->is_array()) std::erase(samplers->get_ref<Json::array_t&>(), Json("infill"));
  }
  const Fields fields(known);
  if (fields.integer("n").value_or(1) != 1)
    fields.fail("n", "1; for several send several requests");
  return read_openai_generation(fields);
}

}  // namespace sluice::server
