#!/usr/bin/env python3
"""The same answers in the words of other APIs: Anthropic's, OpenAI's newer one, Ollama's.

    dialects_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import json
import unittest

import serving
from serving import Server

QUESTION = "What is 17 + 25?"
ANSWER = "17 + 25 = 42."
PARAMETERS = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}}, "required": ["city"]}
USER = [{"role": "user", "content": QUESTION}]


class DialectsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        code, _ = cls.server.stop()
        assert code == 0, code

    def test_messages(self):
        body = {"model": "m", "max_tokens": 50, "temperature": 0, "messages": USER}
        answer = self.server.post("/v1/messages", body)
        self.assertEqual(answer["content"], [{"type": "text", "text": ANSWER}])
        self.assertEqual((answer["type"], answer["role"], answer["stop_reason"]), ("message", "assistant", "end_turn"))
        usage = answer["usage"]
        counted = self.server.post("/v1/messages/count_tokens", {"messages": USER})
        self.assertEqual(counted["input_tokens"], usage["input_tokens"] + usage["cache_read_input_tokens"])
        stopped = self.server.post("/v1/messages", {**body, "stop_sequences": ["zzz", "= 4"]})
        self.assertEqual((stopped["stop_reason"], stopped["stop_sequence"]), ("stop_sequence", "= 4"))
        self.assertEqual(self.server.post("/v1/messages", {**body, "max_tokens": 2})["stop_reason"], "max_tokens")
        error = self.server.post("/v1/messages", {"messages": USER}, status=400)
        self.assertEqual((error["type"], error["error"]["type"]), ("error", "invalid_request_error"))

    def test_messages_stream(self):
        events = self.server.events("/v1/messages", {"max_tokens": 50, "temperature": 0, "messages": USER,
                                                     "stream": True})
        types = [e["type"] for e in events]
        self.assertEqual(types[:2], ["message_start", "content_block_start"])
        self.assertEqual(types[-3:], ["content_block_stop", "message_delta", "message_stop"])
        pieces = [e["delta"]["text"] for e in events if e["type"] == "content_block_delta"]
        self.assertEqual("".join(pieces), ANSWER)
        usage = events[-2]["usage"]
        counted = self.server.post("/v1/messages/count_tokens", {"messages": USER})["input_tokens"]
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], counted)
        self.assertGreater(usage["output_tokens"], 5)

    def test_messages_output_config(self):
        form = {"type": "json_schema", "schema": PARAMETERS}
        body = {"max_tokens": 100, "messages": USER, "output_config": {"format": form}}
        text = self.server.post("/v1/messages", body)["content"][0]["text"]
        self.assertIn(json.loads(text)["city"], ["Oslo", "Rome"])
        del form["schema"]
        error = self.server.post("/v1/messages", body, status=400)["error"]
        self.assertIn("output_config.format.schema", error["message"])

    def test_what_would_have_to_be_kept_is_refused(self):
        thread = {"type": "continue", "previous_message_id": "msg_1"}
        error = self.server.post("/v1/messages", {"max_tokens": 5, "messages": USER, "thread": thread}, status=400)
        self.assertEqual(error["error"]["details"], {"error_code": "thread_unsupported_request"})
        reference = [{"type": "item_reference", "id": "msg_1"}]
        for fields in [{"previous_response_id": "x"}, {"conversation": "x"}, {"input": reference}]:
            error = self.server.post("/v1/responses", {"input": QUESTION, **fields}, status=400)["error"]
            self.assertIn("this server keeps no", error["message"])

    def test_messages_tools(self):
        tool = {"name": "weather", "input_schema": PARAMETERS}
        body = {"max_tokens": 100, "tools": [tool], "tool_choice": {"type": "any"}, "messages": USER, "seed": 1}
        answer = self.server.post("/v1/messages", body)
        self.assertEqual(answer["stop_reason"], "tool_use")
        use = answer["content"][0]
        self.assertEqual((use["type"], use["name"]), ("tool_use", "weather"))
        self.assertIn(use["input"]["city"], ["Oslo", "Rome"])
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": [{"type": "text", "text": "rain"}]}
        history = USER + [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        self.server.post("/v1/messages", {"max_tokens": 5, "tools": [tool], "messages": history})
        events = self.server.events("/v1/messages", {**body, "stream": True})
        pieces = [e["delta"]["partial_json"] for e in events if e["type"] == "content_block_delta"]
        self.assertEqual(json.loads("".join(pieces)), use["input"])

    def test_responses(self):
        body = {"model": "m", "input": QUESTION, "temperature": 0}
        answer = self.server.post("/v1/responses", body)
        self.assertEqual((answer["object"], answer["status"]), ("response", "completed"))
        self.assertEqual(answer["output"][0]["content"][0]["text"], ANSWER)
        cut = self.server.post("/v1/responses", {**body, "max_output_tokens": 2})
        self.assertEqual((cut["status"], cut["incomplete_details"]), ("incomplete", {"reason": "max_output_tokens"}))
        events = self.server.events("/v1/responses", {**body, "stream": True})
        self.assertEqual([e["sequence_number"] for e in events], list(range(len(events))))
        self.assertEqual(events[-1]["type"], "response.completed")
        pieces = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
        self.assertEqual("".join(pieces), ANSWER)
        self.assertEqual(events[-1]["response"]["output"][0]["content"][0]["text"], ANSWER)

    def test_responses_tools(self):
        tool = {"type": "function", "name": "weather", "parameters": PARAMETERS}
        body = {"input": QUESTION, "tools": [tool], "tool_choice": "required", "seed": 1}
        call = self.server.post("/v1/responses", body)["output"][0]
        self.assertEqual((call["type"], call["name"]), ("function_call", "weather"))
        self.assertIn(json.loads(call["arguments"])["city"], ["Oslo", "Rome"])
        history = [{"role": "user", "content": QUESTION}, call,
                   {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}]
        self.server.post("/v1/responses", {"input": history, "tools": [tool], "max_output_tokens": 5})

    def lines(self, path, body):
        _, headers, text = self.server.request("POST", path, body)
        self.assertEqual(headers["Content-Type"], "application/x-ndjson")
        return [json.loads(line) for line in text.splitlines()]

    def test_ollama(self):
        options = {"temperature": 0}
        lines = self.lines("/api/chat", {"model": "m", "messages": USER, "options": options})
        self.assertEqual("".join(line["message"]["content"] for line in lines), ANSWER)
        self.assertEqual([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
        self.assertEqual(lines[-1]["done_reason"], "stop")
        self.assertGreater(lines[-1]["eval_count"], 5)
        lines = self.lines("/api/generate", {"prompt": QUESTION, "options": options})
        self.assertEqual("".join(line["response"] for line in lines), ANSWER)
        whole = self.server.post("/api/generate", {"prompt": QUESTION, "options": {**options, "num_predict": 2},
                                                   "stream": False})
        self.assertEqual(whole["done_reason"], "length")
        value = self.server.post("/api/chat", {"messages": USER, "stream": False, "format": PARAMETERS})
        self.assertIn(json.loads(value["message"]["content"])["city"], ["Oslo", "Rome"])
        self.assertIsInstance(self.server.post("/api/chat", {"messages": 1}, status=400)["error"], str)

    def test_ollama_models(self):
        name = self.server.get("/api/tags")["models"][0]["name"]
        shown = self.server.post("/api/show", {"model": name})
        self.assertEqual(shown["capabilities"], ["completion", "tools", "thinking"])
        self.assertIn("version", self.server.get("/api/version"))


if __name__ == "__main__":
    serving.main()
