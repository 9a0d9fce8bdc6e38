/* Asks the demo model a question and prints the answer as it comes.
 *   cc ask.c $(pkg-config --cflags --libs sluice) -o ask && ./ask "What is 17 + 25?"
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "sluice/sluice_c.h"

static int show(const char* text, size_t n_bytes, void* user) {
  FILE* to = user;
  return fwrite(text, 1, n_bytes, to) == n_bytes && fflush(to) == 0; /* 0 ends the answer */
}

int main(int argc, char** argv) {
  const char* question = argc > 1 ? argv[1] : "What is 17 + 25?";
  const char* name = argc > 2 ? argv[2] : "demo-attn"; /* or a GGUF file */
  sluice_model* model = sluice_model_open(name, NULL);
  sluice_chat_options options;
  sluice_chat* chat;
  const char* answer;

  sluice_chat_options_init(&options, sizeof options);
  options.temperature = 0;
  chat = model ? sluice_chat_new(model, &options) : NULL;
  answer = chat ? sluice_chat_ask(chat, question, show, stdout) : NULL;
  if (answer) {
    printf("\n");
  } else {
    fprintf(stderr, "ask: %s\n", sluice_last_error());
  }
  sluice_chat_free(chat);
  sluice_model_free(model);
  return answer ? 0 : 1;
}
