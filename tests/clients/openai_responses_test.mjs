// OpenAI's own client for node, package `openai`, at /v1/responses. See sluice_server.mjs for the command line.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ANSWER, CITY, ENDLESS, isCity, load, QUESTION, startServer, STORY, TOO_LONG, WILD } from "./sluice_server.mjs";

const { default: OpenAI, BadRequestError } = load("openai");
const { zodTextFormat } = load("openai/helpers/zod");
const { z } = load("zod");

const WEATHER = { type: "function", name: "weather", description: "Weather of a city", parameters: CITY, strict: true };
let server, client;

const body = (input, fields) => ({ model: "demo", input, ...fields });

before(async () => {
  server = await startServer();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "any", maxRetries: 0 });
});
after(async () => assert.equal(await server.stop(), 0));

test("a question is answered, and its usage adds up", async () => {
  const response = await client.responses.create(body(QUESTION, { temperature: 0 }));
  assert.deepEqual([response.status, response.output_text], ["completed", ANSWER]);
  const { input_tokens, output_tokens, total_tokens } = response.usage;
  assert.ok(input_tokens > 5 && output_tokens > 5);
  assert.equal(total_tokens, input_tokens + output_tokens);
  const cut = await client.responses.create(body(QUESTION, { max_output_tokens: 3 }));
  assert.deepEqual([cut.status, cut.incomplete_details.reason], ["incomplete", "max_output_tokens"]);
});

test("the pieces of a stream make the whole", async () => {
  const fields = { seed: 4, max_output_tokens: 60, ...WILD };
  const whole = await client.responses.create(body(STORY, fields));
  let text = "";
  let last;
  for await (const event of await client.responses.create(body(STORY, { ...fields, stream: true }))) {
    if (event.type === "response.output_text.delta") text += event.delta;
    last = event;
  }
  assert.ok(text.length > 0);
  assert.equal(text, whole.output_text);
  assert.deepEqual(last.response.usage.output_tokens, whole.usage.output_tokens);
});

test("the client's own collector of streams agrees, thinking included", async () => {
  const request = body(QUESTION, { temperature: 0, reasoning: { effort: "high" } });
  const whole = await client.responses.create(request);
  const collected = await client.responses.stream(request).finalResponse();
  assert.equal(collected.output_text, whole.output_text);
  assert.deepEqual(
    whole.output.map((item) => item.type),
    ["reasoning", "message"],
  );
  assert.equal(collected.output[0].content[0].text, whole.output[0].content[0].text);
});

test("a tool must be called, in a stream too, and its result is taken", async () => {
  const request = body(STORY, { tools: [WEATHER], tool_choice: "required", seed: 2 });
  const whole = await client.responses.create(request);
  const streamed = await client.responses.stream(request).finalResponse();
  for (const response of [whole, streamed]) {
    assert.deepEqual(
      response.output.map((item) => [item.type, item.name]),
      [["function_call", "weather"]],
    );
    assert.ok(isCity(JSON.parse(response.output[0].arguments)));
  }
  const result = { type: "function_call_output", call_id: whole.output[0].call_id, output: "rain" };
  const input = [{ role: "user", content: STORY }, ...whole.output, result];
  const next = await client.responses.create({ ...request, input, tool_choice: "auto", max_output_tokens: 20 });
  assert.ok(next.usage.input_tokens > whole.usage.input_tokens);
});

test("a schema of zod is parsed, streamed too", async () => {
  const Person = z.object({ name: z.string().max(20), age: z.int().min(0).max(150) });
  const request = body("Who?", { text: { format: zodTextFormat(Person, "person") }, seed: 1, temperature: 1.5 });
  const whole = await client.responses.parse(request);
  assert.deepEqual(Person.parse(whole.output_parsed), whole.output_parsed);
  const streamed = await client.responses.stream(request).finalResponse();
  assert.deepEqual(streamed.output_parsed, whole.output_parsed);
});

test("wrong fields and prompts that are too long are BadRequestErrors", async () => {
  const wrong = [
    [{ temperature: "hot" }, "temperature"],
    [{ previous_response_id: "resp_1" }, "previous_response_id"],
    [{ stream: true, input: 7 }, "input"],
  ];
  for (const [fields, param] of wrong) {
    await assert.rejects(client.responses.create(body(QUESTION, fields)), (error) => {
      assert.ok(error instanceof BadRequestError, error);
      assert.equal(error.param, param);
      return true;
    });
  }
  await assert.rejects(client.responses.create(body(TOO_LONG)), { code: "context_length_exceeded", status: 400 });
});

test("a stream that is aborted is computed no further", async () => {
  await server.expectCancel(async () => {
    for await (const event of await client.responses.create(body(STORY, { ...ENDLESS, stream: true }))) {
      if (event.type === "response.output_text.delta") break; // the client aborts
    }
  });
});
