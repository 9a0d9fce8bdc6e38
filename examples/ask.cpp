// Asks the demo model a question and prints the answer as it comes.
// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "sluice/chat.h"

int main(int argc, char** argv) {
  sluice::Chat chat("demo-attn", {.temperature = 0.0f});
  chat.ask(argc > 1 ? argv[1] : "What is 17 + 25?", [](std::string_view text) {
    return static_cast<bool>(std::cout << text << std::flush);
  });
  std::cout << '\n';
}
