// Vercel's package `ai`, with the two providers that reach such a server: `@ai-sdk/openai-compatible`, and
// `@ai-sdk/openai`, which speaks both of OpenAI's chats. See sluice_server.mjs for the command line.
// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { judgeAnswers } from "./schemas.mjs";
import { ANSWER, CITY, ENDLESS, isCity, load, QUESTION, startServer, STORY, TOO_LONG, WILD } from "./sluice_server.mjs";

const { APICallError, embed, generateText, isStepCount, jsonSchema, Output, streamText, tool } = load("ai");
const { createOpenAI } = load("@ai-sdk/openai");
const { createOpenAICompatible } = load("@ai-sdk/openai-compatible");
const { z } = load("zod");

globalThis.AI_SDK_LOG_WARNINGS = false; // that OpenAI's newer chat has no seed
const WEATHER = { description: "Weather of a city", inputSchema: jsonSchema(CITY) };
const MUST_CALL = { tools: { weather: tool(WEATHER) }, toolChoice: "required", seed: 2 };
const EXACT = { temperature: 0 };
const WAYS = ["openai-compatible", "openai, chat", "openai, responses"];
let server, models;

function modelsOf(at, apiKey = "any") {
  const baseURL = `${at.url}/v1`;
  const compatible = createOpenAICompatible({
    name: "sluice",
    baseURL,
    apiKey,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  const openai = createOpenAI({ baseURL, apiKey });
  return {
    "openai-compatible": compatible("demo"),
    "openai, chat": openai.chat("demo"),
    "openai, responses": openai.responses("demo"),
    embedding: compatible.embeddingModel("demo"),
  };
}
const call = (way, prompt, fields) => ({ model: models[way], prompt, maxRetries: 0, ...fields });
const ask = (way, prompt, fields) => generateText(call(way, prompt, fields));

/** All parts of a stream; throws the error of one that failed. */
async function partsOf(stream) {
  const parts = [];
  for await (const part of stream.stream) {
    if (part.type === "error") throw part.error;
    parts.push(part);
  }
  return parts;
}

const isCallError = (statusCode, message) => (error) => {
  assert.ok(APICallError.isInstance(error), error);
  assert.equal(error.statusCode, statusCode);
  assert.match(error.message, message);
  return true;
};

before(async () => {
  server = await startServer();
  models = modelsOf(server);
});
after(async () => assert.equal(await server.stop(), 0));

for (const way of WAYS) {
  test(`${way}: a chat is answered, and its usage adds up`, async () => {
    const { text, finishReason, usage } = await ask(way, QUESTION, EXACT);
    assert.deepEqual([text, finishReason], [ANSWER, "stop"]);
    assert.ok(usage.inputTokens > 5 && usage.outputTokens > 5);
    assert.equal(usage.totalTokens, usage.inputTokens + usage.outputTokens);
    assert.equal((await ask(way, QUESTION, { ...EXACT, maxOutputTokens: 3 })).finishReason, "length");
  });

  test(`${way}: the pieces of a stream make the whole`, async () => {
    const whole = await ask(way, QUESTION, EXACT);
    const stream = streamText(call(way, QUESTION, EXACT));
    const pieces = [];
    for await (const piece of stream.textStream) pieces.push(piece);
    assert.ok(pieces.length > 5);
    assert.equal(pieces.join(""), whole.text);
    assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
    assert.equal(await stream.finishReason, "stop");
  });

  test(`${way}: a tool must be called, in a stream too`, async () => {
    const whole = await ask(way, STORY, MUST_CALL);
    const stream = streamText(call(way, STORY, { ...MUST_CALL, toolChoice: { type: "tool", toolName: "weather" } }));
    const streamed = (await partsOf(stream)).filter((part) => part.type === "tool-call");
    for (const calls of [whole.toolCalls, streamed]) {
      assert.deepEqual(
        calls.map((one) => one.toolName),
        ["weather"],
      );
      assert.ok(isCity(calls[0].input));
    }
    assert.deepEqual([whole.finishReason, await stream.finishReason], ["tool-calls", "tool-calls"]);
  });

  test(`${way}: a tool is run, and its result sent back`, async () => {
    const weather = tool({ ...WEATHER, execute: async () => "rain" });
    const { steps } = await ask(way, STORY, { ...MUST_CALL, tools: { weather }, stopWhen: isStepCount(2) });
    assert.deepEqual(
      steps.map((step) => step.toolResults[0].output),
      ["rain", "rain"],
    );
    assert.ok(steps[1].usage.inputTokens > steps[0].usage.inputTokens);
  });

  test(`${way}: a schema of zod is parsed, streamed too`, async () => {
    const Point = z.object({ x: z.int().min(0).max(9), y: z.int().min(0).max(9) }).meta({ id: "Point" });
    const schema = z.object({ from: Point, to: Point, name: z.string().max(20) });
    const fields = { output: Output.object({ schema }), ...EXACT };
    const whole = await ask(way, "Answer as JSON.", fields);
    assert.deepEqual(schema.parse(whole.output), whole.output);
    assert.deepEqual(await streamText(call(way, "Answer as JSON.", fields)).output, whole.output);
  });

  test(`${way}: wrong fields and prompts that are too long are APICallErrors`, async () => {
    await assert.rejects(
      ask(way, QUESTION, { temperature: "hot" }),
      isCallError(400, /'temperature' is the text "hot"/),
    );
    await assert.rejects(ask(way, TOO_LONG), isCallError(400, /tokens and the context holds/));
    const stream = streamText(call(way, TOO_LONG, { onError: () => {} }));
    await assert.rejects(partsOf(stream), isCallError(400, /tokens and the context holds/));
  });
}

test("a conversation goes on; where the server would have to keep it, it says so", async () => {
  for (const way of WAYS) {
    const goOn = async (providerOptions) => {
      const { text, response } = await ask(way, QUESTION, { ...EXACT, providerOptions });
      const messages = [
        { role: "user", content: QUESTION },
        ...response.messages,
        { role: "user", content: "What is 3 + 4?" },
      ];
      assert.equal(text, ANSWER);
      return (await generateText({ model: models[way], messages, maxRetries: 0, ...EXACT, providerOptions })).text;
    };
    assert.equal(await goOn({ openai: { store: false } }), "3 + 4 = 7.");
    if (way === "openai, responses") await assert.rejects(goOn({}), isCallError(400, /'store' false/));
  }
});

test("a wrong key is an APICallError with status 401, the right one is not", async () => {
  const locked = await startServer("--api-key", "open sesame");
  try {
    for (const way of WAYS) {
      await assert.rejects(ask(way, QUESTION, { model: modelsOf(locked, "wrong")[way] }), isCallError(401, /API key/));
      assert.ok((await ask(way, QUESTION, { model: modelsOf(locked, "open sesame")[way] })).text);
    }
  } finally {
    await locked.stop();
  }
});

test("100 of 100 answers follow their schema", async () => {
  await judgeAnswers(async (name, schema, seed) => {
    const way = WAYS[seed % 2]; // the third takes no seed
    const output = Output.object({ name, schema: jsonSchema(schema) });
    const result = await ask(way, "Answer as JSON.", { output, seed, temperature: 1.5 });
    assert.equal(result.finishReason, "stop");
    return result.output;
  });
});

test("a stream that is aborted is computed no further", async () => {
  await server.expectCancel(async () => {
    const controller = new AbortController();
    const fields = { abortSignal: controller.signal, providerOptions: { sluice: ENDLESS } };
    const types = [];
    for await (const part of streamText(call("openai-compatible", STORY, fields)).stream) {
      if (part.type === "text-delta") controller.abort();
      types.push(part.type);
    }
    assert.equal(types.at(-1), "abort");
  });
});

test("thinking is apart from the answer", async () => {
  const stream = streamText(
    call(WAYS[0], QUESTION, { ...EXACT, providerOptions: { sluice: { reasoningEffort: "high" } } }),
  );
  const types = new Set((await partsOf(stream)).map((part) => part.type));
  assert.ok(types.has("reasoning-delta"));
  assert.match(await stream.reasoningText, /\w/);
  assert.equal(await stream.text, ANSWER);
});

test("stop sequences end the answer, and a seed repeats it", async () => {
  const way = "openai-compatible";
  assert.equal((await ask(way, QUESTION, { ...EXACT, stopSequences: ["= 4"] })).text, "17 + 25 ");
  const { temperature, top_p: topP } = WILD;
  const fields = { temperature, topP, maxOutputTokens: 40 };
  const [first, again, other] = await Promise.all([7, 7, 8].map((seed) => ask(way, STORY, { ...fields, seed })));
  assert.equal(again.text, first.text);
  assert.notEqual(other.text, first.text);
});

test("log-probabilities come with the tokens", async () => {
  const result = await ask("openai, chat", QUESTION, { ...EXACT, providerOptions: { openai: { logprobs: 3 } } });
  const entries = result.providerMetadata.openai.logprobs;
  assert.equal(entries.map((entry) => entry.token).join(""), ANSWER);
  assert.ok(entries.every((entry) => entry.top_logprobs.length === 3 && entry.logprob <= 0));
});

test("embeddings are refused", async () => {
  const refused = embed({ model: models.embedding, value: "x", maxRetries: 0 });
  await assert.rejects(refused, isCallError(404, /nothing at \/v1\/embeddings/));
});
