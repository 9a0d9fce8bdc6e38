#!/usr/bin/env python3
"""Chats with a model whose layers are recurrent: a follow-up is computed from the end of the last question, however many
other chats there are, although the template leaves out what the model thought.

    follow_ups_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import unittest

import serving
from serving import Server, metric

# Behind the end of a question: "\n<|im_start|>assistant\n" and, where there are no thoughts, an empty block of them.
BEHIND_QUESTION = 12
N_CHATS = 8


class Chat:
    def __init__(self, server, i):
        self.server, self.i = server, i
        self.messages = []
        self.usage = None
        self.n_reused = 0
        story = " ".join(f"The number {k} comes before {k + 1}." for k in range(i, i + 12))
        self.first = f"Chat {i}: {story} What is {i + 11} + 25?"

    def ask(self, question=None):
        """Asks and takes the answer; how many tokens of the prompt were computed, and how many of it are new."""
        before = self.usage["prompt_tokens"] if self.usage else 0
        self.messages.append({"role": "user", "content": question or self.first})
        answer = self.server.post("/v1/chat/completions", {
            "model": "demo", "messages": self.messages, "max_tokens": 150, "seed": 3, "temperature": 0,
            "chat_template_kwargs": {"enable_thinking": True}})
        message = answer["choices"][0]["message"]
        self.thoughts = message.get("reasoning_content")
        self.messages.append({"role": "assistant", "content": message["content"]})
        self.usage = answer["usage"]
        n_prompt, n_held = self.usage["prompt_tokens"], self.usage["prompt_tokens_details"]["cached_tokens"]
        self.n_reused += n_held
        return n_prompt - n_held, n_prompt - before


class FollowUpsTest(unittest.TestCase):
    def ask_again(self, chat, question):
        self.assertTrue(chat.thoughts, "the template has left out nothing")
        n_computed, n_new = chat.ask(question)
        self.assertLessEqual(n_computed, n_new + BEHIND_QUESTION, f"chat {chat.i}: {question}")

    def test_eight_chats(self):
        with Server("-m", "demo-hybrid", "-c", "2048") as server:
            chats = [Chat(server, i) for i in range(N_CHATS)]
            for chat in chats:
                chat.ask()
            for k in range(2):
                for chat in chats:
                    self.ask_again(chat, f"What is {chat.i} + {k + 5}?")
            for k in range(6):  # one of them goes on alone
                self.ask_again(chats[0], f"What is {k} + 12?")
            for chat in chats:
                self.ask_again(chat, f"What is {chat.i} + 9?")
            n_reused = sum(chat.n_reused for chat in chats)
            self.assertEqual(metric(server, "sluice_reused_tokens_total"), n_reused)
            self.assertEqual(metric(server, "sluice_recomputed_tokens_total"), 0)

    def test_a_new_chat_after_long_ones(self):
        with Server("-m", "demo-hybrid", "-c", "2048") as server:
            for i, n_turns in enumerate((5, 3, 3)):
                chat = Chat(server, i)
                chat.ask()
                for k in range(1, n_turns):
                    self.ask_again(chat, f"What is {k} + 7?")

    def test_an_edited_question(self):
        with Server("-m", "demo-hybrid", "-c", "2048") as server:
            chats = [Chat(server, i) for i in range(N_CHATS)]
            for chat in chats:
                chat.ask()
                self.ask_again(chat, "What is 5 + 6?")
            for chat in chats[:3]:
                del chat.messages[-2:]
                n_computed, _ = chat.ask("What is 15 + 26?")
                self.assertLess(n_computed, 30, f"chat {chat.i}, from the end of the answer before")


if __name__ == "__main__":
    serving.main()
