// The structs of options that C programs fill in, as the C++ interface takes them. Each struct
// tells its size, so that a program that knows fewer fields than the library gets their defaults.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sluice/chat.h"
#include "sluice/sluice_c.h"

namespace sluice::c_api {

// NULL: the defaults. Throws Errc::bad_request for values that make no sense, and for a size that
// no version of the struct has.
LoadOptions read(const sluice_model_options* options);
SessionOptions read(const sluice_session_options* options);
ChatOptions read(const sluice_chat_options* options);
sluice_generate_options read(const sluice_generate_options* options);

}  // namespace sluice::c_api
