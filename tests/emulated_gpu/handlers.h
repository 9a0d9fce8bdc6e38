// The families of instructions, a file for each: a handler by the parts of an instruction's name,
// or null.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "emulated_gpu/program.h"

namespace sluice::emulated_gpu {

Handler number_handler(const std::vector<std::string_view>& name, Instruction& i);
Handler bit_handler(const std::vector<std::string_view>& name, Instruction& i);
Handler conversion_handler(const std::vector<std::string_view>& name, Instruction& i);
Handler memory_handler(const std::vector<std::string_view>& name, Instruction& i);
Handler copy_handler(const std::vector<std::string_view>& name, Instruction& i);
Handler warp_handler(const std::vector<std::string_view>& name, Instruction& i);
Handler product_handler(const std::vector<std::string_view>& name, Instruction& i);

}  // namespace sluice::emulated_gpu
