// Memory that all CPU threads work in: in huge pages where it is large, and spread over the nodes
// of a machine that has several, so that every thread sees the bandwidth of all of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/buffer.h"

namespace sluice::backend {

// Not written yet, so the pages come with the first touch. Throws Errc::out_of_memory.
Buffer allocate_host(uint64_t n_bytes);

}  // namespace sluice::backend
