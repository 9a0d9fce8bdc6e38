// What the parity suite checks, as data: the models, the comparisons, the greedy runs and the
// deliberate faults, each with its bound. The bounds of kQuantised and kExact are the project's
// promise: a case that breaks one is a bug to be found, never a bound to be widened.
import {
  drop_attention_gate,
  drop_decay,
  drop_minima,
  drop_renormalisation,
  drop_sub_block_scales,
  halve_block_scale,
  pair_rope_wrongly,
  reverse_taps,
  swap_experts,
  swap_gate_and_up,
  swap_key_heads,
} from "./faults.mjs";

export const kArchitectures = [
  "qwen3moe",
  "qwen2moe",
  "olmoe",
  "llama",
  "qwen35moe",
  "qwen3next",
  "qwen3",
  "qwen35",
];
const kHybrids = ["qwen35moe", "qwen3next", "qwen35"]; // with recurrent layers
const kDense = ["qwen3", "qwen35"]; // without experts, so without ties of a router
const kTiedHybrids = kHybrids.filter((arch) => !kDense.includes(arch));

// For `sluice synth`: two of four experts, where the architecture has any.
export function few_experts(arch) {
  return kDense.includes(arch) ? [] : ["--experts", "4", "--experts-used", "2"];
}

export const kTypes = [
  "F32",
  "F16",
  "BF16",
  "Q4_0",
  "Q4_1",
  "Q5_0",
  "Q5_1",
  "Q8_0",
  "Q2_K",
  "Q3_K",
  "Q4_K",
  "Q5_K",
  "Q6_K",
  "IQ4_NL",
  "IQ4_XS",
  "MXFP4",
  "Q4_K_M",
];

// Nats. Both engines round activations before a quantised product, each in its own way, and where
// the router's last chosen and first unchosen expert are within about 1 % of each other that
// rounding may decide; hence two limits. Such ties come near the 95 %. Of five seeds (340 cases)
// seed 3 breaks it in llama/Q3_K, Q5_K and IQ4_XS, with 7 or 8 of 128 positions above; at each of
// these 23 the gap is below 1 % and a float64 engine agrees within 2e-5 with one of the two,
// llama.cpp at 8 and sluice at 15. Seed 1 was fixed before that was known.
const kQuantised = { p95: 2e-4, max: 2e-2 };
// F32 weights and F32 cache, flash attention off: the order of float sums is all that differs.
// Measured 2e-12 and less at 48 tokens, 4e-11 at 300.
const kExact = { max: 1e-7 };
// Positions of a quantised case. Ties are a matter of chance, so the 95 % need many positions: with
// 48 they break it in 9 of the 340 cases, with 128 in 3; with 384 the worst case of seeds 1 and 5
// has 3.9 % above. Before calling a case near the bound a bug, compare with exact arithmetic.
const kManyTokens = 384;

// Dense hybrids have no ties, and keep the plain bound with the two layers that qwen35moe has here: the
// worst type (Q6_K) has a 95 % of 8e-5. One recurrent layer more multiplies both engines' own errors by
// 2.5 (Q6_K: the 95 % from exact are then 2.1e-4 for llama.cpp, 8.7e-5 for sluice), so that 5 of 17
// types would lie above it.

// Hybrids: a tie that falls otherwise changes a state that later tokens read, so that with few experts
// more than 5 % of the positions can lie above, in 10 of 34 cases with 4 of 8 experts and in 7 with 2.
// Compared with exact arithmetic (the same weights as F32, where the two agree to 1e-9), those are
// positions at which one of the two is far from exact and the other is not: qwen35moe/Q4_K with 2 of 8
// has 21 of 384 positions above, llama.cpp is above from exact at 16 and sluice at 11, both at 2 of the
// 21; the medians from exact are 2.5e-5 and 1.1e-5. So positions at which llama.cpp itself is above from
// exact say nothing about sluice and are left out, by llama.cpp's two answers alone; most must stay.
const kTied = { ...kQuantised, least: 0.9 };

// One shape per architecture: small, with grouped kv heads where the architecture allows them, a
// head_dim that is not d_model / n_heads (qwen3moe) and a shared expert of its own width
// (qwen2moe). All rows are multiples of 256, which the K-quants need.
const kDenseShape = {
  layers: 2,
  "d-model": 256,
  heads: 4,
  "kv-heads": 2,
  "head-dim": 64,
  "d-ff": 512,
};
const kShape = { ...kDenseShape, experts: 8, "experts-used": 4, "d-ff": 256 };
const kShapes = {
  qwen3moe: { ...kShape, layers: 3, "head-dim": 128, "experts-used": 3 },
  qwen2moe: { ...kShape, "d-ff-shared": 512 },
  olmoe: { ...kShape, "kv-heads": 4 },
  llama: { ...kShape, "experts-used": 2 },
  qwen35moe: {
    ...kShape,
    "attention-every": 2,
    "experts-used": 2,
    "d-ff-shared": 512,
    "key-heads": 2,
    "value-heads": 4,
    "state-dim": 64,
  },
  qwen3next: {
    ...kShape,
    "attention-every": 2,
    "experts-used": 4,
    rot: 16,
    "key-heads": 2,
    "value-heads": 4,
    "state-dim": 128,
  },
  qwen3: { ...kDenseShape, layers: 3, "head-dim": 128 },
  qwen35: {
    ...kDenseShape,
    "attention-every": 2,
    "key-heads": 2,
    "value-heads": 4,
    "state-dim": 64,
  },
};

// Sizes that fill no tile: 5 heads, 5 experts, 3 blocks of 32 in d_ff, an odd vocabulary.
function awkward(arch) {
  const shape = {
    layers: 2,
    "d-model": 160,
    heads: 5,
    "kv-heads": 1,
    "head-dim": 32,
    "d-ff": 96,
  };
  if (!kDense.includes(arch)) Object.assign(shape, { experts: 5, "experts-used": 3 });
  if (arch === "olmoe") shape["kv-heads"] = 5;
  if (arch === "qwen2moe") shape["d-ff-shared"] = 64;
  if (kHybrids.includes(arch)) {
    const net = { "attention-every": 2, "key-heads": 3, "value-heads": 9, "state-dim": 32, rot: 12 };
    Object.assign(shape, net, { layers: 3 });
  }
  return { ...shape, vocab: 301 };
}

const kAllUsed = { "experts-used": kShape.experts };

// The arguments of `sluice synth`, in the order of its usage line.
function model(arch, type, std, extra = {}) {
  return { arch, ...kShapes[arch], vocab: 320, ctx: 512, type, std, seed: 1, ...extra };
}

// n token ids over the whole vocabulary, special ones included; the same for every model (a linear
// congruence).
export function token_ids(n, n_vocab) {
  const ids = [];
  for (let i = 0, state = 7; i < n; ++i) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    ids.push((state >>> 8) % n_vocab);
  }
  return ids;
}

function comparison(name, spec, bound, extra = {}) {
  return {
    name,
    kind: "kl",
    model: spec,
    n_tokens: 48,
    kv: "f16",
    sluice_kv: extra.kv ?? "f16",
    flash: false,
    args: [],
    bound,
    ...extra,
  };
}

function quantised_cases() {
  return kArchitectures.flatMap((arch) =>
    kTypes.map((type) => {
      const exact = kTiedHybrids.includes(arch); // compared with exact arithmetic as well
      return comparison(`quant/${arch}/${type}`, model(arch, type, 0.02), exact ? kTied : kQuantised, {
        n_tokens: kManyTokens,
        exact,
      });
    }),
  );
}

// Hybrids that use all of their experts have no ties, and keep the plain bound: the worst type (IQ4_XS)
// has a 95 % of 6.5e-5. The same token by token, as they decode.
function no_ties_cases() {
  const untied = (arch, type, what, args) =>
    comparison(`no ties/${arch}/${type}${what}`, model(arch, type, 0.02, kAllUsed), kQuantised, {
      n_tokens: kManyTokens,
      args,
    });
  return kTiedHybrids.flatMap((arch) => [
    ...kTypes.map((type) => untied(arch, type, "", [])),
    ...["Q3_K", "Q6_K", "Q4_K_M"].map((type) =>
      untied(arch, type, "/prefill by 1", ["--prefill-chunk", "1"]),
    ),
  ]);
}

function exact_cases() {
  return kArchitectures.flatMap((arch) => {
    const plain = model(arch, "F32", 0.06);
    return [
      comparison(`exact/${arch}`, plain, kExact, { kv: "f32" }),
      comparison(`exact/${arch}/prefill by 1`, plain, kExact, {
        kv: "f32",
        args: ["--prefill-chunk", "1"],
      }),
      comparison(`exact/${arch}/prefill by 7`, plain, kExact, {
        kv: "f32",
        args: ["--prefill-chunk", "7"],
      }),
      comparison(`exact/${arch}/300 tokens`, plain, kExact, { kv: "f32", n_tokens: 300 }),
      comparison(`exact/${arch}/awkward sizes`, { ...plain, ...awkward(arch) }, kExact, {
        kv: "f32",
      }),
    ];
  });
}

// What files of hybrids may hold besides: an MTP block, which is left aside, gate and up in one
// tensor, and all inputs of a recurrent layer in one; these two in sizes that fill no tile as well. And
// several layers that attend, with one or two recurrent ones before each, or one behind the last.
function hybrid_form_cases() {
  const merged = { form: "ffn_gate_up_exps" };
  const fused = { form: "ssm_in" };
  const forms = kHybrids.flatMap((arch) => [
    ...(kDense.includes(arch)
      ? []
      : [
          [arch, "merged gate and up", merged],
          [arch, "merged gate and up, awkward sizes", { ...awkward(arch), ...merged }],
        ]),
    [arch, "an MTP block", { mtp: 1 }],
    [arch, "one attention layer", { layers: 5, "attention-every": 5 }],
    [arch, "2 of 4 layers attend", { layers: 4, "attention-every": 2 }],
    [arch, "3 of 7 layers attend", { layers: 7, "attention-every": 2 }],
    [arch, "2 of 6 layers attend", { layers: 6, "attention-every": 3 }],
  ]);
  forms.push(["qwen3next", "fused inputs", fused]);
  forms.push(["qwen3next", "fused inputs, awkward sizes", { ...awkward("qwen3next"), ...fused }]);
  return forms.map(([arch, what, extra]) =>
    comparison(`exact/${arch}/${what}`, model(arch, "F32", 0.06, extra), kExact, { kv: "f32" }),
  );
}

// Files of llama come with experts or without.
function dense_llama_cases() {
  const dense = (type, std, extra) => {
    const { experts, "experts-used": used, ...spec } = model("llama", type, std, extra);
    return { ...spec, dense: true };
  };
  const plain = dense("F32", 0.06);
  return [
    comparison("exact/llama/dense", plain, kExact, { kv: "f32" }),
    comparison("exact/llama/dense, awkward sizes", dense("F32", 0.06, awkward("llama")), kExact, { kv: "f32" }),
    ...["F16", "Q8_0", "Q4_K_M"].map((type) =>
      comparison(`quant/llama/dense ${type}`, dense(type, 0.02), kQuantised, { n_tokens: kManyTokens }),
    ),
    comparison("bites/gate and up swapped/llama, dense", plain, kExact, {
      kv: "f32",
      kind: "fault",
      edit: swap_gate_and_up,
    }),
  ];
}

// Other cache types, on F32 weights. bf16 and q8_0 agree with llama.cpp's directly; no bound was
// promised, so that of kQuantised is taken (measured: p95 1e-4 and less). llama.cpp allows a
// quantised V cache with flash attention only, and its kernel there also rounds q to 8 bits; its
// Hadamard rotation of a quantised cache is off (see oracle.mjs).
const kKvTypes = { bf16: { flash: false }, q8_0: { flash: true } };

// The two engines choose the scales of q4_0 differently, so their caches differ by as much as
// either differs from an exact one, and only the cost can be compared: the median of KL(llama.cpp
// with an F32 cache || sluice with q4_0), as a multiple of the same for llama.cpp with q4_0.
// Measured 0.85 to 1.12 over the four architectures; a cache type that is ignored gives 1e-4 or
// less.
const kCost = { least: 0.5, most: 1.5 };

function kv_cases() {
  return kArchitectures.flatMap((arch) => {
    const spec = model(arch, "F32", 0.02);
    const direct = Object.entries(kKvTypes).map(([kv, { flash }]) =>
      comparison(`kv/${arch}/${kv}`, spec, kQuantised, { kv, flash, n_tokens: kManyTokens }),
    );
    return [
      ...direct,
      comparison(`kv/${arch}/q4_0`, spec, null, {
        kv: "q4_0",
        flash: true,
        n_tokens: kManyTokens,
        cost: kCost,
      }),
    ];
  });
}

// Greedy runs. Only llama.cpp's own answer decides which seeds count (a clear lead at each step, no
// end-of-generation token), so agreement is never a reason to be chosen.
export const kGreedy = { n_new: 32, n_seeds: 4, margin: 5e-3, per_arch: 2, at_least: 3 };

function greedy_cases() {
  return kArchitectures.flatMap((arch) =>
    Array.from({ length: kGreedy.n_seeds }, (_, i) =>
      comparison(`greedy/${arch}/seed ${i + 1}`, model(arch, "F32", 0.06, { seed: i + 1 }), null, {
        kind: "greedy",
        n_tokens: 8,
      }),
    ),
  );
}

// Faults: sluice sees the edited file, and the same check that passes above must fail. `holds:
// true` marks the counter-check, an edit that must change nothing.
function fault_cases() {
  const exact = (arch, extra) => [model(arch, "F32", 0.06, extra), kExact, { kv: "f32" }];
  const loose = (arch, type) => [model(arch, type, 0.02), kQuantised, { n_tokens: kManyTokens }];
  const fault = (name, edit, [spec, bound, extra], more = {}) =>
    comparison(`bites/${name}`, spec, bound, { kind: "fault", edit, ...extra, ...more });
  const cases = [];
  for (const arch of kArchitectures) {
    const is_dense = kDense.includes(arch);
    const [what, edit] = is_dense ? ["gate and up", swap_gate_and_up] : ["one expert", swap_experts];
    cases.push(fault(`${what} swapped/${arch}`, edit, exact(arch)));
  }
  for (const arch of ["llama", "qwen2moe"])
    cases.push(fault(`RoPE paired wrongly/${arch}`, pair_rope_wrongly, exact(arch)));
  for (const arch of kHybrids) {
    cases.push(fault(`no gate on attention/${arch}`, drop_attention_gate, exact(arch)));
    cases.push(fault(`no decay/${arch}`, drop_decay, exact(arch)));
    cases.push(fault(`taps reversed/${arch}`, reverse_taps, exact(arch)));
    cases.push(fault(`key heads swapped/${arch}`, swap_key_heads, exact(arch)));
  }
  cases.push(fault("no renormalisation", drop_renormalisation, exact("llama")));
  cases.push(
    fault(
      "no renormalisation, all experts used",
      drop_renormalisation,
      exact("llama", { "experts-used": 8 }),
      { holds: true },
    ),
  );
  cases.push(fault("one expert swapped, Q4_K", swap_experts, loose("qwen3moe", "Q4_K")));
  const tied = [model("qwen35moe", "Q4_K", 0.02), kTied, { n_tokens: kManyTokens, exact: true }];
  cases.push(fault("one expert swapped, Q4_K, ties left out", swap_experts, tied));
  const untied = [model("qwen3next", "Q4_K", 0.02, kAllUsed), kQuantised, { n_tokens: kManyTokens }];
  cases.push(fault("one expert swapped, Q4_K, no ties", swap_experts, untied));
  cases.push(fault("key heads swapped, Q4_K, no ties", swap_key_heads, untied));
  cases.push(fault("RoPE paired wrongly, Q4_K", pair_rope_wrongly, loose("llama", "Q4_K")));
  cases.push(
    fault(
      "sub-block scales dropped, Q4_K",
      (gguf) => drop_sub_block_scales(gguf, "blk.0.ffn_down_exps.weight"),
      loose("qwen3moe", "Q4_K"),
    ),
  );
  cases.push(
    fault(
      "minima dropped, Q4_K",
      (gguf) => drop_minima(gguf, "blk.0.ffn_down_exps.weight"),
      loose("qwen3moe", "Q4_K"),
    ),
  );
  cases.push(
    fault(
      "one block's scale halved, Q4_K",
      (gguf) => halve_block_scale(gguf, "output.weight", 100),
      loose("qwen3moe", "Q4_K"),
    ),
  );
  const unread = { kv: "q4_0", sluice_kv: "f16", flash: true, cost: kCost };
  for (const arch of kArchitectures)
    cases.push(fault(`cache type ignored/${arch}`, () => {}, loose(arch, "F32"), unread));
  return cases;
}

// Groups are run one after the other, and the model files of a group are removed at its end.
export function case_groups() {
  const groups = kArchitectures.map((arch) =>
    [...quantised_cases(), ...no_ties_cases()].filter((test) => test.model.arch === arch),
  );
  const forms = [...hybrid_form_cases(), ...dense_llama_cases()];
  return [[...exact_cases(), ...forms], ...groups, kv_cases(), greedy_cases(), fault_cases()];
}
