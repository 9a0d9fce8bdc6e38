#!/usr/bin/env python3
"""Asks the demo model a question and prints the answer as it comes; nothing but Python's own ctypes is needed.

    ask.py ["What is 17 + 25?" [MODEL]]

Where the library is installed out of the system's sight: LD_LIBRARY_PATH=PREFIX/lib ask.py
"""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import sys

sluice = ctypes.CDLL("libsluice.so.0")
OnText = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p)


class ChatOptions(ctypes.Structure):
    """sluice_chat_options of sluice/sluice_c.h."""
    _fields_ = [("size", ctypes.c_size_t), ("session", ctypes.c_void_p), ("system", ctypes.c_char_p),
                ("n_tokens", ctypes.c_int32), ("temperature", ctypes.c_float), ("top_k", ctypes.c_int32),
                ("top_p", ctypes.c_float), ("min_p", ctypes.c_float), ("seed", ctypes.c_int64),
                ("thinking", ctypes.c_int32)]


def declare(name, result, *arguments):
    """Without its types ctypes would take pointers for ints, and cut them."""
    function = getattr(sluice, name)
    function.restype, function.argtypes = result, arguments
    return function


last_error = declare("sluice_last_error", ctypes.c_char_p)
model_open = declare("sluice_model_open", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
model_free = declare("sluice_model_free", None, ctypes.c_void_p)
options_init = declare("sluice_chat_options_init", None, ctypes.POINTER(ChatOptions), ctypes.c_size_t)
chat_new = declare("sluice_chat_new", ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ChatOptions))
chat_free = declare("sluice_chat_free", None, ctypes.c_void_p)
chat_ask = declare("sluice_chat_ask", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_char_p, OnText, ctypes.c_void_p)


def require(result):
    if not result and result != b"":
        sys.exit(f"ask: {last_error().decode()}")
    return result


@OnText
def show(text, n_bytes, _):
    print(ctypes.string_at(text, n_bytes).decode(), end="", flush=True)
    return 1  # 0 ends the answer


def main():
    question, name = (sys.argv[1:] + ["What is 17 + 25?", "demo-attn"][len(sys.argv) - 1:])[:2]
    model = require(model_open(name.encode(), None))
    options = ChatOptions()
    options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.temperature = 0
    chat = require(chat_new(model, ctypes.byref(options)))
    require(chat_ask(chat, question.encode(), show, None))
    print()
    chat_free(chat)
    model_free(model)


if __name__ == "__main__":
    main()
