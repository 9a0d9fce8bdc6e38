// The parity suite: sluice against llama.cpp on small random models of every architecture and
// tensor type.
//
//   tests/parity/install.sh WORK/oracle          once; brings node and llama.cpp from npm
//   WORK/oracle/node tests/parity/parity_test.mjs --sluice PATH --work WORK
//       [--oracle DIR] [--filter REGEX] [--keep] [--list]
//
// `sluice synth` writes each model, oracle.mjs asks llama.cpp, `sluice logits` and `sluice run`
// answer, compare.mjs judges; cases.mjs says what and within which bound. Ends with a table and "N
// passed, N failed"; exit code 1 on any failure. The models of failed cases stay in WORK/models.
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { case_groups, kArchitectures, kGreedy, token_ids } from "./cases.mjs";
import { judge, judge_cost, judge_tied, rows_of_oracle, rows_of_sluice, show } from "./compare.mjs";
import { read_gguf, write_gguf } from "./gguf_edit.mjs";
import { ask_oracle, has_oracle, parallel, run_program } from "./programs.mjs";

// Sluice processes at a time: the machines that run this have few cores.
const kParallel = 2;

function model_name(spec) {
  return Object.values(spec).join("-");
}

const file_name = (text) => text.replace(/[^\w.]+/g, "_");

class Suite {
  constructor({ sluice, work, oracle, filter, keep }) {
    this.sluice = resolve(sluice);
    this.oracle_dir = resolve(oracle ?? join(work, "oracle"));
    this.models_dir = resolve(work, "models");
    this.filter = new RegExp(filter ?? "");
    this.filtered = filter !== undefined;
    this.keep = keep;
    this.results = []; // {name, summary?, note?, failures: [text]}
    mkdirSync(this.models_dir, { recursive: true });
  }

  model_path(spec) {
    return join(this.models_dir, `${model_name(spec)}.gguf`);
  }

  report(test, outcome) {
    this.results.push({ name: test.name, failures: [], ...outcome });
    for (const line of outcome.failures ?? []) console.log(`FAILED ${test.name}: ${line}`);
  }

  async synth(spec) {
    const options = Object.entries(spec).flatMap(([key, value]) =>
      value === true ? [`--${key}`] : [`--${key}`, String(value)],
    );
    await run_program(this.sluice, ["synth", this.model_path(spec), ...options]);
  }

  // The same weights as F32, for tests that compare with exact arithmetic.
  exact_path(spec) {
    return `${this.model_path(spec)}.exact`;
  }

  async make_exact(spec) {
    await run_program(this.sluice, ["quantize", this.model_path(spec), this.exact_path(spec), "F32"]);
  }

  // Log-probabilities of sluice for a test, from its own model file or the edited one at `path`.
  async sluice_rows(test, path, tokens) {
    const args = [
      "logits",
      "-m",
      path,
      "--tokens",
      tokens.join(","),
      "--all",
      "--json",
      "-ctk",
      test.sluice_kv,
      "-ctv",
      test.sluice_kv,
      ...test.args,
    ];
    return rows_of_sluice(
      JSON.parse(await run_program(this.sluice, args)),
      tokens,
      test.model.vocab,
    );
  }

  // What to ask llama.cpp for a test: one job, and for a comparison of costs a second one with an
  // exact cache, for one with exact arithmetic a second one with exact weights.
  oracle_jobs(test) {
    const job = {
      model: this.model_path(test.model),
      tokens: token_ids(test.n_tokens, test.model.vocab),
      kv: test.kv,
      flash: test.flash,
      greedy: test.kind === "greedy" ? kGreedy.n_new : 0,
      out: join(this.models_dir, `${file_name(test.name)}.f64`),
    };
    if (test.exact) return [job, { ...job, model: this.exact_path(test.model), out: `${job.out}.exact` }];
    return test.cost ? [job, { ...job, kv: "f32", flash: false, out: `${job.out}.exact` }] : [job];
  }

  // {summary, failures, note} of sluice on the model file at `path`.
  async measure(test, path, jobs, answers) {
    const [expected, exact] = jobs.map(({ out }, i) =>
      rows_of_oracle(readFileSync(out), answers[i].positions, answers[i].vocab),
    );
    const got = await this.sluice_rows(test, path, jobs[0].tokens);
    if (test.exact) return judge_tied(exact, expected, got, test.bound);
    return test.cost
      ? judge_cost(exact, expected, got, test.cost)
      : judge(expected, got, test.bound);
  }

  async check_kl(test, jobs, answers) {
    this.report(test, await this.measure(test, jobs[0].model, jobs, answers));
  }

  // The check must fail on the edited file, or hold where the edit is the counter-check.
  async check_fault(test, jobs, answers) {
    const path = join(this.models_dir, `edited-${file_name(test.name)}.gguf`);
    const gguf = read_gguf(jobs[0].model);
    test.edit(gguf);
    write_gguf(path, gguf);
    const { summary, failures } = await this.measure(test, path, jobs, answers);
    if (test.holds) {
      this.report(test, { summary, failures, note: "an edit that must change nothing" });
    } else if (failures.length > 0) {
      this.report(test, { summary, note: "fault seen" });
    } else {
      const bound = JSON.stringify(test.cost ?? test.bound);
      this.report(test, {
        summary,
        failures: [
          `the fault went unseen: p95 ${show(summary.p95)}, max ${show(summary.max)}, bound ${bound}`,
        ],
      });
    }
    if (!this.keep) rmSync(path);
  }

  async check_greedy(test, [job], [answer]) {
    const args = [
      "run",
      "-m",
      job.model,
      "--tokens",
      job.tokens.join(","),
      "-n",
      String(kGreedy.n_new),
      "--json",
    ];
    const { tokens } = JSON.parse(await run_program(this.sluice, args));
    const at = answer.greedy.findIndex((id, i) => id !== tokens?.[i]);
    const failures = [];
    if (at >= 0)
      failures.push(
        `new token ${at}: expected ${answer.greedy[at]}, got ${tokens?.[at]}, llama.cpp's smallest lead ${show(answer.margin)}`,
      );
    else if (tokens.length !== answer.greedy.length)
      failures.push(`expected ${answer.greedy.length} new tokens, got ${tokens.length}`);
    this.report(test, {
      failures,
      note: `${kGreedy.n_new} tokens, smallest lead ${show(answer.margin)}`,
    });
  }

  // The greedy runs that count, by llama.cpp's answer alone: see kGreedy.
  choose_greedy(asked) {
    const clear = ({ answers: [answer] }) =>
      !answer.error && !answer.eog && answer.margin >= kGreedy.margin;
    const chosen = kArchitectures.flatMap((arch) =>
      asked.filter((one) => one.test.model.arch === arch && clear(one)).slice(0, kGreedy.per_arch),
    );
    const enough = chosen.length >= kGreedy.at_least || this.filtered;
    const failures = enough
      ? []
      : [
          `${chosen.length} of ${asked.length} models have a clear continuation, expected ${kGreedy.at_least} or more`,
        ];
    this.report(
      { name: "greedy/models with a clear lead" },
      { failures, note: `${chosen.length} taken of ${asked.length}` },
    );
    return chosen;
  }

  async run_group(group) {
    const tests = group.filter((test) => this.filter.test(test.name));
    if (tests.length === 0) return;
    const specs = new Map(tests.map((test) => [model_name(test.model), test.model]));
    const unmade = new Map();
    const exact = new Set(tests.filter((test) => test.exact).map((test) => model_name(test.model)));
    await parallel([...specs.values()], kParallel, (spec) =>
      this.synth(spec)
        .then(() => exact.has(model_name(spec)) && this.make_exact(spec))
        .catch((error) => unmade.set(model_name(spec), error.message)),
    );
    const made = tests.filter((test) => {
      const reason = unmade.get(model_name(test.model));
      if (reason) this.report(test, { failures: [reason] });
      return !reason;
    });

    const jobs_of = made.map((test) => this.oracle_jobs(test));
    const answers = await ask_oracle(this.oracle_dir, this.models_dir, jobs_of.flat());
    let asked = made.map((test, i) => ({
      test,
      jobs: jobs_of[i],
      answers: answers.splice(0, jobs_of[i].length),
    }));
    if (made[0]?.kind === "greedy") asked = this.choose_greedy(asked);
    const check = { kl: "check_kl", fault: "check_fault", greedy: "check_greedy" };
    await parallel(asked, kParallel, async ({ test, jobs, answers }) => {
      const refused = answers.find((answer) => answer.error);
      if (refused) return this.report(test, { failures: [`llama.cpp: ${refused.error}`] });
      await this[check[test.kind]](test, jobs, answers).catch((error) =>
        this.report(test, { failures: [error.message] }),
      );
    });
    this.clean_up(tests, jobs_of.flat());
  }

  clean_up(tests, jobs) {
    if (this.keep) return;
    const failed = new Set(
      this.results.filter((result) => result.failures.length).map((result) => result.name),
    );
    const wanted = new Set(
      tests.filter((test) => failed.has(test.name)).map((test) => this.model_path(test.model)),
    );
    for (const { out } of jobs) rmSync(out, { force: true });
    for (const { model } of tests) rmSync(this.exact_path(model), { force: true });
    for (const { model } of tests)
      if (!wanted.has(this.model_path(model))) rmSync(this.model_path(model), { force: true });
  }

  print_table() {
    const width = Math.max(4, ...this.results.map(({ name }) => name.length));
    console.log(`\n${"case".padEnd(width)}  median    p95       max       verdict`);
    for (const { name, summary, failures, note } of this.results) {
      const figures = summary
        ? [summary.median, summary.p95, summary.max].map(show)
        : ["-", "-", "-"];
      const verdict = failures.length ? "FAILED" : "ok";
      console.log(
        `${name.padEnd(width)}  ${figures.map((text) => text.padEnd(8)).join("  ")}  ${verdict}${note ? ` (${note})` : ""}`,
      );
    }
  }

  // Why nothing can be run, or null.
  obstacle() {
    if (!existsSync(this.sluice)) return `no sluice program at ${this.sluice}`;
    if (!has_oracle(this.oracle_dir))
      return `no oracle in ${this.oracle_dir}: run tests/parity/install.sh ${this.oracle_dir} first`;
    return null;
  }

  async run() {
    const obstacle = this.obstacle();
    if (obstacle) {
      console.error(`parity_test: ${obstacle}`);
      return false;
    }
    const groups = case_groups();
    for (const group of groups) await this.run_group(group);
    // Parallel runs end in any order; the table has the order of cases.mjs.
    const order = new Map(groups.flat().map((test, i) => [test.name, i]));
    this.results.sort((a, b) => (order.get(a.name) ?? Infinity) - (order.get(b.name) ?? Infinity));
    this.print_table();
    const failed = this.results.filter((result) => result.failures.length).length;
    console.log(`${this.results.length - failed} passed, ${failed} failed`);
    return failed === 0 && this.results.length > 0;
  }
}

const { values: options } = parseArgs({
  options: {
    sluice: { type: "string" },
    work: { type: "string" },
    oracle: { type: "string" },
    filter: { type: "string" },
    keep: { type: "boolean" },
    list: { type: "boolean" },
  },
});
if (options.list) {
  for (const test of case_groups().flat()) console.log(test.name);
} else if (!options.sluice || !options.work) {
  console.error(
    "usage: parity_test.mjs --sluice PATH --work DIR [--oracle DIR] [--filter REGEX] [--keep] [--list]",
  );
  process.exitCode = 2;
} else {
  process.exitCode = (await new Suite(options).run()) ? 0 : 1;
}
