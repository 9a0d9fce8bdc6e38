// Strings as Python sees them: sequences of characters, with Unicode's spaces and cases. All text
// here is valid UTF-8, which compiling and from_json() (json.h) make sure of.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::text::jinja {

// Bytes of the character that begins with `lead`.
size_t n_character_bytes(char lead);

size_t n_characters(std::string_view text);

bool is_ascii(std::string_view text);

// The character at byte `i`, which moves behind it.
uint32_t next_character(std::string_view text, size_t& i);

void append_character(std::string& text, uint32_t character);

// The characters as strings of their own, inside `text`.
std::vector<std::string_view> split_characters(std::string_view text);

// What Python's str.isspace() accepts.
bool is_space(uint32_t character);

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);

// Whether a character has another case.
bool has_case(std::string_view character);

enum class CharacterClass { letter, digit, alphanumeric, unprintable };

// Whether the text is not empty and all of its characters are of the class.
bool consists_of(CharacterClass wanted, std::string_view text);

// How many runs of letters, digits and underscores there are.
size_t n_words(std::string_view text);

}  // namespace sluice::text::jinja
