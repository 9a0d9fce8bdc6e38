// A report document as script/document.js describes it, from formulas instead of a replay; and awkward ones.
// SPDX-License-Identifier: Apache-2.0

const doubled = (first, n) => Array.from({ length: n }, (_, i) => first * 2 ** i);

function point(budget, skill) {
  const hit_rate = 1 - (1 - budget / 100) ** (3 + 2 * skill);
  const cpu_ms = 13 * (1 - hit_rate);
  const copy_ms = 20 * (1 - hit_rate);
  const copy_wait_ms = Math.max(0, copy_ms - cpu_ms - 0.8);
  return {
    budget,
    hit_rate,
    mb_per_token: 25 * copy_ms,
    ms_per_token: cpu_ms + 0.8 + copy_wait_ms,
    gpu_ms: 1.6 * hit_rate,
    cpu_ms,
    handshake_ms: 0.8,
    copy_ms,
    copy_wait_ms,
  };
}

// Compute needs the CPU alone, Stream the link alone, Cache something of each.
const kSpeeds = {
  compute: (link, cpu) => 2 * cpu,
  cache: (link, cpu) => 4 * Math.sqrt(cpu * link),
  stream: (link) => 6 * link,
};

export function sample_document({
  model = "A model",
  budgets = [3, 6.25, 12.5, 25, 50],
  policies = ["default", "lru", "belady"],
  links = doubled(2, 6),
  cpus = doubled(5, 6),
  n_layers = 4,
  link_gbps = 25,
  cpu_gbps = 60,
} = {}) {
  const by_grid = (f) => links.map((link) => cpus.map((cpu) => f(link, cpu)));
  return {
    trace: {
      model,
      source: "sample.csv",
      n_layers,
      n_experts: 128,
      n_experts_used: 8,
      n_prefill: 60,
      n_decode: 128,
      expert_bytes_total: 16 * 2 ** 30,
    },
    machine: { link_gbps, cpu_gbps, gpu_gbps: 500, handshake_us: 18 },
    curves: policies.map((policy) => ({
      policy,
      points: budgets.map((budget) => point(budget, { default: 0.4, belady: 1 }[policy] ?? 0)),
    })),
    speed_map: {
      policy: "default",
      budgets,
      vram_gib: budgets.map((budget) => 0.16 * budget),
      links,
      tokens_per_s: links.map((link) => budgets.map((budget) => budget * link)),
      // The last budget is no faster than the one before it, where there is one.
      used_budget: links.map(() => budgets.map((_, i) => budgets[i > 0 && i === budgets.length - 1 ? i - 1 : i])),
    },
    layers: {
      budgets,
      hit_rate: budgets.map((budget) => Array(n_layers).fill(budget / 100)),
      use_entropy: Array(n_layers).fill(5.5),
    },
    frontier: {
      budget: 12.5,
      links,
      cpus,
      modes: Object.keys(kSpeeds),
      copy_cost: by_grid(() => 0.5),
      mb_per_token: by_grid(() => 120),
      tokens_per_s: Object.fromEntries(
        Object.entries(kSpeeds).map(([mode, speed]) => [mode, by_grid(speed)]),
      ),
    },
  };
}

export const kAwkwardDocuments = {
  "a single policy, budget, layer and machine": {
    policies: ["lru"],
    budgets: [12.5],
    links: [25],
    cpus: [60],
    n_layers: 1,
  },
  "no default policy, and one nobody knows": { policies: ["lru", "belady", "of-my-own"] },
  "more policies than colours": { policies: Array.from({ length: 9 }, (_, i) => `policy-${i}`) },
  "a machine outside the frontier's grid": { link_gbps: 1, cpu_gbps: 1000 },
  "a hundred layers": { n_layers: 100 },
  "a model named as markup": { model: "<img src=x onerror=alert(1)>" },
};
