// What was computed of a text, as a stream of bytes: layer after layer the keys and values of its
// positions in the cache's own types, or the newest recurrent state. Positions that a page has room
// for beyond the text are left out, and so is where anything stands: the bytes are the same from
// the CPU's memory and from a device's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/step/text_memory.h"

namespace sluice::engine {

// Takes bytes that are valid during the call; fills all of what it is given.
using TakeBytes = std::function<void(std::span<const std::byte> bytes)>;
using FillBytes = std::function<void(std::span<std::byte> bytes)>;

// How many bytes a text of n_tokens has.
uint64_t text_data_bytes(const TextMemory& memory, int n_tokens);

// Of a text that is not empty, pages that forks share included. Whatever is thrown, the text stays.
void read_text_data(const TextMemory& memory, SequenceId sequence, const TakeBytes& take);

// The sequence becomes these tokens and what `fill` gives for them. Where it throws, it is empty.
void write_text_data(const TextMemory& memory, SequenceId sequence, std::span<const TokenId> tokens,
                     const FillBytes& fill);

}  // namespace sluice::engine
