// What this machine's memory and cores can do at most, measured: the yardsticks of `sluice bench`.
// No kernel is judged here and none is used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/thread_pool.h"

namespace sluice::cli {

// Bytes/s at which all threads of the pool together read memory, with the widest loads there are:
// the best of many passes over a buffer far larger than the last cache, in huge pages where the
// kernel grants them. Takes a third of a second. Throws Errc::out_of_memory.
double read_bytes_per_second(ThreadPool& pool);

struct Int8Speed {
  double ops_per_second = 0.0;  // a multiply-add counts as two
  std::string_view instruction;
};

// What all threads together reach in registers alone, with the int8 instruction of this CPU that
// does most at once. Takes about 50 ms.
Int8Speed int8_speed(ThreadPool& pool);

}  // namespace sluice::cli
