// sluice against llama.cpp (through node-llama-cpp, on the CPU): the same GGUF, the same threads, the
// two alternating in one run, each time in a new process. Prints medians and ratios.
//
//   build/release/parity/oracle/node bench/vs_llama.mjs [--sluice PATH] [--work DIR] [--oracle DIR]
//       [--models NAME,...] [--threads N] [--repeats N] [--prefill N,...] [--decode N]
//       [--quick] [--json]
//
// Missing models are written by `sluice synth` into --work (build/bench/models), a missing oracle is
// brought by tests/parity/install.sh. See README.md for what is measured.
// SPDX-License-Identifier: Apache-2.0
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);

// Flags of `sluice synth`; all in Q4_K_M. Layers are few, so that every file stays below 4 GB.
const kModels = {
  qwen3moe:
    "--arch qwen3moe --layers 8 --d-model 2048 --heads 32 --kv-heads 4 --head-dim 128 " +
    "--experts 64 --experts-used 8 --d-ff 768 --vocab 32000",
  mixtral:
    "--arch llama --layers 3 --d-model 4096 --heads 32 --kv-heads 8 --head-dim 128 " +
    "--experts 8 --experts-used 2 --d-ff 14336 --vocab 32000",
  olmoe:
    "--arch olmoe --layers 8 --d-model 2048 --heads 16 --kv-heads 16 --head-dim 128 " +
    "--experts 64 --experts-used 8 --d-ff 1024 --vocab 50304",
  qwen35moe:
    "--arch qwen35moe --layers 8 --d-model 2048 --heads 16 --kv-heads 2 --head-dim 256 --rot 64 " +
    "--key-heads 16 --value-heads 32 --state-dim 128 --experts 64 --experts-used 8 --d-ff 512 " +
    "--vocab 32000",
};

const numbers = (text) => text.split(",").map(Number);
const say = (text) => process.stderr.write(`${text}\n`);

function fail(text) {
  say(`vs_llama: ${text}`);
  process.exit(1);
}

function read_options() {
  const text = { type: "string" };
  const flag = { type: "boolean", default: false };
  const { values } = parseArgs({
    options: {
      sluice: { ...text, default: join(root, "build/release/src/sluice") },
      work: { ...text, default: join(root, "build/bench/models") },
      oracle: { ...text, default: join(root, "build/release/parity/oracle") },
      models: text,
      threads: { ...text, default: String(availableParallelism()) },
      repeats: text,
      prefill: { ...text, default: "256,1024" },
      decode: { ...text, default: "64" },
      quick: flag,
      json: flag,
    },
  });
  const options = {
    ...values,
    models: (values.models ?? (values.quick ? "qwen3moe" : Object.keys(kModels).join())).split(","),
    threads: Number(values.threads),
    repeats: Number(values.repeats ?? (values.quick ? 1 : 5)),
    prefill: numbers(values.prefill),
    decode: Number(values.decode),
  };
  const unknown = options.models.find((name) => !(name in kModels));
  if (unknown !== undefined)
    fail(`there is no model '${unknown}'; expected of ${Object.keys(kModels).join(", ")}`);
  for (const key of ["threads", "repeats", "prefill", "decode"])
    for (const value of [options[key]].flat())
      if (!Number.isInteger(value) || value < 1)
        fail(`--${key} is '${values[key]}'; expected whole numbers above 0`);
  if (!existsSync(options.sluice))
    fail(`${options.sluice} is missing; build it (cmake --preset release && cmake --build --preset release) or give --sluice`);
  return options;
}

// The standard output of a program. A slow machine may take its time; a stuck one ends here.
async function output_of(program, args) {
  const limits = { timeout: 3600_000, maxBuffer: 1 << 26 };
  return (await promisify(execFile)(program, args, limits)).stdout;
}

async function ensure_model(options, name) {
  mkdirSync(options.work, { recursive: true });
  const path = join(options.work, `${name}-q4_k_m.gguf`);
  if (!existsSync(path)) {
    say(`writing ${path}`);
    const flags = kModels[name].split(" ");
    await output_of(options.sluice, ["synth", path, "--type", "Q4_K_M", ...flags]);
  }
  return path;
}

const speeds = (options, { prefill, decode }) => ({
  prefill: options.prefill.map((n, i) => n / prefill[i]),
  decode: options.decode / decode,
});

async function run_llama(options, scratch, model, flash) {
  const { threads, prefill, decode, oracle } = options;
  const jobs = join(scratch, "jobs.json");
  writeFileSync(jobs, JSON.stringify({ jobs: [{ model, threads, flash, prefill, decode }] }));
  const worker = join(here, "vs_llama_worker.mjs");
  const answer = JSON.parse(await output_of(join(oracle, "node"), [worker, oracle, jobs]));
  if (answer.error) throw new Error(`llama.cpp: ${answer.error}`);
  return { ...speeds(options, answer), wall: speeds(options, answer.wall) };
}

async function run_sluice(options, model) {
  const lengths = ["-p", options.prefill.join(), "-n", String(options.decode), "-d", "0"];
  const flags = ["-r", "1", "-t", String(options.threads), "--json"];
  const report = JSON.parse(
    await output_of(options.sluice, ["bench", "-m", model, ...lengths, ...flags]),
  );
  const [run] = report.runs;
  const of = (kind) => run.tests.filter((test) => test.kind === kind);
  const [decode] = of("decode");
  return {
    ...speeds(options, {
      prefill: of("prefill").map((test) => test.seconds[0]),
      decode: decode.seconds[0],
    }),
    read_gbps: run.read_gbps,
    int8_tops: run.int8_tops,
    int8_instruction: run.int8_instruction,
    bytes_per_token: decode.bytes_per_token,
    multiply_adds_per_token: of("prefill").map((test) => test.multiply_adds_per_token),
  };
}

// The whole time of all tests: a user can have only one of the two settings.
const total_seconds = (options, run) =>
  options.decode / run.decode +
  options.prefill.reduce((sum, n, i) => sum + n / run.prefill[i], 0);

async function measure(options, scratch, name) {
  const model = await ensure_model(options, name);
  say(`${name}: trying llama.cpp without and with flash attention`); // and warming the page cache
  const tries = [];
  for (const flash of [false, true]) {
    const run = await run_llama(options, scratch, model, flash);
    tries.push({ flash, seconds: total_seconds(options, run) });
  }
  const { flash } = tries.reduce((a, b) => (b.seconds < a.seconds ? b : a));
  const llama = [];
  const sluice = [];
  for (let repeat = 1; repeat <= options.repeats; ++repeat) {
    llama.push(await run_llama(options, scratch, model, flash));
    sluice.push(await run_sluice(options, model));
    say(`${name}: ${repeat} of ${options.repeats}`);
  }
  return { name, flash, llama, sluice };
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

// One line for each test of a model; `share` is that of the best measured in any of its runs.
function compare(options, { name, llama, sluice }) {
  const best = (key) => Math.max(...sluice.map((run) => run[key]));
  const line = (test, pick, share) => {
    const theirs = median(llama.map(pick));
    const ours = median(sluice.map(pick));
    return { model: name, test, llama: theirs, sluice: ours, ratio: ours / theirs, ...share(ours) };
  };
  const [{ bytes_per_token, multiply_adds_per_token }] = sluice;
  return [
    ...options.prefill.map((n, i) =>
      line(`prefill ${n}`, (run) => run.prefill[i], (speed) => ({
        share: (2 * speed * multiply_adds_per_token[i]) / 1e12 / best("int8_tops"),
        of: "int8",
      })),
    ),
    line(`decode ${options.decode}`, (run) => run.decode, (speed) => ({
      share: (speed * bytes_per_token) / 1e9 / best("read_gbps"),
      of: "reads",
    })),
  ];
}

function describe(options, models) {
  const npm = join(options.oracle, "node_modules/node-llama-cpp");
  const read = (file) => JSON.parse(readFileSync(join(npm, file), "utf8"));
  const runs = models.flatMap(({ sluice }) => sluice);
  return {
    cpu: cpus()[0].model,
    threads: options.threads,
    read_gbps: Math.max(...runs.map((run) => run.read_gbps)),
    int8_tops: Math.max(...runs.map((run) => run.int8_tops)),
    int8_instruction: runs[0].int8_instruction,
    sluice: execFileSync(options.sluice, ["--version"], { encoding: "utf8" }).trim(),
    llama: `node-llama-cpp ${read("package.json").version}, llama.cpp ${read("llama/llama.cpp.info.json").tag}`,
    repeats: options.repeats,
  };
}

function print_markdown({ machine: m, results, models }) {
  const flash = models.map(({ name, flash }) => `${name} ${flash ? "on" : "off"}`).join(", ");
  console.log(
    `${m.cpu}, ${m.threads} threads; reads ${m.read_gbps.toFixed(1)} GB/s, int8 ${m.int8_tops.toFixed(2)} TOPS ` +
      `(${m.int8_instruction}); ${m.sluice}; ${m.llama}, flash attention: ${flash}; Q4_K_M; ` +
      `tokens/s, medians of ${m.repeats} alternating runs; load ${m.load_before.toFixed(1)} before\n`,
  );
  console.log("| model | test | llama.cpp | sluice | ratio | sluice uses |");
  console.log("|---|---|---:|---:|---:|---:|");
  for (const { model, test, llama, sluice, ratio, share, of } of results)
    console.log(
      `| ${model} | ${test} | ${llama.toFixed(1)} | ${sluice.toFixed(1)} | ${ratio.toFixed(2)} | ` +
        `${(100 * share).toFixed(0)} % of ${of} |`,
    );
}

const options = read_options();
const [load_before] = loadavg();
if (load_before > 0.5)
  say(`vs_llama: the load is ${load_before.toFixed(1)}: other programs will spoil the figures`);
execFileSync(join(root, "tests/parity/install.sh"), [options.oracle], { stdio: "inherit" });
const scratch = mkdtempSync(join(tmpdir(), "vs_llama-"));
try {
  const models = [];
  for (const name of options.models) models.push(await measure(options, scratch, name));
  const report = {
    machine: { ...describe(options, models), load_before },
    results: models.flatMap((model) => compare(options, model)),
    models,
  };
  if (options.json) console.log(JSON.stringify(report, null, 2));
  else print_markdown(report);
} catch (error) {
  fail(error.stderr?.trim() || error.message);
} finally {
  rmSync(scratch, { recursive: true });
}
