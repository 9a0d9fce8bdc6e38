// A model that is not one: answers from a table, and experts that a seeded walk makes hot, moves to VRAM and drops again.
// Same questions, same answers; only the clock of the one who asks decides how fast.
// SPDX-License-Identifier: Apache-2.0

const CODE = `A queue with a lock is enough here, and easy to read:

\`\`\`cpp
// Takes the oldest request, or waits for one.
Request RequestQueue::take(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_for(lock, patience, [&] { return !waiting_.empty(); })) {
    throw Error(Errc::cancelled, "no request came in time");
  }
  Request next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;  // 42 others may wait
}
\`\`\`

Two things to note:

1. \`wait_for\` takes the **predicate**, so a spurious wake-up goes back to sleep.
2. The lock is held only while the queue is touched.

| operation | cost | allocates |
|:--|--:|:-:|
| \`take\` | 0.3 µs | no |
| \`put\` | 0.4 µs | rarely |

In Python the same is one line: \`queue.get(timeout=0.1)\`.`;

const PARAGRAPHS = [
  "## Why experts move\n\nA mixture of experts reads only a few of its experts for each token. Over a text, some are asked for often and most hardly at all, so a small cache in VRAM answers a large share of the questions.",
  "The share that is found there is the **hit rate**. What is not found is either computed by the CPU, where the weights already are, or sent over the link; the plan decides which is sooner done.",
  "> The link is the narrow place. Everything else follows from how few bytes cross it.",
  "- Hot experts stay.\n- Cold ones give way.\n- One that is predicted arrives before it is asked for.",
  "What you see beside this text is that, live: each row is a layer, each cell an expert, and the colour says where it is and how often it was asked for in the last seconds.",
];

const ANSWERS = [
  [/17 \+ 25/, { text: "17 + 25 = 42." }],
  [/code|queue/i, { text: CODE }],
  [/think/i, { reasoning: "The person asks for a sum. 17 and 25: seven and five are twelve, carry one; one and two and one are four. So 42.\n\nLet me check by adding the other way round: 25 + 17 = 42. Good.", text: "It is **42**." }],
  [/story/i, { text: Array.from({ length: 400 }, (_, i) => i + 1).join(", ") }],
  [/long|expert/i, { text: Array.from({ length: 3 }, () => PARAGRAPHS.join("\n\n")).join("\n\n") }],
];

export function answerTo(messages) {
  const last = messages.at(-1)?.content ?? "";
  const found = ANSWERS.find(([pattern]) => pattern.test(last));
  return found ? found[1] : { text: `You wrote: ${last}` };
}

/** Pieces as a tokenizer makes them: words and marks. */
export function tokensOf(text) {
  return text.match(/\s?[\p{L}\p{N}]{1,7}|\s|[^]/gu) ?? [];
}

export class MockModel {
  constructor({ layers = 48, experts = 128, slots = 1536, used = 8, device = "mock" } = {}) {
    Object.assign(this, { layers, experts, slots, used, device });
    this.heat = new Float64Array(layers * experts);
    this.where = new Uint8Array(layers * experts);
    this.arriving = [];
    this.counters = { hits: 0, staged: 0, link: 0, cpu: 0, link_bytes: 0 };
    this.running = 0;
    this.rate = 0;
    this.seed = 1;
    this.bias = Float64Array.from({ length: layers * experts }, () => this.random() ** 3);
    const byBias = [...this.bias.keys()].sort((a, b) => this.bias[b] - this.bias[a]);
    for (const i of byBias.slice(0, slots)) this.where[i] = 1;
    this.heat = this.heat.map((_, i) => 2 * this.bias[i] * this.random());
  }

  random() {
    this.seed = (this.seed * 1103515245 + 12345) % 2147483648;
    return this.seed / 2147483648;
  }

  /** One token: each layer asks for some experts. */
  step() {
    for (let i = 0; i < this.heat.length; ++i) this.heat[i] *= 0.985;
    this.arrive();
    const first = Math.floor(this.random() * this.layers); // not always the same ones at the link first
    for (let n = 0; n < this.layers; ++n) {
      const layer = (first + n) % this.layers;
      for (let k = 0; k < this.used; ++k) this.ask(layer * this.experts + this.pick(layer));
    }
    this.evict();
  }

  arrive() {
    for (const i of this.arriving) this.where[i] = 1;
    this.arriving = [];
  }

  pick(layer) {
    for (;;) {
      const expert = Math.floor(this.random() * this.experts);
      if (this.random() < this.bias[layer * this.experts + expert] + 0.02) return expert;
    }
  }

  ask(i) {
    this.heat[i] += 1;
    if (this.where[i] === 1) {
      this.counters.hits += 1;
    } else if (this.slots > 0 && this.where[i] === 0 && this.heat[i] > 2.2 && this.arriving.length < 10) {
      this.where[i] = 2;
      this.arriving.push(i);
      this.counters.staged += 1;
      this.counters.link_bytes += 2_600_000;
    } else {
      this.counters.cpu += 1;
    }
  }

  evict() {
    const resident = [...this.where.keys()].filter((i) => this.where[i] === 1);
    const n = resident.length + this.arriving.length - this.slots;
    if (n > 0) for (const i of resident.sort((a, b) => this.heat[a] - this.heat[b]).slice(0, n)) this.where[i] = 0;
  }

  state() {
    const scaled = Uint8Array.from(this.heat, (h) => Math.min(255, Math.round((255 * Math.log1p(h)) / Math.log1p(30))));
    const asked = this.counters.hits + this.counters.staged + this.counters.cpu;
    return {
      model: { name: "Mock-30B-A3B", architecture: "qwen3moe", n_layers: this.layers, n_experts: this.experts, n_experts_used: this.used, n_ctx: 32768 },
      plan: {
        device: this.device,
        mode: this.slots > 0 ? "trunk and hot experts in VRAM" : "all on the CPU",
        reason: this.slots > 0 ? "The trunk fits with 10.1 GiB to spare, which holds a quarter of the experts; the CPU computes the misses." : "There is no GPU.",
        vram_bytes: this.slots * 7_000_000,
        n_slots: this.slots,
        predicted_decode: 38.4,
      },
      speed: { decode_tps: this.rate, prefill_tps: 410, running: this.running, queued: 0 },
      experts: { ...this.counters, hit_rate: asked ? this.counters.hits / asked : 0 },
      map: { layers: this.layers, experts: this.experts, where: Buffer.from(this.where).toString("base64"), heat: Buffer.from(scaled).toString("base64") },
    };
  }
}
