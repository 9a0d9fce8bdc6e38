/* sluice from C, and from whatever can call C: text in, text out, and tokens below that. (From C++:
 * chat.h and sluice.h.) Plain C99; docs/c-api.md has the whole of it on one page.
 *
 *   sluice_model* model = sluice_model_open("demo-attn", NULL);
 *   sluice_chat* chat = sluice_chat_new(model, NULL);
 *   const char* answer = sluice_chat_ask(chat, "What is 17 + 25?", NULL, NULL);
 *
 * Functions return a status, 0 where all is well, or a pointer, NULL where it is not. What went
 * wrong says sluice_last_error(), for each thread by itself. No exception leaves a function. NULL
 * as a handle is an error, and nothing to free.
 *
 * A model may be used by several threads at once, and different chats or sessions by different
 * ones. Calls to one chat or session must not overlap: a second one is refused while the first
 * runs, be it a callback's or another thread's. Callbacks run in the thread that called. Strings
 * are UTF-8 and end with a 0 byte. Those that functions return belong to the handle.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SLUICE_SLUICE_C_H
#define SLUICE_SLUICE_C_H

/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using,modernize-deprecated-headers) */
/* NOLINTBEGIN(modernize-redundant-void-arg): C++'s habits are not C's. */
#include <stddef.h>
#include <stdint.h>

#include "sluice/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the header; sluice_version() is the library's. Programs run with every later version of the
 * same major number, which libsluice.so.N carries too. */
#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0

/* Faults. */

enum {
  SLUICE_OK = 0,
  SLUICE_BAD_FILE = 1,
  SLUICE_UNSUPPORTED_MODEL = 2,
  SLUICE_OUT_OF_MEMORY = 3,
  SLUICE_BAD_REQUEST = 4, /* arguments that make no sense: NULL, tokens that are none */
  SLUICE_CANCELLED = 5,
  SLUICE_DEVICE = 6,
  SLUICE_NO_ROOM = 7, /* the caller's array is too small; how much is needed was said */
  SLUICE_INTERNAL = 8 /* a callback of C++ threw, or a defect */
};

/* Of this thread's last call that failed: one line, valid until the next one fails; "" and
 * SLUICE_OK before the first. Never NULL. */
SLUICE_API const char* sluice_last_error(void);
SLUICE_API int sluice_last_status(void);

SLUICE_API const char* sluice_version(void); /* "0.1.0" */

/* Options. Fill in the defaults, then change what you like; where NULL is given for a struct of
 * options, the defaults hold. Later versions may have further fields at the end: size tells which
 * the program was compiled with.
 *
 *   sluice_session_options options;
 *   sluice_session_options_init(&options, sizeof options);
 *   options.n_ctx = 8192; */

typedef struct sluice_model_options {
  size_t size;
  int32_t n_threads; /* 0: one per physical core that the process may use */
  int32_t weights;   /* 0: as memory allows; 1: copied into memory; 2: mapped from the file */
  /* Called while weights are read; NULL: nobody hears. */
  void (*on_progress)(uint64_t bytes_done, uint64_t bytes_total, void* user);
  void* user;
} sluice_model_options;

typedef struct sluice_session_options {
  size_t size;
  int32_t n_ctx;       /* tokens of context; 0: as trained, at most 4096 */
  const char* device;  /* "cpu"; "cuda"; "auto": the GPU where that is faster; NULL: "cpu" */
  int32_t gpu;         /* which one, of several */
  uint64_t vram_bytes; /* of the GPU at most so much; 0: what is free */
  const char* kv_type; /* of keys and values: "f32", "f16", "bf16", "q8_0", "q4_0"; NULL: "f16" */
} sluice_session_options;

typedef struct sluice_chat_options {
  size_t size;
  const sluice_session_options* session; /* NULL: the defaults; read by sluice_chat_new() only */
  const char* system;                    /* system message; NULL: none */
  int32_t n_tokens;                      /* of an answer at most; -1: as the context allows */
  /* How tokens are chosen; below 0: as the model file recommends. */
  float temperature; /* 0: always the most probable token */
  int32_t top_k;
  float top_p;
  float min_p;
  int64_t seed;     /* below 0: drawn */
  int32_t thinking; /* 1: think first; 0: do not; -1: as the model's template has it */
} sluice_chat_options;

SLUICE_API void sluice_model_options_init(sluice_model_options* options, size_t size);
SLUICE_API void sluice_session_options_init(sluice_session_options* options, size_t size);
SLUICE_API void sluice_chat_options_init(sluice_chat_options* options, size_t size);

/* Models. */

typedef struct sluice_model sluice_model;

typedef struct sluice_model_info {
  const char* path; /* strings are the model's */
  const char* architecture;
  const char* name;
  int32_t n_layers;
  int32_t d_model;
  int32_t n_vocab;
  int32_t n_ctx_train; /* the context the model was trained for */
  int32_t n_experts;
  int32_t n_experts_used;
  int32_t eos; /* the token that ends a text; -1: the file names none */
  uint64_t file_bytes;
} sluice_model_info;

/* A GGUF file, or the name of a model that ships with sluice: "demo-attn". */
SLUICE_API sluice_model* sluice_model_open(const char* path_or_name,
                                           const sluice_model_options* options);
/* Chats and sessions of the model go on: what they need of it stays. */
SLUICE_API void sluice_model_free(sluice_model* model);
SLUICE_API int sluice_model_describe(const sluice_model* model, sluice_model_info* info,
                                     size_t size);

/* The tokens of a text. With is_prompt, as a text to be continued: beginning as the model wants it,
 * and with the texts of control tokens as these tokens. Without: the text alone.
 * *n_tokens becomes how many there are. Where they are more than `capacity`, SLUICE_NO_ROOM is
 * returned and nothing written; with tokens NULL and capacity 0 they are counted only. */
SLUICE_API int sluice_tokenize(const sluice_model* model, const char* text, int is_prompt,
                               int32_t* tokens, size_t capacity, size_t* n_tokens);
/* The text of tokens, and a 0 byte behind it, in `capacity` bytes; *n_bytes is without that byte.
 * Else as above. A token may be part of a character. Control tokens are left out. */
SLUICE_API int sluice_detokenize(const sluice_model* model, const int32_t* tokens, size_t n_tokens,
                                 char* text, size_t capacity, size_t* n_bytes);

/* Chats: text in, text out. */

typedef struct sluice_chat sluice_chat;

/* Hears an answer as it comes, in whole characters, with no 0 byte behind. 0 ends the answer. */
typedef int (*sluice_on_text)(const char* text, size_t n_bytes, void* user);

SLUICE_API sluice_chat* sluice_chat_new(const sluice_model* model,
                                        const sluice_chat_options* options);
SLUICE_API void sluice_chat_free(sluice_chat* chat);
/* Answers a message, as part of the conversation so far. on_text may be NULL. The answer is valid
 * until the next call to this chat. Where it fails the conversation is as before. */
SLUICE_API const char* sluice_chat_ask(sluice_chat* chat, const char* message,
                                       sluice_on_text on_text, void* user);
/* What the model thought before its last answer; often "". Valid as the answer is. */
SLUICE_API const char* sluice_chat_thinking(sluice_chat* chat);
/* Begins a new conversation, with the same system message. */
SLUICE_API int sluice_chat_reset(sluice_chat* chat);
/* What a person should know before using this model, a line each; often "". */
SLUICE_API const char* sluice_chat_warnings(const sluice_chat* chat);

/* Sessions: tokens in, tokens out. */

typedef struct sluice_session sluice_session;

/* Sees each new token; 0 ends the text. */
typedef int (*sluice_on_token)(int32_t token, void* user);
/* Sees the scores of what may follow the token at `pos`: n_vocab numbers, valid during the call. */
typedef void (*sluice_on_logits)(int32_t pos, const float* logits, size_t n_vocab, void* user);
/* Picks the next token by such scores. */
typedef int32_t (*sluice_choose)(const float* logits, size_t n_vocab, void* user);

typedef struct sluice_generate_options {
  size_t size;
  int32_t n_tokens;         /* at most so many new ones; the default is 128 */
  int32_t stops_at_end;     /* 1, the default: at a token that ends a text */
  sluice_choose choose;     /* NULL: the most probable */
  sluice_on_token on_token; /* may be NULL */
  void* user;               /* for both */
} sluice_generate_options;

/* Why a text ended. */
enum {
  SLUICE_STOP_LENGTH = 0,
  SLUICE_STOP_END_OF_TEXT = 1,
  SLUICE_STOP_CALLBACK = 2,
  SLUICE_STOP_CONTEXT_FULL = 3
};

SLUICE_API void sluice_generate_options_init(sluice_generate_options* options, size_t size);

SLUICE_API sluice_session* sluice_session_new(const sluice_model* model,
                                              const sluice_session_options* options);
SLUICE_API void sluice_session_free(sluice_session* session);
/* Appends tokens to the text; on_logits (may be NULL) is called for each of them. */
SLUICE_API int sluice_session_append(sluice_session* session, const int32_t* tokens,
                                     size_t n_tokens, sluice_on_logits on_logits, void* user);
/* Appends the prompt and continues it. The new tokens become part of the text, an end token does
 * not. *reason (may be NULL) becomes one of SLUICE_STOP_. */
SLUICE_API int sluice_session_generate(sluice_session* session, const int32_t* prompt,
                                       size_t n_prompt, const sluice_generate_options* options,
                                       int* reason);
/* Forgets all but the first n_tokens. */
SLUICE_API int sluice_session_truncate(sluice_session* session, int32_t n_tokens);
SLUICE_API int32_t sluice_session_n_tokens(const sluice_session* session); /* -1 for NULL */
SLUICE_API int32_t sluice_session_n_ctx(const sluice_session* session);    /* -1 for NULL */

/* Sums over the life of a chat or session. */
typedef struct sluice_stats {
  int64_t n_prefill_tokens;
  int64_t n_decode_tokens;
  double prefill_seconds;
  double decode_seconds;
  uint64_t kv_bytes;
  uint64_t vram_bytes;
} sluice_stats;

SLUICE_API int sluice_chat_stats(const sluice_chat* chat, sluice_stats* stats, size_t size);
SLUICE_API int sluice_session_stats(const sluice_session* session, sluice_stats* stats,
                                    size_t size);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-redundant-void-arg) */
/* NOLINTEND(readability-identifier-naming,modernize-use-using,modernize-deprecated-headers) */

#endif
