// OpenAI's own client for node, package `openai`, at /v1/chat/completions and what is around it. /v1/responses is in
// openai_responses_test.mjs. See sluice_server.mjs for the command line.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { judgeAnswers } from "./schemas.mjs";
import { ANSWER, CITY, ENDLESS, isCity, load, QUESTION, startServer, STORY, TOO_LONG, WILD } from "./sluice_server.mjs";

const { default: OpenAI, APIUserAbortError, AuthenticationError, BadRequestError, NotFoundError } = load("openai");
const { zodFunction, zodResponseFormat } = load("openai/helpers/zod");
const { z } = load("zod");

const WEATHER = { type: "function", function: { name: "weather", description: "Weather of a city", parameters: CITY } };
let server, client;

const clientOf = (at, apiKey = "any") => new OpenAI({ baseURL: `${at.url}/v1`, apiKey, maxRetries: 0 });
const body = (content, fields) => ({ model: "demo", messages: [{ role: "user", content }], ...fields });
const ask = (content, fields, how) => client.chat.completions.create(body(content, fields), how);
const textOf = (completion) => completion.choices[0].message.content;

before(async () => {
  server = await startServer();
  client = clientOf(server);
});
after(async () => assert.equal(await server.stop(), 0));

test("a chat is answered, and its usage adds up", async () => {
  const completion = await ask(QUESTION, { temperature: 0 });
  assert.equal(textOf(completion), ANSWER);
  assert.equal(completion.choices[0].finish_reason, "stop");
  const { prompt_tokens, completion_tokens, total_tokens } = completion.usage;
  assert.ok(prompt_tokens > 5 && completion_tokens > 5);
  assert.equal(total_tokens, prompt_tokens + completion_tokens);
  const cut = await ask(QUESTION, { temperature: 0, max_completion_tokens: 3 });
  assert.deepEqual([cut.choices[0].finish_reason, cut.usage.completion_tokens], ["length", 3]);
});

test("the pieces of a stream make the whole", async () => {
  const fields = { seed: 4, max_tokens: 60, ...WILD };
  const whole = await ask(STORY, fields);
  const stream = await ask(STORY, { ...fields, stream: true, stream_options: { include_usage: true } });
  const pieces = [];
  let usage, finish;
  for await (const chunk of stream) {
    if (chunk.choices[0]?.delta.content) pieces.push(chunk.choices[0].delta.content);
    finish = chunk.choices[0]?.finish_reason ?? finish;
    usage = chunk.usage ?? usage;
  }
  assert.ok(pieces.length > 1);
  assert.equal(pieces.join(""), textOf(whole));
  assert.equal(finish, whole.choices[0].finish_reason);
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
});

test("the client's own collector of streams agrees, several choices included", async () => {
  const fields = { seed: 4, n: 3, max_tokens: 30, logprobs: true, top_logprobs: 2, ...WILD };
  const whole = await ask(STORY, fields);
  const collected = await client.chat.completions.stream(body(STORY, fields)).finalChatCompletion();
  for (const [i, choice] of whole.choices.entries()) {
    assert.equal(collected.choices[i].message.content, choice.message.content);
    assert.deepEqual(collected.choices[i].logprobs.content, choice.logprobs.content);
  }
  assert.equal(new Set(whole.choices.map((choice) => choice.message.content)).size, 3);
});

test("thinking is apart from the answer", async () => {
  const completion = await ask(QUESTION, { temperature: 0, reasoning_effort: "high" });
  assert.match(completion.choices[0].message.reasoning_content, /\w/);
  assert.equal(textOf(completion), ANSWER);
});

test("a tool must be called", async () => {
  for (const tool_choice of ["required", { type: "function", function: { name: "weather" } }]) {
    const { message, finish_reason } = (await ask(STORY, { tools: [WEATHER], tool_choice, seed: 2 })).choices[0];
    assert.deepEqual([finish_reason, message.content, message.tool_calls.length], ["tool_calls", null, 1]);
    assert.equal(message.tool_calls[0].function.name, "weather");
    assert.ok(isCity(JSON.parse(message.tool_calls[0].function.arguments)));
  }
});

test("a call of a tool is streamed", async () => {
  const stream = client.chat.completions.stream(body(STORY, { tools: [WEATHER], tool_choice: "required", seed: 2 }));
  const done = [];
  stream.on("tool_calls.function.arguments.done", (call) => done.push(call));
  const { message, finish_reason } = (await stream.finalChatCompletion()).choices[0];
  assert.equal(finish_reason, "tool_calls");
  assert.ok(isCity(JSON.parse(message.tool_calls[0].function.arguments)));
  assert.deepEqual([done.length, done[0].name], [1, "weather"]);
});

test("tools of zod, whose schemas refer to parts of themselves", async () => {
  const Point = z.object({ x: z.int().min(0).max(9), y: z.int().min(0).max(9) }).meta({ id: "Point" });
  const Line = z.object({ from: Point, to: Point });
  const tools = [zodFunction({ name: "draw", parameters: Line }), zodFunction({ name: "erase", parameters: Line })];
  assert.match(JSON.stringify(tools), /"\$ref":"#/);
  for (const some of [tools.slice(0, 1), tools]) {
    const completion = await client.chat.completions.parse(
      body(STORY, { tools: some, tool_choice: "required", seed: 3 }),
    );
    const call = completion.choices[0].message.tool_calls[0].function;
    assert.deepEqual(Line.parse(JSON.parse(call.arguments)), call.parsed_arguments);
  }
});

test("an argument may hold the tag that ends a call", async () => {
  const parameters = { type: "object", properties: { text: { const: '"</tool_call>"' } }, required: ["text"] };
  const tools = [{ type: "function", function: { name: "write", parameters } }];
  const { message } = (await ask(STORY, { tools, tool_choice: "required" })).choices[0];
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { text: '"</tool_call>"' });
});

test("a tool is run, and its result sent back", async () => {
  const seen = [];
  const tool = { ...WEATHER.function, parse: JSON.parse, function: (city) => seen.push(city) && "rain" };
  const fields = { tools: [{ type: "function", function: tool }], tool_choice: "required", seed: 2 };
  const runner = client.chat.completions.runTools(body(STORY, fields), { maxChatCompletions: 2 });
  await runner.done().catch(() => {}); // the model would call for ever
  assert.ok(seen.length >= 1 && seen.every(isCity), JSON.stringify(seen));
  assert.deepEqual(
    runner.messages.slice(0, 3).map((message) => message.role),
    ["user", "assistant", "tool"],
  );
});

test("100 of 100 answers follow their schema", async () => {
  await judgeAnswers(async (name, schema, seed) => {
    const response_format = { type: "json_schema", json_schema: { name, schema, strict: true } };
    const completion = await ask("Answer as JSON.", { response_format, seed, temperature: 1.5 });
    assert.equal(completion.choices[0].finish_reason, "stop");
    return textOf(completion);
  });
});

test("a schema of zod is parsed, streamed too", async () => {
  const Person = z.object({
    name: z.string().max(20),
    age: z.int().min(0).max(150),
    pet: z.enum(["cat", "dog"]).nullable(),
  });
  const request = body("Who?", { response_format: zodResponseFormat(Person, "person"), seed: 1, temperature: 1.5 });
  const whole = await client.chat.completions.parse(request);
  assert.deepEqual(Person.parse(whole.choices[0].message.parsed), whole.choices[0].message.parsed);
  const streamed = await client.chat.completions.stream(request).finalChatCompletion();
  assert.deepEqual(streamed.choices[0].message.parsed, whole.choices[0].message.parsed);
});

test("a wrong field is a BadRequestError that names it", async () => {
  await assert.rejects(ask(QUESTION, { temperature: "hot" }), (error) => {
    assert.ok(error instanceof BadRequestError, error);
    assert.equal(error.param, "temperature");
    assert.match(error.message, /'temperature' is the text "hot"; expected a number/);
    return true;
  });
  await assert.rejects(ask(QUESTION, { stream: true, messages: [{ role: "pope", content: "x" }] }), (error) => {
    assert.ok(error instanceof BadRequestError, error);
    assert.equal(error.param, "messages[0].role");
    return true;
  });
});

test("a prompt that is too long is a BadRequestError", async () => {
  await assert.rejects(ask(TOO_LONG), (error) => {
    assert.ok(error instanceof BadRequestError, error);
    assert.equal(error.code, "context_length_exceeded");
    return true;
  });
});

test("a wrong key is an AuthenticationError, the right one is not", async () => {
  const locked = await startServer("--api-key", "open sesame");
  try {
    const refused = clientOf(locked, "wrong").chat.completions.create(body(QUESTION));
    await assert.rejects(refused, (error) => {
      assert.ok(error instanceof AuthenticationError, error);
      assert.equal(error.code, "invalid_api_key");
      return true;
    });
    assert.ok(textOf(await clientOf(locked, "open sesame").chat.completions.create(body(QUESTION))));
  } finally {
    await locked.stop();
  }
});

test("embeddings are refused", async () => {
  await assert.rejects(client.embeddings.create({ model: "demo", input: "x" }), (error) => {
    assert.ok(error instanceof NotFoundError, error);
    assert.match(error.message, /nothing at \/v1\/embeddings/);
    return true;
  });
});

test("the model is listed and found by its name", async () => {
  const models = await client.models.list();
  assert.equal(models.data.length, 1);
  assert.equal((await client.models.retrieve(models.data[0].id)).id, models.data[0].id);
  await assert.rejects(client.models.retrieve("none"), NotFoundError);
});

test("a stream that is aborted is computed no further", async () => {
  await server.expectCancel(async () => {
    const stream = await ask(STORY, { ...ENDLESS, stream: true });
    for await (const chunk of stream) {
      if (chunk.choices[0]?.delta.content) break; // the client aborts
    }
    assert.ok(stream.controller.signal.aborted);
  });
  await server.expectCancel(async () => {
    const stream = client.chat.completions.stream(body(STORY, ENDLESS));
    stream.once("content", () => stream.abort());
    await assert.rejects(stream.done(), APIUserAbortError);
  });
});

test("a whole answer that is aborted is computed no further", async () => {
  await server.expectCancel(async () => {
    const controller = new AbortController();
    const refused = assert.rejects(ask(STORY, ENDLESS, { signal: controller.signal }), APIUserAbortError);
    await server.waitForRunning(1);
    controller.abort();
    await refused;
  });
});

test("stop ends the answer, and a seed repeats it", async () => {
  const stopped = await ask(QUESTION, { temperature: 0, stop: ["= 4"] });
  assert.deepEqual([textOf(stopped), stopped.choices[0].finish_reason], ["17 + 25 ", "stop"]);
  const fields = { max_tokens: 40, ...WILD };
  const [first, again, other] = await Promise.all([7, 7, 8].map((seed) => ask(STORY, { ...fields, seed })));
  assert.equal(textOf(again), textOf(first));
  assert.notEqual(textOf(other), textOf(first));
});

test("several choices have the seeds that follow", async () => {
  const { choices, usage } = await ask(STORY, { n: 3, seed: 5, max_tokens: 20, ...WILD });
  assert.deepEqual(
    choices.map((choice) => choice.index),
    [0, 1, 2],
  );
  const alone = await ask(STORY, { seed: 6, max_tokens: 20, ...WILD });
  assert.equal(choices[1].message.content, textOf(alone));
  assert.ok(usage.completion_tokens > alone.usage.completion_tokens);
});

test("log-probabilities come with the tokens", async () => {
  const completion = await ask(QUESTION, { temperature: 0, logprobs: true, top_logprobs: 3 });
  const entries = completion.choices[0].logprobs.content;
  assert.equal(entries.map((entry) => entry.token).join(""), ANSWER);
  for (const entry of entries) {
    assert.equal(entry.top_logprobs.length, 3);
    assert.equal(entry.top_logprobs[0].token, entry.token);
    assert.ok(entry.logprob <= 0);
  }
});

test("a text is continued, streamed too", async () => {
  const request = { model: "demo", prompt: "One day", seed: 3, max_tokens: 20 };
  const whole = await client.completions.create(request);
  let text = "";
  for await (const chunk of await client.completions.create({ ...request, stream: true }))
    text += chunk.choices[0].text;
  assert.ok(text.length > 0);
  assert.equal(text, whole.choices[0].text);
});
