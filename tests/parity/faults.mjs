// Deliberate faults, each an edit of a model file that makes a right engine answer as a faulty one
// would answer on the untouched file. The suite hands the edited file to sluice and the untouched
// one to llama.cpp, and its own check must fail. Edits are in place on what gguf_edit.mjs read; no
// product switch is involved.
import { block_bytes, bytes_of, read_u32, value_string, value_u32 } from "./gguf_edit.mjs";

const kF32 = 0;

// One expert read at another's place: experts a and b exchange their up-projections in one layer.
export function swap_experts(gguf, layer = 0, a = 0, b = 1) {
  const tensor = gguf.tensors.get(`blk.${layer}.ffn_up_exps.weight`);
  const slab = tensor.bytes.length / tensor.dims[2];
  const kept = Buffer.from(tensor.bytes.subarray(a * slab, (a + 1) * slab));
  tensor.bytes.copy(tensor.bytes, a * slab, b * slab, (b + 1) * slab);
  kept.copy(tensor.bytes, b * slab);
}

// Gate and up of a dense network exchange their places in one layer: SiLU is of the other product.
export function swap_gate_and_up(gguf, layer = 0) {
  const of = (name) => `blk.${layer}.ffn_${name}.weight`;
  const { bytes, type } = gguf.tensors.get(of("gate"));
  const up = gguf.tensors.get(of("up"));
  if (up.type !== type) throw new Error(`gate is of type ${type}, up of ${up.type}`);
  const kept = Buffer.from(bytes);
  up.bytes.copy(bytes);
  kept.copy(up.bytes);
}

// Rows of every head of q and k in another order; to_source(row, head_dim) is the row that moves to
// `row`.
function reorder_heads(gguf, to_source) {
  const arch = architecture(gguf);
  const head_dim = head_dim_of(gguf, arch);
  for (const [name, tensor] of gguf.tensors) {
    if (!/attn_[qk]\.(weight|bias)$/.test(name)) continue;
    const n_rows = tensor.dims.at(-1);
    const row_bytes = tensor.bytes.length / n_rows;
    const source = Buffer.from(tensor.bytes);
    for (let row = 0; row < n_rows; ++row) {
      const in_head = row % head_dim;
      const from = row - in_head + to_source(in_head, head_dim);
      source.copy(tensor.bytes, row * row_bytes, from * row_bytes, (from + 1) * row_bytes);
    }
  }
}

// Pairs (2j, 2j+1) become pairs (j, j + d/2): what NEOX rotates then is what NORM rotated before.
const interleaved_to_halves = (row, d) => (row < d / 2 ? 2 * row : 2 * (row - d / 2) + 1);
const halves_to_interleaved = (row, d) => (row % 2 === 0 ? row / 2 : d / 2 + (row - 1) / 2);

// RoPE pairs the wrong dimensions. Attention without RoPE is blind to this order, so nothing else
// changes; only for architectures whose q and k norms do not weigh rows (llama, qwen2moe).
export function pair_rope_wrongly(gguf) {
  reorder_heads(
    gguf,
    architecture(gguf) === "llama" ? interleaved_to_halves : halves_to_interleaved,
  );
}

// Router weights not renormalised: a llama file (softmax over all, top-k, divided by their sum)
// becomes a qwen2moe file (the same, not divided). The other two differences are taken out: q and k
// rows are reordered so that NEOX rotation does what NORM did, and the shared expert that qwen2moe
// must have projects down to zero. With all experts used the sum is one and both files mean the
// same; the suite runs that too, to show that this edit changes renormalisation alone.
export function drop_renormalisation(gguf) {
  if (architecture(gguf) !== "llama")
    throw new Error("drop_renormalisation starts from a llama file");
  reorder_heads(gguf, interleaved_to_halves);
  const n_layers = read_u32(gguf, "llama.block_count");
  const d_model = read_u32(gguf, "llama.embedding_length");
  const n_ff = read_u32(gguf, "llama.feed_forward_length");
  const renamed = [...gguf.keys].map(([name, value]) => [
    name.replace(/^llama\./, "qwen2moe."),
    value,
  ]);
  gguf.keys = new Map(renamed);
  gguf.keys.set("general.architecture", value_string("qwen2moe"));
  gguf.keys.set("qwen2moe.expert_feed_forward_length", value_u32(n_ff));
  gguf.keys.set("qwen2moe.expert_shared_feed_forward_length", value_u32(n_ff));
  const zeros = (dims) => ({
    dims,
    type: kF32,
    bytes: Buffer.alloc(
      bytes_of(
        kF32,
        dims.reduce((a, b) => a * b, 1),
      ),
    ),
  });
  for (let layer = 0; layer < n_layers; ++layer) {
    gguf.tensors.set(`blk.${layer}.ffn_gate_inp_shexp.weight`, zeros([d_model]));
    gguf.tensors.set(`blk.${layer}.ffn_gate_shexp.weight`, zeros([d_model, n_ff]));
    gguf.tensors.set(`blk.${layer}.ffn_up_shexp.weight`, zeros([d_model, n_ff]));
    gguf.tensors.set(`blk.${layer}.ffn_down_shexp.weight`, zeros([n_ff, d_model]));
    for (const [part, weight] of ["q", "k", "v"].map((x) => [
      x,
      gguf.tensors.get(`blk.${layer}.attn_${x}.weight`),
    ])) {
      if (!gguf.tensors.has(`blk.${layer}.attn_${part}.bias`))
        gguf.tensors.set(`blk.${layer}.attn_${part}.bias`, zeros([weight.dims[1]]));
    }
  }
}

// The gate on attention's output left out: gates of zero let one half through everywhere, and the
// output matrix makes up for that. F32 alone, like the three below.
export function drop_attention_gate(gguf) {
  const arch = architecture(gguf);
  const head_dim = head_dim_of(gguf, arch);
  for (const [name, tensor] of gguf.tensors) {
    if (/attn_q\.weight$/.test(name)) {
      const row_bytes = tensor.bytes.length / tensor.dims[1];
      for (let row = 0; row < tensor.dims[1]; ++row)
        if (row % (2 * head_dim) >= head_dim)
          tensor.bytes.fill(0, row * row_bytes, (row + 1) * row_bytes);
    }
    if (/attn_output\.weight$/.test(name)) change_floats(tensor, (value) => 2 * value);
  }
}

// A recurrent layer that forgets nothing.
export function drop_decay(gguf) {
  for (const [name, tensor] of gguf.tensors) if (/ssm_a$/.test(name)) tensor.bytes.fill(0);
}

// The convolution's taps read from the newest to the oldest.
export function reverse_taps(gguf) {
  for (const [name, tensor] of gguf.tensors) {
    if (!/ssm_conv1d\.weight$/.test(name)) continue;
    const n_taps = tensor.dims[0];
    const source = Buffer.from(tensor.bytes);
    for (let at = 0; at < source.length / 4; ++at) {
      const from = at - (at % n_taps) + (n_taps - 1 - (at % n_taps));
      source.copy(tensor.bytes, at * 4, from * 4, (from + 1) * 4);
    }
  }
}

// Value heads that read another's key: the keys of the first two heads, and their channels of the
// convolution, change places.
export function swap_key_heads(gguf) {
  const arch = architecture(gguf);
  const dim = read_u32(gguf, `${arch}.ssm.state_size`);
  const first = read_u32(gguf, `${arch}.ssm.group_count`) * dim; // behind the queries
  for (const [name, tensor] of gguf.tensors) {
    if (!/(attn_qkv|ssm_conv1d)\.weight$/.test(name)) continue;
    const head_bytes = (tensor.bytes.length / tensor.dims[1]) * dim;
    const at = (first / dim) * head_bytes;
    const kept = Buffer.from(tensor.bytes.subarray(at, at + head_bytes));
    tensor.bytes.copy(tensor.bytes, at, at + head_bytes, at + 2 * head_bytes);
    kept.copy(tensor.bytes, at + head_bytes);
  }
}

function change_floats(tensor, change) {
  if (tensor.type !== kF32) throw new Error("expected a tensor of type F32");
  for (let at = 0; at < tensor.bytes.length; at += 4)
    tensor.bytes.writeFloatLE(change(tensor.bytes.readFloatLE(at)), at);
}

// A Q4_K reader that leaves out the 6-bit scales of the sub-blocks: in one tensor every scale
// becomes the same, 32 (the middle of its range), minima untouched. Scale j < 4 is S[j] & 63; scale
// j >= 4 is (S[j+4] & 15) | (S[j-4] >> 6) << 4.
export function drop_sub_block_scales(gguf, name) {
  const tensor = gguf.tensors.get(name);
  const size = q4_k_block_bytes(name, tensor);
  for (let block = 0; block < tensor.bytes.length; block += size) {
    const scales = tensor.bytes.subarray(block + 4, block + 16);
    for (let j = 0; j < 4; ++j) {
      scales[j] = 32 | (2 << 6);
      scales[j + 8] &= 0xf0;
    }
  }
}

// A Q4_K reader that leaves out the minima: dmin = 0 in every block of one tensor.
export function drop_minima(gguf, name) {
  const tensor = gguf.tensors.get(name);
  const size = q4_k_block_bytes(name, tensor);
  for (let block = 0; block < tensor.bytes.length; block += size)
    tensor.bytes.writeUInt16LE(0, block + 2);
}

// One scale of one block wrong: d of the first Q4_K block of one row, halved (f16, exponent less
// one).
export function halve_block_scale(gguf, name, row) {
  const tensor = gguf.tensors.get(name);
  const at = row * (tensor.dims[0] / 256) * q4_k_block_bytes(name, tensor);
  tensor.bytes.writeUInt16LE(tensor.bytes.readUInt16LE(at) - (1 << 10), at);
}

function q4_k_block_bytes(name, tensor) {
  if (tensor.type !== 12) throw new Error(`${name} has type ${tensor.type}, expected Q4_K (12)`);
  return block_bytes(12);
}

function architecture(gguf) {
  return gguf.keys.get("general.architecture").raw.toString("utf8", 8);
}

function head_dim_of(gguf, arch) {
  const key = `${arch}.attention.key_length`;
  if (gguf.keys.has(key)) return read_u32(gguf, key);
  return (
    read_u32(gguf, `${arch}.embedding_length`) / read_u32(gguf, `${arch}.attention.head_count`)
  );
}
