// Bodies of requests: parsed, refused with an ApiError, or read as struct; nothing else.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "server/api_error.h"
#include "server/requests/chat_fields.h"
#include "server/requests/generation_fields.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice::server;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  try {
    const Json json = parse_body(body);
    const Fields fields(json);
    read_openai_generation(fields);
    read_chat(fields);
  } catch (const ApiError&) {
  } catch (const sluice::Error&) {  // names of sampling stages
  }
  return 0;
}
