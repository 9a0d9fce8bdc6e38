// What the report's document says beyond its bare fields: key figures, and who wins on the frontier. Pure.
//
// {"trace": {model, source, n_layers, n_experts, n_experts_used, n_prefill, n_decode, expert_bytes_total},
//  "machine": {link_gbps, cpu_gbps, gpu_gbps, handshake_us},
//  "curves": [{policy, points: [{budget, hit_rate, mb_per_token, ms_per_token,
//                                gpu_ms, cpu_ms, handshake_ms, copy_ms, copy_wait_ms}]}],
//  "speed_map": {policy, budgets, vram_gib, links, tokens_per_s: [link][budget],
//                used_budget: [link][budget], less than the cell's where more slots were no faster},
//  "layers": {budgets, hit_rate: [budget][layer], use_entropy: [layer], in bits},
//  "frontier": {budget, links, cpus, modes, tokens_per_s: {mode: [link][cpu]},
//               copy_cost: [link][cpu], mb_per_token: [link][cpu]}}
//
// Budgets are per cent of all experts, rates GB/s of 10^9 bytes, hit rates 0 to 1.
// SPDX-License-Identifier: Apache-2.0

const kShownBudget = 12.5;

// Cache must beat Compute by this factor to count as the winner: it is the more complicated of the two.
const kWorthCopying = 1.03;

const budget_gib = (trace, budget) => ((budget / 100) * trace.expert_bytes_total) / kGiB;

function point_near(curves, policy, budget) {
  const points = curves.find((curve) => curve.policy === policy)?.points;
  return points?.[
    nearest_index(
      points.map((point) => point.budget),
      budget,
    )
  ];
}

function summary_text({ trace, machine }) {
  return (
    `${counted(trace.n_decode, "decoded token")} after ${trace.n_prefill.toLocaleString("en")} of prompt, ` +
    `from ${trace.source}: ${counted(trace.n_layers, "layer")} that choose ${trace.n_experts_used} of ` +
    `${counted(trace.n_experts, "expert")}, ${with_unit(trace.expert_bytes_total / kGiB, "GiB")} of experts in all. ` +
    `The machine reads experts at ${with_unit(machine.gpu_gbps, "GB/s")} in VRAM and at ` +
    `${with_unit(machine.cpu_gbps, "GB/s")} on the CPU, copies at ${with_unit(machine.link_gbps, "GB/s")} ` +
    `over the link, and needs ${with_unit(machine.handshake_us, "µs")} in each layer that asks the CPU.`
  );
}

// [{label, value, remark}] for the head of the page; what the document lacks is left out.
function key_figures(doc) {
  const [ours, lru, belady] = ["default", "lru", "belady"].map((name) =>
    point_near(doc.curves, name, kShownBudget),
  );
  const figures = [];
  if (ours) {
    const where = `${budget_text(ours.budget)} of the experts in VRAM, ${gib_text(budget_gib(doc.trace, ours.budget))}`;
    figures.push({ label: "Hit rate", value: percent(ours.hit_rate), remark: `default policy, ${where}` });
    figures.push({
      label: "Expert speed",
      value: speed_text(1000 / ours.ms_per_token),
      remark:
        `${with_unit(ours.ms_per_token, "ms")} a token` +
        (lru ? `; lru ${with_unit(lru.ms_per_token, "ms")}` : ""),
    });
  }
  if (ours && lru && belady && belady.hit_rate > lru.hit_rate) {
    const closed = (ours.hit_rate - lru.hit_rate) / (belady.hit_rate - lru.hit_rate);
    figures.push({
      label: "From lru to Belady",
      value: `${Math.round(100 * closed)}${kNbsp}%`,
      remark: `of the gap is closed: lru ${percent(lru.hit_rate)}, Belady ${percent(belady.hit_rate)}`,
    });
  }
  const here = mode_at(doc.frontier, doc.machine.link_gbps, doc.machine.cpu_gbps);
  if (here) {
    figures.push({
      label: "Best answer to a miss",
      value: mode_name(here.winner),
      remark: `${short_number(here.lead)} times as fast as ${mode_name(here.second)} on this machine`,
    });
  }
  return figures;
}

const mode_name = (mode) => mode[0].toUpperCase() + mode.slice(1);

// speeds: {mode: tokens per second} -> who wins, over whom, and by what factor.
function judge(speeds) {
  const { compute, cache, stream } = speeds;
  const winner =
    stream > Math.max(compute, cache) ? "stream" : cache > kWorthCopying * compute ? "cache" : "compute";
  let second = null;
  for (const mode in speeds) {
    if (mode !== winner && (second === null || speeds[mode] > speeds[second])) second = mode;
  }
  return { winner, second, lead: speeds[winner] / speeds[second] };
}

// The frontier's speeds as fields with links along x and CPUs along y, in logarithms: between two
// points of a grid whose axes are logarithmic, that is straight.
function log_speed_fields({ cpus, links, modes, tokens_per_s }) {
  const field = (mode) => cpus.map((_, j) => links.map((_, i) => Math.log(tokens_per_s[mode][i][j])));
  return Object.fromEntries(modes.map((mode) => [mode, field(mode)]));
}

function judge_at({ compute, cache, stream }, x, y) {
  const speed = (field) => Math.exp(field_at(field, x, y));
  return judge({ compute: speed(compute), cache: speed(cache), stream: speed(stream) });
}

// judge() between the grid's points; null outside.
function mode_at(frontier, link, cpu) {
  const [x, y] = [index_of(frontier.links, link), index_of(frontier.cpus, cpu)];
  return x === null || y === null ? null : judge_at(log_speed_fields(frontier), x, y);
}

// The two lines between the regions, in grid coordinates: where Stream overtakes both others, and, outside of
// its region, where Cache becomes worth its copies.
function frontier_lines(fields) {
  const fine = Object.fromEntries(
    Object.entries(fields).map(([mode, field]) => [mode, refine(field, kRefined)]),
  );
  const stream_lead = map_field(fine.stream, (s, i, j) => s - Math.max(fine.compute[j][i], fine.cache[j][i]));
  const cache_lead = map_field(fine.cache, (c, i, j) =>
    stream_lead[j][i] > 0 ? NaN : c - fine.compute[j][i],
  );
  const lines = (field, level) =>
    contour(field, level).map((line) => line.map(([x, y]) => [x / kRefined, y / kRefined]));
  return { stream: lines(stream_lead, 0), cache: lines(cache_lead, Math.log(kWorthCopying)) };
}
const kRefined = 8; // steps between two points of the grid; the larger of two lines bends between them
