// Anthropic's own client for node, package `@anthropic-ai/sdk`, at /v1/messages. Its types have no field for a seed; it
// sends the one that it is given all the same. See sluice_server.mjs for the command line.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { judgeAnswers } from "./schemas.mjs";
import { ANSWER, CITY, ENDLESS, isCity, load, QUESTION, startServer, STORY, TOO_LONG, WILD } from "./sluice_server.mjs";

const {
  default: Anthropic,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  NotFoundError,
} = load("@anthropic-ai/sdk");
const { betaZodTool } = load("@anthropic-ai/sdk/helpers/beta/zod");
const { zodOutputFormat } = load("@anthropic-ai/sdk/helpers/zod");
const { z } = load("zod");

const WEATHER = { name: "weather", description: "Weather of a city", input_schema: CITY };
const MUST_CALL = { tools: [WEATHER], tool_choice: { type: "any" }, seed: 2 };
let server, client;

const clientOf = (at, apiKey = "any") => new Anthropic({ baseURL: at.url, apiKey, maxRetries: 0 });
const body = (content, fields) => ({
  model: "demo",
  max_tokens: 1000,
  messages: [{ role: "user", content }],
  ...fields,
});
const ask = (content, fields, how) => client.messages.create(body(content, fields), how);
const textOf = (message) => message.content.map((block) => block.text ?? "").join("");
const promptTokens = (usage) => usage.input_tokens + usage.cache_read_input_tokens;

before(async () => {
  server = await startServer();
  client = clientOf(server);
});
after(async () => assert.equal(await server.stop(), 0));

test("a chat is answered, and its usage is what was counted before", async () => {
  const message = await ask(QUESTION, { temperature: 0 });
  assert.deepEqual(message.content, [{ type: "text", text: ANSWER }]);
  assert.equal(message.stop_reason, "end_turn");
  const { messages, model } = body(QUESTION);
  const counted = await client.messages.countTokens({ model, messages });
  assert.equal(promptTokens(message.usage), counted.input_tokens);
  const cut = await ask(QUESTION, { max_tokens: 3 });
  assert.deepEqual([cut.stop_reason, cut.usage.output_tokens], ["max_tokens", 3]);
});

test("a system prompt and blocks are counted", async () => {
  const [without, with_system] = await Promise.all(
    [{}, { system: [{ type: "text", text: "Be kind.", cache_control: { type: "ephemeral" } }] }].map((fields) =>
      client.messages.countTokens({
        model: "demo",
        messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
        ...fields,
      }),
    ),
  );
  assert.ok(with_system.input_tokens > without.input_tokens);
});

test("the pieces of a stream make the whole, and the sums are the same", async () => {
  const fields = { seed: 4, max_tokens: 60, ...WILD };
  await ask(STORY, fields); // so that both find the prompt computed before
  const whole = await ask(STORY, fields);
  const pieces = [];
  for await (const event of await ask(STORY, { ...fields, stream: true })) {
    if (event.type === "content_block_delta") pieces.push(event.delta.text);
  }
  assert.ok(pieces.length > 1);
  assert.equal(pieces.join(""), textOf(whole));
  const collected = await client.messages.stream(body(STORY, fields)).finalMessage();
  assert.equal(textOf(collected), textOf(whole));
  assert.equal(collected.stop_reason, whole.stop_reason);
  assert.deepEqual(collected.usage, whole.usage);
});

test("thinking is a block of its own", async () => {
  const stream = client.messages.stream(
    body(QUESTION, { temperature: 0, thinking: { type: "enabled", budget_tokens: 1024 } }),
  );
  const message = await stream.finalMessage();
  assert.deepEqual(
    message.content.map((block) => block.type),
    ["thinking", "text"],
  );
  assert.match(message.content[0].thinking, /\w/);
  assert.equal(textOf(message), ANSWER);
});

test("a tool must be called", async () => {
  for (const tool_choice of [{ type: "any" }, { type: "tool", name: "weather" }]) {
    const message = await ask(STORY, { ...MUST_CALL, tool_choice });
    assert.equal(message.stop_reason, "tool_use");
    assert.deepEqual(
      message.content.map((block) => [block.type, block.name]),
      [["tool_use", "weather"]],
    );
    assert.ok(isCity(message.content[0].input));
  }
});

test("a call of a tool is streamed, and its result taken", async () => {
  const stream = client.messages.stream(body(STORY, MUST_CALL));
  const pieces = [];
  stream.on("inputJson", (piece) => pieces.push(piece));
  const message = await stream.finalMessage();
  assert.equal(message.stop_reason, "tool_use");
  const use = message.content[0];
  assert.deepEqual(JSON.parse(pieces.join("")), use.input);
  assert.ok(isCity(use.input));
  const result = { type: "tool_result", tool_use_id: use.id, content: "rain" };
  const messages = [
    { role: "user", content: STORY },
    { role: "assistant", content: [use] },
    { role: "user", content: [result] },
  ];
  const next = await ask(STORY, { tools: [WEATHER], messages, max_tokens: 20 });
  assert.ok(promptTokens(next.usage) > promptTokens(message.usage));
});

test("a tool is run, and its result sent back", async () => {
  // The client first asks for a thread, which this server does not keep, and then sends the whole conversation.
  const seen = [];
  const add = {
    name: "add",
    description: "Adds",
    inputSchema: z.object({ a: z.int().min(0).max(9), b: z.int().min(0).max(9) }),
  };
  const tools = [betaZodTool({ ...add, run: async (input) => String(seen.push(input)) })];
  const runner = client.beta.messages.toolRunner(
    body(STORY, { tools, tool_choice: { type: "any" }, seed: 2, max_iterations: 2 }),
  );
  const prompts = [];
  for await (const message of runner) prompts.push(promptTokens(message.usage));
  assert.ok(seen.length >= 1 && seen.every((input) => add.inputSchema.safeParse(input).success), JSON.stringify(seen));
  assert.ok(prompts.length === 2 && prompts[1] > prompts[0], prompts.join());
});

test("a thread is refused", async () => {
  const thread = client.beta.messages.thread({ model: "demo", max_tokens: 5 });
  await assert.rejects(thread.send({ role: "user", content: QUESTION }), (error) => {
    assert.ok(error instanceof BadRequestError, error);
    assert.match(error.message, /send the whole conversation/);
    return true;
  });
});

test("100 of 100 inputs of a tool follow its schema", async () => {
  await judgeAnswers(async (name, input_schema, seed) => {
    const tool_choice = { type: "tool", name };
    const message = await ask("Answer as JSON.", {
      tools: [{ name, input_schema }],
      tool_choice,
      seed,
      temperature: 1,
    });
    assert.equal(message.stop_reason, "tool_use", JSON.stringify(message.content));
    return message.content[0].input;
  });
});

test("a schema of zod is parsed, streamed too", async () => {
  const Person = z.object({ pet: z.enum(["cat", "dog"]), is_old: z.boolean() });
  const request = body("Who?", { output_config: { format: zodOutputFormat(Person) }, seed: 1, temperature: 0 });
  const whole = await client.messages.parse(request);
  assert.deepEqual(Person.parse(whole.parsed_output), whole.parsed_output);
  const streamed = await client.messages.stream(request).finalMessage();
  assert.deepEqual(streamed.parsed_output, whole.parsed_output);
});

test("a wrong field is a BadRequestError that names it", async () => {
  const wrong = [
    [{ temperature: "hot" }, /'temperature' is the text \\"hot\\"; expected a number/],
    [{ stream: true, max_tokens: 0 }, /'max_tokens' is the number 0/],
    [{ output_config: { format: { type: "xml" } } }, /'output_config.format.type' is the text \\"xml\\"/],
  ];
  for (const [fields, expected] of wrong) {
    await assert.rejects(ask(QUESTION, fields), (error) => {
      assert.ok(error instanceof BadRequestError, error);
      assert.equal(error.type, "invalid_request_error");
      assert.match(error.message, expected);
      return true;
    });
  }
});

test("a prompt that is too long is a BadRequestError", async () => {
  await assert.rejects(ask(TOO_LONG), (error) => {
    assert.ok(error instanceof BadRequestError, error);
    assert.match(error.message, /tokens and the context holds/);
    return true;
  });
});

test("a wrong key is an AuthenticationError, the right one is not", async () => {
  const locked = await startServer("--api-key", "open sesame");
  try {
    await assert.rejects(clientOf(locked, "wrong").messages.create(body(QUESTION)), AuthenticationError);
    assert.ok(textOf(await clientOf(locked, "open sesame").messages.create(body(QUESTION))));
  } finally {
    await locked.stop();
  }
});

test("the model is listed and found by its name; batches are refused", async () => {
  const models = await client.models.list();
  assert.equal(models.data.length, 1);
  assert.equal((await client.models.retrieve(models.data[0].id)).id, models.data[0].id);
  await assert.rejects(client.models.retrieve("none"), NotFoundError);
  await assert.rejects(client.messages.batches.create({ requests: [] }), NotFoundError);
});

test("a stream that is aborted is computed no further", async () => {
  await server.expectCancel(async () => {
    const stream = await ask(STORY, { ...ENDLESS, max_tokens: 1e6, stream: true });
    for await (const event of stream) {
      if (event.type === "content_block_delta") break; // the client aborts
    }
    assert.ok(stream.controller.signal.aborted);
  });
  await server.expectCancel(async () => {
    const stream = client.messages.stream(body(STORY, { ...ENDLESS, max_tokens: 1e6 }));
    stream.once("text", () => stream.abort());
    await assert.rejects(stream.done(), APIUserAbortError);
  });
});

test("stop sequences end the answer, and a seed repeats it", async () => {
  const stopped = await ask(QUESTION, { temperature: 0, stop_sequences: ["zzz", "= 4"] });
  assert.deepEqual([textOf(stopped), stopped.stop_reason, stopped.stop_sequence], ["17 + 25 ", "stop_sequence", "= 4"]);
  const fields = { max_tokens: 40, ...WILD };
  const [first, again, other] = await Promise.all([7, 7, 8].map((seed) => ask(STORY, { ...fields, seed })));
  assert.equal(textOf(again), textOf(first));
  assert.notEqual(textOf(other), textOf(first));
});
