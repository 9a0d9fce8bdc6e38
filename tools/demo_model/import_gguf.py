# A GGUF file in F32 as weights again: the way back of export_gguf.py. A shipped file, turned to F32 by
# `sluice quantize`, becomes the model that transformers is asked about (golden_shipped.py).
# SPDX-License-Identifier: Apache-2.0
import math
import struct

import torch

from gguf_writer import ALIGNMENT, ARRAY, BOOL, F32, FLOAT, I32, STRING, U32

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, U32: 4, I32: 4, FLOAT: 4, BOOL: 1, 10: 8, 11: 8, 12: 8}


class _Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def string(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()

    def skip(self, kind):
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            of, n = self.take("IQ")
            for _ in range(n):
                self.skip(of)
        else:
            self.at += _SIZES[kind]


def read_tensors(path):
    """name -> float32 tensor, outermost dimension first."""
    with open(path, "rb") as f:
        r = _Reader(f.read())
    magic, version, n_tensors, n_keys = r.take("4sIQQ")
    if magic != b"GGUF" or version != 3:
        raise ValueError(f"{path}: expected a GGUF file of version 3")
    for _ in range(n_keys):
        r.string()
        r.skip(r.take("I"))
    found = []
    for _ in range(n_tensors):
        name, n_dims = r.string(), r.take("I")
        shape = [r.take("Q") for _ in range(n_dims)]
        found.append((name, shape, r.take("I"), r.take("Q")))
    start = -(-r.at // ALIGNMENT) * ALIGNMENT
    out = {}
    for name, shape, kind, offset in found:
        if kind != F32:
            raise ValueError(f"{path}: {name} is of type {kind}; expected F32, as `sluice quantize IN OUT F32` writes it")
        values = torch.frombuffer(bytearray(r.data[start + offset:start + offset + 4 * math.prod(shape)]), dtype=torch.float32)
        out[name] = values.reshape(shape[::-1])
    return out


def untiled(t, c, dim, head_dim):
    """The way back of export_gguf.tiled."""
    shape = list(t.shape)
    split = t.reshape(*shape[:dim], c.n_value_heads // c.n_key_heads, c.n_key_heads, head_dim, *shape[dim + 1:])
    return split.transpose(dim, dim + 1).reshape(shape)


def untiled_after_keys(t, c):
    n_qk = 2 * c.n_key_heads * c.linear_head_dim
    return torch.cat([t[:n_qk], untiled(t[n_qk:], c, 0, c.linear_head_dim)])


def weights_of(config, tensors):
    """The state_dict whose export these tensors are."""
    c, t, w = config, dict(tensors), {}
    take = lambda name: t.pop(name + ".weight")
    norm = lambda name: take(name) - 1 if c.is_hybrid else take(name)
    w["model.embed_tokens.weight"] = take("token_embd")
    w["model.norm.weight"] = norm("output_norm")
    w["lm_head.weight"] = take("output")
    for i in range(c.n_layers):
        hf, b = f"model.layers.{i}.", f"blk.{i}."
        w[hf + "input_layernorm.weight"] = norm(b + "attn_norm")
        w[hf + "post_attention_layernorm.weight"] = norm(b + ("post_attention_norm" if c.is_hybrid else "ffn_norm"))
        if c.is_linear(i):
            lin, d = hf + "linear_attn.", c.linear_head_dim
            w[lin + "in_proj_qkv.weight"] = untiled_after_keys(take(b + "attn_qkv"), c)
            w[lin + "in_proj_z.weight"] = untiled(take(b + "attn_gate"), c, 0, d)
            w[lin + "conv1d.weight"] = untiled_after_keys(take(b + "ssm_conv1d"), c).unsqueeze(1)
            w[lin + "dt_bias"] = untiled(t.pop(b + "ssm_dt.bias"), c, 0, 1)
            w[lin + "A_log"] = untiled((-t.pop(b + "ssm_a")).log(), c, 0, 1)
            w[lin + "in_proj_b.weight"] = untiled(take(b + "ssm_beta"), c, 0, 1)
            w[lin + "in_proj_a.weight"] = untiled(take(b + "ssm_alpha"), c, 0, 1)
            w[lin + "norm.weight"] = take(b + "ssm_norm")
            w[lin + "out_proj.weight"] = untiled(take(b + "ssm_out"), c, 1, d)
        else:
            att = hf + "self_attn."
            for ours, theirs in (("attn_q", "q_proj"), ("attn_k", "k_proj"), ("attn_v", "v_proj"), ("attn_output", "o_proj")):
                w[f"{att}{theirs}.weight"] = take(b + ours)
            w[att + "q_norm.weight"], w[att + "k_norm.weight"] = norm(b + "attn_q_norm"), norm(b + "attn_k_norm")
        w[hf + "mlp.gate.weight"] = take(b + "ffn_gate_inp")
        w[hf + "mlp.experts.gate_up_proj"] = torch.cat([take(b + "ffn_gate_exps"), take(b + "ffn_up_exps")], 1)
        w[hf + "mlp.experts.down_proj"] = take(b + "ffn_down_exps")
        if c.d_ff_shared:
            w[hf + "mlp.shared_expert_gate.weight"] = take(b + "ffn_gate_inp_shexp").unsqueeze(0)
            for part in ("gate", "up", "down"):
                w[f"{hf}mlp.shared_expert.{part}_proj.weight"] = take(f"{b}ffn_{part}_shexp")
    if t:
        raise ValueError(f"tensors that no weight takes: {sorted(t)[:5]}")
    return w
