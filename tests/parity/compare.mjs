// The measure and the verdict: Kullback-Leibler divergence KL(P_llama.cpp || P_sluice) in nats at
// each position, its summary over the positions, and whether a bound holds. Pure functions over
// log-probabilities; runs no program.
//
// Reading a log-probability row: Float64Array of the whole vocabulary, natural log.

// Worst tolerated |log sum_i exp(logprob_i)| of an answer: float32 log-probabilities of up to 1000
// ids stay below 1e-5, a distribution that is not one (a missing id, log base 2) is off by far
// more.
const kNormTolerance = 1e-4;

export function log_sum_exp(row) {
  let max = -Infinity;
  for (const value of row) if (value > max) max = value;
  let sum = 0;
  for (const value of row) sum += Math.exp(value - max);
  return max + Math.log(sum);
}

// KL(P || Q) = sum_i p_i (log p_i - log q_i), both rows normalised in double first, so that an
// offset common to a row (the rounding of its log-sum) does not count. Not below -1e-15 but for
// rounding; clamped to 0.
export function kl_divergence(log_p, log_q) {
  const norm_p = log_sum_exp(log_p);
  const norm_q = log_sum_exp(log_q);
  let sum = 0;
  for (let id = 0; id < log_p.length; ++id) {
    const p = Math.exp(log_p[id] - norm_p);
    if (p > 0) sum += p * (log_p[id] - norm_p - (log_q[id] - norm_q));
  }
  return Number.isNaN(sum) ? Infinity : Math.max(0, sum);
}

// The value at rank ceil(fraction * n), counted from 1: at least that share of the positions lies
// at or below it.
export function quantile(values, fraction) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(fraction * sorted.length) - 1)];
}

export function summarise(kls) {
  return {
    count: kls.length,
    median: quantile(kls, 0.5),
    p95: quantile(kls, 0.95),
    max: quantile(kls, 1),
  };
}

// Rows of `sluice logits --all --json`, checked: each position and token in order, every id of the
// vocabulary once, best first, and probabilities that add up to one. Throws an Error that says what
// was found and expected.
export function rows_of_sluice(answer, tokens, n_vocab) {
  if (!Array.isArray(answer) || answer.length !== tokens.length) {
    throw new Error(
      `expected an array of ${tokens.length} positions, got ${answer?.length ?? typeof answer}`,
    );
  }
  return answer.map((entry, pos) => {
    if (entry.pos !== pos || entry.token !== tokens[pos]) {
      throw new Error(
        `entry ${pos}: expected pos ${pos} token ${tokens[pos]}, got pos ${entry.pos} token ${entry.token}`,
      );
    }
    const row = new Float64Array(n_vocab).fill(NaN);
    let previous = Infinity;
    for (const [id, logprob] of entry.top) {
      if (!(id >= 0 && id < n_vocab) || !Number.isNaN(row[id]))
        throw new Error(`position ${pos}: id ${id} is out of range or given twice`);
      if (typeof logprob !== "number" || logprob > previous)
        throw new Error(`position ${pos}: id ${id} is not in falling order`);
      row[id] = previous = logprob;
    }
    if (entry.top.length !== n_vocab)
      throw new Error(`position ${pos}: expected ${n_vocab} ids, got ${entry.top.length}`);
    const off = log_sum_exp(row);
    if (!(Math.abs(off) <= kNormTolerance))
      throw new Error(
        `position ${pos}: log of the summed probabilities is ${off}, expected 0 within ${kNormTolerance}`,
      );
    return row;
  });
}

// Rows of the oracle's float64 file.
export function rows_of_oracle(bytes, n_positions, n_vocab) {
  const expected = n_positions * n_vocab * 8;
  if (bytes.length !== expected)
    throw new Error(`oracle file holds ${bytes.length} bytes, expected ${expected}`);
  const flat = new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + expected));
  return Array.from({ length: n_positions }, (_, pos) =>
    flat.subarray(pos * n_vocab, (pos + 1) * n_vocab),
  );
}

// One reading of a bound {max, p95?}: every position at or below max and, where p95 is given, 95 %
// of them at or below it. Returns {kls, summary, failures}; a failure is a line with position,
// expected, got and bound.
export function judge(expected_rows, got_rows, bound) {
  const kls = expected_rows.map((row, pos) => kl_divergence(row, got_rows[pos]));
  const summary = summarise(kls);
  const failures = [];
  if (bound.p95 !== undefined && !(summary.p95 <= bound.p95)) {
    const over = kls.filter((kl) => !(kl <= bound.p95)).length;
    failures.push(
      `95th percentile of KL ${show(summary.p95)}, bound ${bound.p95}; ${over} of ${kls.length} positions lie above it`,
    );
  }
  if (!(summary.max <= bound.max)) {
    const pos = kls.indexOf(Math.max(...kls));
    failures.push(
      `position ${pos}: KL ${show(kls[pos])}, bound ${bound.max}; ${describe(expected_rows[pos], got_rows[pos])}`,
    );
  }
  return { kls, summary, failures };
}

// As judge, but p95 counts only positions at which the expected rows are themselves within it of exact
// ones; of all, a share of `least` must be. See kTied in cases.mjs.
export function judge_tied(exact_rows, expected_rows, got_rows, bound) {
  const counts = exact_rows.map((row, pos) => kl_divergence(row, expected_rows[pos]) <= bound.p95);
  const some = (rows) => rows.filter((_, pos) => counts[pos]);
  const all = judge(expected_rows, got_rows, { max: bound.max });
  const counted = judge(some(expected_rows), some(got_rows), bound);
  const note = `${counted.kls.length} of ${counts.length} positions count`;
  const failures = [...counted.failures, ...all.failures];
  if (!(counted.kls.length >= bound.least * counts.length))
    failures.push(`${note}, expected ${bound.least * 100} % of them`);
  return { kls: counted.kls, summary: { ...counted.summary, max: all.summary.max }, failures, note };
}

// The cost of a cheaper cache, as a multiple of what the same costs llama.cpp; see kCost in
// cases.mjs. Same answer as judge.
export function judge_cost(exact_rows, cheap_rows, got_rows, bound) {
  const kls = exact_rows.map((row, pos) => kl_divergence(row, got_rows[pos]));
  const own = quantile(
    exact_rows.map((row, pos) => kl_divergence(row, cheap_rows[pos])),
    0.5,
  );
  const summary = summarise(kls);
  const ratio = summary.median / own;
  const note = `${ratio.toPrecision(2)} times llama.cpp's own cost`;
  const held = ratio >= bound.least && ratio <= bound.most;
  const failures = held
    ? []
    : [
        `median KL to an exact cache: expected about ${show(own)}, got ${show(summary.median)}, a ratio of ${ratio.toPrecision(3)}, bound ${bound.least} to ${bound.most}`,
      ];
  return { kls, summary, failures, note };
}

// The id whose log-probability differs most, with both values.
function describe(expected, got) {
  let worst = 0;
  for (let id = 1; id < expected.length; ++id) {
    if (Math.abs(expected[id] - got[id]) > Math.abs(expected[worst] - got[worst])) worst = id;
  }
  return `id ${worst}: expected logprob ${expected[worst].toFixed(6)}, got ${got[worst].toFixed(6)}`;
}

export function show(kl) {
  return kl === 0 ? "0" : kl.toExponential(2);
}
