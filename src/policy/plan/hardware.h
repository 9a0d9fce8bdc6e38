// Descriptions of machines, as people write them: parts of a table and numbers. Nothing here looks
// at the machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/machine.h"
#include "policy/plan/pricing.h"

namespace sluice::policy {

using Hardware = Machine;

// Reads a description: parts of the table joined by '+', then numbers, all of it optional:
//   rtx4070ti-12g+64g-ddr5    rtx3090+pcie3x16    cpu+32g-ddr4    vram=12GiB,link=25GB/s,cpu=60GB/s
// What it does not say is as in `base`, but a GPU takes kCudaBytes for itself unless the text says
// otherwise (overhead=). Throws Errc::bad_request, with the nearest known names.
Hardware parse_hardware(std::string_view text, const Hardware& base);

// "12GiB", "12g", "12288 MiB", "800MB": KiB, MiB, GiB and their letters are powers of 1024, KB, MB
// and GB of 1000. Throws Errc::bad_request; `what` names the value in its text.
uint64_t parse_bytes(std::string_view text, std::string_view what);

// "25GB/s", "6.5 GB/s", "20GiB/s" or plain GB/s of 10^9 bytes: 25. Throws as parse_bytes does.
double parse_gbps(std::string_view text, std::string_view what);

// "18us", "0.2ms" or plain microseconds: 18. Throws as parse_bytes does.
double parse_microseconds(std::string_view text, std::string_view what);

}  // namespace sluice::policy
