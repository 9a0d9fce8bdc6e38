// JSON schemas to grammars: what matches is valid JSON, and valid for the schema. Not a validator:
// a schema allows many spellings of a value, and a grammar made here some of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "text/grammar/grammar.h"
#include "text/grammar/limits.h"

namespace sluice::text {

enum class JsonSpacing {
  compact,  // {"a":1,"b":[2,3]}
  spaced,   // the same, or with single spaces after : and ,
  lines,    // the same, or with a line break and up to 20 spaces at brackets and after ,
};

struct JsonSchemaOptions {
  JsonSpacing spacing = JsonSpacing::spaced;
  GrammarLimits limits;
};

// Of the spellings that a schema allows, the grammar has these:
// - properties in the order of the schema, then additional ones, whose names have no escapes;
// - white space as the options say, and no more of it than one place can have;
// - integers of up to 18 digits; numbers of up to 15 digits before and 15 after the point, and an
//   exponent of up to two digits. A number with bounds has up to 15 digits in all and no exponent;
// - in strings with a pattern or a format, only the escapes that JSON needs.
// Where a schema leaves things open, the grammar may allow less than the schema, never more: no
// properties beyond the listed ones unless additionalProperties says so, no items beyond
// prefixItems unless items does, and the type that the keywords are about where `type` is missing.
// oneOf is read as anyOf.
//
// Throws Error (bad_request) naming the place and the keyword where the schema is not JSON, is
// malformed, contradicts itself, or asks for something that cannot be expressed.
Grammar compile_json_schema(std::string_view schema, const JsonSchemaOptions& options = {});

// Any JSON object.
Grammar compile_json_object(const JsonSchemaOptions& options = {});

}  // namespace sluice::text
