# A checkpoint of train.py as a GGUF file: BF16 matrices, F32 for what stays F32 in every file, the
# tokenizer, the chat template and the recommended sampling inside.
#
#   export_gguf.py CHECKPOINT TOKENIZER.json OUT.gguf
# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import torch

import gguf_writer as gguf
from gguf_writer import ARRAY, BOOL, FLOAT, I32, STRING, U32
from model import config_of
from tokenizer import VOCABULARY, Tokenizer

TEMPLATE = pathlib.Path(__file__).with_name("chat_template.jinja")
# Small models do best close to greedy; a little warmth makes each story another one.
SAMPLING = [("temp", FLOAT, 0.3), ("top_k", I32, 20), ("top_p", FLOAT, 0.95), ("min_p", FLOAT, 0.05)]


def metadata(config, tokenizer):
    a, c = config.architecture, config
    keys = [
        ("general.architecture", STRING, a),
        ("general.type", STRING, "model"),
        ("general.name", STRING, c.name),
        ("general.description", STRING, "Demo model of sluice, trained on text of its own grammar"),
        ("general.license", STRING, "apache-2.0"),
        ("general.file_type", U32, 32),
        ("general.quantization_version", U32, 2),
        *((f"general.sampling.{name}", kind, value) for name, kind, value in SAMPLING),
        (f"{a}.block_count", U32, c.n_layers),
        (f"{a}.context_length", U32, c.n_ctx),
        (f"{a}.embedding_length", U32, c.d_model),
        (f"{a}.feed_forward_length", U32, c.d_ff * c.n_experts_used),
        (f"{a}.attention.head_count", U32, c.n_heads),
        (f"{a}.attention.head_count_kv", U32, c.n_kv_heads),
        (f"{a}.attention.key_length", U32, c.head_dim),
        (f"{a}.attention.value_length", U32, c.head_dim),
        (f"{a}.attention.layer_norm_rms_epsilon", FLOAT, c.eps),
        (f"{a}.rope.freq_base", FLOAT, c.rope_theta),
        (f"{a}.expert_count", U32, c.n_experts),
        (f"{a}.expert_used_count", U32, c.n_experts_used),
        (f"{a}.expert_feed_forward_length", U32, c.d_ff),
    ]
    if c.is_hybrid:
        keys += [
            (f"{a}.expert_shared_feed_forward_length", U32, c.d_ff_shared),
            (f"{a}.rope.dimension_count", U32, c.n_rot),
            (f"{a}.rope.dimension_sections", (ARRAY, I32), [*c.rope_sections, 0]),
            (f"{a}.full_attention_interval", U32, c.full_attention_interval),
            (f"{a}.ssm.conv_kernel", U32, c.conv_kernel),
            (f"{a}.ssm.state_size", U32, c.linear_head_dim),
            (f"{a}.ssm.group_count", U32, c.n_key_heads),
            (f"{a}.ssm.time_step_rank", U32, c.n_value_heads),
            (f"{a}.ssm.inner_size", U32, c.n_value_heads * c.linear_head_dim),
        ]
    return keys + [
        ("tokenizer.ggml.model", STRING, "gpt2"),
        ("tokenizer.ggml.pre", STRING, "qwen2"),
        ("tokenizer.ggml.tokens", (ARRAY, STRING), tokenizer.tokens),
        ("tokenizer.ggml.token_type", (ARRAY, I32), tokenizer.kinds()),
        ("tokenizer.ggml.merges", (ARRAY, STRING), [" ".join(m) for m in tokenizer.merges]),
        ("tokenizer.ggml.bos_token_id", U32, tokenizer.ids["<|endoftext|>"]),
        ("tokenizer.ggml.eos_token_id", U32, tokenizer.ids["<|im_end|>"]),
        ("tokenizer.ggml.padding_token_id", U32, tokenizer.ids["<|endoftext|>"]),
        ("tokenizer.ggml.add_bos_token", BOOL, False),
        ("tokenizer.chat_template", STRING, TEMPLATE.read_text()),
    ]


def tiled(t, c, dim, head_dim):
    """Value heads from the order of transformers (all of key head 0, all of key head 1, ...) to that
    of GGUF (the first of each key head, the second of each, ...), along `dim`."""
    shape = list(t.shape)
    per_key = c.n_value_heads // c.n_key_heads
    split = t.reshape(*shape[:dim], c.n_key_heads, per_key, head_dim, *shape[dim + 1:])
    return split.transpose(dim, dim + 1).reshape(shape)


def tiled_after_keys(t, c):
    """As tiled, for rows of q, k and v of which only those of v are reordered."""
    n_qk = 2 * c.n_key_heads * c.linear_head_dim
    return torch.cat([t[:n_qk], tiled(t[n_qk:], c, 0, c.linear_head_dim)])


def tensors(config, weights):
    """[(GGUF name, tensor, whether it is a matrix that may be quantised)]"""
    c, w, out = config, dict(weights), []
    norm = lambda name: w.pop(name) + 1 if c.is_hybrid else w.pop(name)
    put = lambda name, tensor, quantisable=True: out.append((name, tensor, quantisable))
    put("token_embd.weight", w.pop("model.embed_tokens.weight"))
    put("output_norm.weight", norm("model.norm.weight"), False)
    put("output.weight", w.pop("lm_head.weight"))
    for i in range(c.n_layers):
        hf, b = f"model.layers.{i}.", f"blk.{i}."
        put(b + "attn_norm.weight", norm(hf + "input_layernorm.weight"), False)
        after = "post_attention_norm" if c.is_hybrid else "ffn_norm"
        put(b + after + ".weight", norm(hf + "post_attention_layernorm.weight"), False)
        if c.is_linear(i):
            lin, d = hf + "linear_attn.", c.linear_head_dim
            put(b + "attn_qkv.weight", tiled_after_keys(w.pop(lin + "in_proj_qkv.weight"), c))
            put(b + "attn_gate.weight", tiled(w.pop(lin + "in_proj_z.weight"), c, 0, d))
            put(b + "ssm_conv1d.weight", tiled_after_keys(w.pop(lin + "conv1d.weight").squeeze(1), c), False)
            put(b + "ssm_dt.bias", tiled(w.pop(lin + "dt_bias"), c, 0, 1), False)
            put(b + "ssm_a", -tiled(w.pop(lin + "A_log"), c, 0, 1).exp(), False)
            put(b + "ssm_beta.weight", tiled(w.pop(lin + "in_proj_b.weight"), c, 0, 1))
            put(b + "ssm_alpha.weight", tiled(w.pop(lin + "in_proj_a.weight"), c, 0, 1))
            put(b + "ssm_norm.weight", w.pop(lin + "norm.weight"), False)
            put(b + "ssm_out.weight", tiled(w.pop(lin + "out_proj.weight"), c, 1, d))
        else:
            att = hf + "self_attn."
            for ours, theirs in (("attn_q", "q_proj"), ("attn_k", "k_proj"), ("attn_v", "v_proj"), ("attn_output", "o_proj")):
                put(f"{b}{ours}.weight", w.pop(f"{att}{theirs}.weight"))
            put(b + "attn_q_norm.weight", norm(att + "q_norm.weight"), False)
            put(b + "attn_k_norm.weight", norm(att + "k_norm.weight"), False)
        gate, up = w.pop(hf + "mlp.experts.gate_up_proj").chunk(2, 1)
        put(b + "ffn_gate_inp.weight", w.pop(hf + "mlp.gate.weight"), False)
        put(b + "ffn_gate_exps.weight", gate)
        put(b + "ffn_up_exps.weight", up)
        put(b + "ffn_down_exps.weight", w.pop(hf + "mlp.experts.down_proj"))
        if c.d_ff_shared:
            put(b + "ffn_gate_inp_shexp.weight", w.pop(hf + "mlp.shared_expert_gate.weight").squeeze(0), False)
            for part in ("gate", "up", "down"):
                put(f"{b}ffn_{part}_shexp.weight", w.pop(f"{hf}mlp.shared_expert.{part}_proj.weight"))
    if w:
        raise ValueError(f"weights that no tensor takes: {sorted(w)[:5]}")
    return out


def as_bytes(tensor, kind):
    t = tensor.detach().contiguous()
    if kind == gguf.F32:
        return t.float().numpy().tobytes()
    return t.to(torch.bfloat16).view(torch.int16).numpy().tobytes()


def export(config, weights, tokenizer, path):
    written = []
    for name, tensor, quantisable in tensors(config, weights):
        kind = gguf.BF16 if quantisable else gguf.F32
        if quantisable and not torch.equal(tensor, tensor.to(torch.bfloat16).float()):
            raise ValueError(f"{name} is not rounded to bf16")
        written.append((name, list(tensor.shape)[::-1], kind, as_bytes(tensor, kind)))
    gguf.write(path, metadata(config, tokenizer), written)


def load_checkpoint(path):
    """(config, weights, facts)"""
    saved = torch.load(path, map_location="cpu")
    return config_of(saved["facts"]["model"], VOCABULARY), saved["weights"], saved["facts"]


if __name__ == "__main__":
    checkpoint, tokenizer_path, out = sys.argv[1:]
    config, weights, _ = load_checkpoint(checkpoint)
    export(config, weights, Tokenizer.load(tokenizer_path), out)
