#!/usr/bin/env python3
"""The endpoints: whole answers, their shapes, and that they are those of `sluice run`.

    api_test.py SLUICE
"""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import json
import unittest

import serving
from serving import Server, chat, run

QUESTION = "What is 17 + 25?"
WILD = {"temperature": 3.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}  # the demo model is sure of itself
STORY = "Tell me about the sea."
WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "enum": ["Oslo", "Rome"]}},
                   "required": ["city"]}}}


class ApiTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        code, _ = cls.server.stop()
        assert code == 0, code

    def ask(self, text, **fields):
        return self.server.post("/v1/chat/completions", chat(text, **fields))

    def test_chat_answers_as_run_does(self):
        for flags, fields in [([], {}), (["--temp", "0"], {"temperature": 0}),
                              (["--temp", "3", "--top-k", "0", "--top-p", "1", "--min-p", "0"], WILD)]:
            with self.subTest(flags=flags):
                expected = run("-p", STORY, "-s", "7", "-n", "40", *flags)
                answer = self.ask(STORY, seed=7, max_tokens=40, **fields)
                choice = answer["choices"][0]
                self.assertEqual(choice["message"]["content"], expected["text"])
                self.assertEqual(answer["usage"]["completion_tokens"], len(expected["tokens"]))
                self.assertEqual(answer["object"], "chat.completion")

    def test_eight_at_once_answer_as_alone(self):
        seeds = range(1, 9)
        alone = [self.ask(STORY, seed=s, max_tokens=30, **WILD)["choices"][0]["message"] for s in seeds]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            together = pool.map(lambda s: self.ask(STORY, seed=s, max_tokens=30, **WILD), seeds)
            self.assertEqual([answer["choices"][0]["message"] for answer in together], alone)
        self.assertGreater(len({m["content"] for m in alone}), 1)

    def test_usage_and_finish(self):
        answer = self.ask(QUESTION, temperature=0)
        self.assertEqual(answer["choices"][0]["message"]["content"], "17 + 25 = 42.")
        self.assertEqual(answer["choices"][0]["finish_reason"], "stop")
        usage = answer["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertEqual(self.ask(QUESTION, max_completion_tokens=2)["choices"][0]["finish_reason"], "length")

    def test_stop_strings(self):
        choice = self.ask(QUESTION, temperature=0, stop=["= 4"])["choices"][0]
        self.assertEqual((choice["message"]["content"], choice["finish_reason"]), ("17 + 25 ", "stop"))

    def test_several_choices_have_seeds_of_their_own(self):
        choices = self.ask(STORY, n=3, seed=5, max_tokens=20, **WILD)["choices"]
        self.assertEqual([c["index"] for c in choices], [0, 1, 2])
        texts = [c["message"]["content"] for c in choices]
        self.assertEqual(len(set(texts)), 3)
        self.assertEqual(self.ask(STORY, seed=6, max_tokens=20, **WILD)["choices"][0]["message"]["content"], texts[1])

    def test_thinking_is_apart(self):
        answer = self.ask(QUESTION, temperature=0, chat_template_kwargs={"enable_thinking": True})
        message = answer["choices"][0]["message"]
        self.assertTrue(message["reasoning_content"])
        self.assertNotIn("think>", message["content"])

    def test_logprobs(self):
        entries = self.ask(QUESTION, temperature=0, logprobs=True, top_logprobs=3)["choices"][0]["logprobs"]["content"]
        self.assertEqual("".join(e["token"] for e in entries), "17 + 25 = 42.")
        for entry in entries:
            self.assertEqual(entry["token"], entry["top_logprobs"][0]["token"])
            self.assertLessEqual(entry["logprob"], 0)
            self.assertEqual(bytes(entry["bytes"]).decode(), entry["token"])

    def test_logit_bias(self):
        tokens = self.server.post("/tokenize", {"content": "17"})["tokens"]
        text = self.ask(QUESTION, temperature=0, logit_bias={str(tokens[0]): -100})["choices"][0]["message"]["content"]
        self.assertFalse(text.startswith("17"), text)

    def test_json_object_and_schema(self):
        text = self.ask("Give me an object.", response_format={"type": "json_object"}, seed=1,
                        max_tokens=200)["choices"][0]["message"]["content"]
        self.assertTrue(text.startswith("{"), text)
        schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}},
                  "required": ["a", "b"], "additionalProperties": False}
        for seed in range(5):
            answer = self.ask("Give me an object.", seed=seed, response_format={
                "type": "json_schema", "json_schema": {"name": "ab", "schema": schema, "strict": True}})
            value = json.loads(answer["choices"][0]["message"]["content"])
            self.assertIsInstance(value["a"], int)
            self.assertIn(value["b"], ["x", "y"])

    def test_grammar(self):
        answer = self.ask(QUESTION, grammar='root ::= "yes" | "no"')
        self.assertIn(answer["choices"][0]["message"]["content"], ["yes", "no"])
        error = self.server.post("/v1/chat/completions", chat(QUESTION, grammar="root ::= ("), status=400)["error"]
        self.assertEqual(error["type"], "invalid_request_error")

    def test_tools(self):
        for choice in ["required", {"type": "function", "function": {"name": "weather"}}]:
            answer = self.ask("Weather in Oslo?", tools=[WEATHER], tool_choice=choice, seed=3)["choices"][0]
            self.assertEqual(answer["finish_reason"], "tool_calls")
            self.assertIsNone(answer["message"]["content"])
            call = answer["message"]["tool_calls"][0]
            self.assertEqual((call["type"], call["function"]["name"]), ("function", "weather"))
            self.assertIn(json.loads(call["function"]["arguments"])["city"], ["Oslo", "Rome"])
        history = [{"role": "user", "content": "Weather in Oslo?"},
                   {"role": "assistant", "content": None, "tool_calls": [call]},
                   {"role": "tool", "tool_call_id": call["id"], "content": "rain"}]
        answer = self.server.post("/v1/chat/completions", {"messages": history, "tools": [WEATHER], "max_tokens": 20})
        self.assertEqual(answer["choices"][0]["message"]["role"], "assistant")
        prompt = self.server.post("/apply-template", {"messages": history, "tools": [WEATHER]})["prompt"]
        self.assertIn("<tool_response>\nrain\n</tool_response>", prompt)

    def test_parameters_of_tools(self):
        def call(parameters, n_tools):
            tools = [{"type": "function", "function": {"name": f"f{i}", "parameters": parameters}} for i in range(n_tools)]
            message = self.ask(STORY, tools=tools, tool_choice="required", seed=1)["choices"][0]["message"]
            return json.loads(message["tool_calls"][0]["function"]["arguments"])

        # References begin at the parameters' root, wherever the server puts those; "$ref" in a constant is none.
        digit = {"type": "integer", "minimum": 0, "maximum": 9}
        parameters = {"type": "object", "$defs": {"digit": digit}, "required": ["a", "b", "default"], "properties": {
            "a": {"$ref": "#/$defs/digit"}, "b": {"const": {"$ref": "#"}}, "default": {"$ref": "#/$defs/digit"}}}
        for n_tools in (1, 3):
            value = call(parameters, n_tools)
            self.assertIn(value["a"], range(10))
            self.assertIn(value["default"], range(10))
            self.assertEqual(value["b"], {"$ref": "#"})
        tag = {"x": "</tool_call>"}  # within a text it ends nothing
        self.assertEqual(call({"const": tag}, 1), tag)

    def test_completions(self):
        expected = run("--raw", "-p", "The sea", "-s", "3", "-n", "20")
        body = {"prompt": "The sea", "seed": 3, "max_tokens": 20}
        answer = self.server.post("/v1/completions", body)
        self.assertEqual(answer["choices"][0]["text"], expected["text"])
        tokens = self.server.post("/tokenize", {"content": "The sea", "add_special": True})["tokens"]
        by_tokens = self.server.post("/v1/completions", {**body, "prompt": tokens})
        self.assertEqual(by_tokens["choices"][0]["text"], expected["text"])
        scored = self.server.post("/v1/completions", {**body, "logprobs": 2, "echo": True})["choices"][0]
        self.assertEqual(scored["text"], "The sea" + expected["text"])
        self.assertEqual(len(scored["logprobs"]["tokens"]), len(scored["logprobs"]["top_logprobs"]))

    def test_small_endpoints(self):
        self.assertEqual(self.server.get("/health"), {"status": "ok"})
        models = self.server.get("/v1/models")["data"]
        self.assertEqual(self.server.get("/v1/models/" + models[0]["id"])["id"], models[0]["id"])
        self.assertEqual(self.server.get("/v1/models/none", status=404)["error"]["code"], "model_not_found")
        self.assertTrue(self.server.get("/props")["has_chat_template"])
        tokens = self.server.post("/tokenize", {"content": "Hello sea"})["tokens"]
        self.assertEqual(self.server.post("/detokenize", {"tokens": tokens}), {"content": "Hello sea"})
        state = self.server.get("/api/sluice/state")
        self.assertEqual(state["map"]["layers"], state["model"]["n_layers"])
        self.assertGreater(serving.metric(self.server, "sluice_new_tokens_total"), -1)

    def test_wrong_requests(self):
        def error(body, path="/v1/chat/completions", status=400):
            return self.server.post(path, body, status=status)["error"]

        self.assertEqual(error(chat("a", temperature="x"))["param"], "temperature")
        self.assertEqual(error({})["param"], "messages")
        self.assertEqual(error(chat("word " * 9000))["code"], "context_length_exceeded")
        self.assertIn("no JSON", error("{")["message"])
        self.assertIn("UTF-8", error(b'{"a": "\xff"}')["message"])
        self.assertIn("deeper", error("[" * 100000)["message"])
        self.assertEqual(error({}, "/v1/nothing", 404)["type"], "not_found_error")
        self.assertIn("/v1/embeddings", error({}, "/v1/embeddings", 404)["message"])
        self.assertEqual(self.server.request("GET", "/v1/chat/completions")[0], 405)
        self.assertEqual(self.server.post("/detokenize", {"tokens": [999999999]}, status=400)["error"]["type"],
                         "invalid_request_error")


if __name__ == "__main__":
    serving.main()
