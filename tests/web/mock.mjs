// A server that speaks what the page asks of sluice serve, without a model: for the browser test, for screenshots, and to
// work on the page. It serves the bundle with the policy that the program sends.
//
//   node tests/web/mock.mjs DIST [--port N] [--delay MS] [--cpu] [--key KEY] [--api URL: of a real server, for all but the page]
// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from "node:fs";
import { createServer, request as ask } from "node:http";
import { dirname, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { answerTo, MockModel, tokensOf } from "./mock_model.mjs";

const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2", ".txt": "text/plain" };
const csp = readFileSync(join(dirname(fileURLToPath(import.meta.url)), "..", "..", "web", "csp.txt"), "utf8").trim();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function servePage(dist, path, response) {
  const name = path === "/" ? "/index.html" : path;
  try {
    const bytes = readFileSync(join(dist, name.replaceAll("..", "")));
    response.writeHead(200, { "content-type": TYPES[extname(name)] ?? "application/octet-stream", "content-security-policy": csp });
    response.end(bytes);
  } catch {
    fail(response, 404, "there is nothing here");
  }
}

function fail(response, status, message) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error: { message, type: "invalid_request_error" } }));
}

async function bodyOf(request) {
  let text = "";
  for await (const piece of request) text += piece;
  return JSON.parse(text);
}

async function complete(mock, request, response) {
  const body = await bodyOf(request);
  mock.requests.push(body);
  const { text, reasoning } = answerTo(body.messages);
  response.writeHead(200, { "content-type": "text/event-stream" });
  const put = (chunk) => response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  const { model } = mock;
  model.running += 1;
  let n = 0;
  for (const [field, content] of [["reasoning_content", reasoning ?? ""], ["content", text]]) {
    for (const token of tokensOf(content)) {
      if (request.socket.destroyed) break;
      model.step();
      model.rate = 30 + 8 * Math.sin(n / 15) + 2 * model.random();
      put({ choices: [{ index: 0, delta: { [field]: token }, finish_reason: null }] });
      n += 1;
      if (n === body.max_tokens) break;
      await sleep(mock.delay);
    }
  }
  model.running -= 1;
  model.rate = 0;
  model.arrive();
  mock.cancelled += request.socket.destroyed ? 1 : 0;
  put({ choices: [{ index: 0, delta: {}, finish_reason: n === body.max_tokens ? "length" : "stop" }] });
  put({ choices: [], usage: { prompt_tokens: 12, completion_tokens: n } });
  response.end("data: [DONE]\n\n");
}

async function live(mock, request, response) {
  response.writeHead(200, { "content-type": "text/event-stream" });
  while (!request.socket.destroyed) {
    response.write(`data: ${JSON.stringify(mock.model.state())}\n\n`);
    await sleep(mock.model.running > 0 ? 250 : 1000);
  }
}

/** One event after the other, however fast the machine is. */
async function pace(mock, answer, response) {
  let rest = "";
  for await (const piece of answer.setEncoding("utf8")) {
    const events = (rest + piece).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      response.write(`${event}\n\n`);
      await sleep(mock.delay);
    }
  }
  response.end(rest);
}

function pass(mock, request, response) {
  const { method, headers } = request;
  const onward = ask(new URL(request.url, mock.api), { method, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    if (request.url.endsWith("/chat/completions")) pace(mock, answer, response).catch(() => response.destroy());
    else answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
}

function route(mock, request, response) {
  const { pathname } = new URL(request.url, "http://mock");
  const needsKey = pathname.startsWith("/v1/") || pathname.startsWith("/api/");
  if (mock.api && (needsKey || !mock.dist)) return pass(mock, request, response);
  if (needsKey && mock.key && request.headers.authorization !== `Bearer ${mock.key}`) return fail(response, 401, "an API key is needed");
  if (pathname === "/v1/chat/completions") return void complete(mock, request, response);
  if (pathname === "/api/sluice/live") return void live(mock, request, response);
  if (pathname === "/api/sluice/state") {
    response.writeHead(200, { "content-type": "application/json" });
    return void response.end(JSON.stringify(mock.model.state()));
  }
  servePage(mock.dist, pathname, response);
}

/** With api and without dist all comes from there, answers at the mock's pace. { url, requests (bodies so far), cancelled (answers that were cut off), delay, close() } */
export async function startMock({ dist, port = 0, delay = 20, cpu = false, key = "", api = "" }) {
  const model = new MockModel(cpu ? { layers: 6, experts: 16, slots: 0, used: 2, device: "CPU" } : { device: "RTX 4070 Ti, 12 GiB" });
  const mock = { dist, delay, key, api, model, requests: [], cancelled: 0 };
  const server = createServer((request, response) => route(mock, request, response));
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  mock.url = `http://127.0.0.1:${server.address().port}/`;
  mock.close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return mock;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { port: { type: "string", default: "8081" }, delay: { type: "string", default: "25" }, cpu: { type: "boolean" }, key: { type: "string" }, api: { type: "string" } },
  });
  const mock = await startMock({ dist: positionals[0], port: Number(values.port), delay: Number(values.delay), cpu: values.cpu, key: values.key, api: values.api });
  console.log(mock.url);
}
