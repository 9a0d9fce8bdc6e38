# SPDX-License-Identifier: Apache-2.0
"""What is different in the golden models with gated DeltaNet layers (Qwen3.5-MoE, Qwen3-Next): their
configuration, their keys, and how their weights stand in a GGUF file. Plain nested lists, as in
make_golden.py."""

import math
from dataclasses import dataclass

I32, U32, ARRAY = 5, 4, 9


@dataclass(frozen=True)
class DeltaNet:
    n_key_heads: int
    n_value_heads: int
    head_dim: int
    n_taps: int
    attention_every: int  # one layer of so many attends
    tiled: bool  # GGUF has the value heads of equal remainder together (qwen35moe), or the neighbours
    rope_sections: tuple = ()

    def is_linear(self, layer):
        return (layer + 1) % self.attention_every != 0

    def n_sharing(self):
        return self.n_value_heads // self.n_key_heads

    def cols(self):
        """(of all keys, of all values)"""
        return self.n_key_heads * self.head_dim, self.n_value_heads * self.head_dim

    def value_heads(self):
        """For each value head of the GGUF file, its number in transformers, where those that share a
        key head are neighbours."""
        if not self.tiled:
            return list(range(self.n_value_heads))
        r = self.n_sharing()
        return [k * r + j for j in range(r) for k in range(self.n_key_heads)]


def metadata(net):
    keys = [
        ("full_attention_interval", U32, net.attention_every),
        ("ssm.conv_kernel", U32, net.n_taps),
        ("ssm.state_size", U32, net.head_dim),
        ("ssm.group_count", U32, net.n_key_heads),
        ("ssm.time_step_rank", U32, net.n_value_heads),
        ("ssm.inner_size", U32, net.cols()[1]),
    ]
    if net.rope_sections:
        keys.append(("rope.dimension_sections", (ARRAY, I32), [*net.rope_sections, 0]))
    return keys


def config(net, n_layers, n_rot, head_dim, rope_base):
    """What transformers' configuration gets besides the usual."""
    rope = {"rope_type": "default", "rope_theta": rope_base, "partial_rotary_factor": n_rot / head_dim}
    if net.rope_sections:
        rope |= {"mrope_section": list(net.rope_sections), "mrope_interleaved": True}
    return dict(
        head_dim=head_dim, partial_rotary_factor=n_rot / head_dim, rope_parameters=rope,
        layer_types=["linear_attention" if net.is_linear(i) else "full_attention" for i in range(n_layers)],
        linear_num_key_heads=net.n_key_heads, linear_num_value_heads=net.n_value_heads,
        linear_key_head_dim=net.head_dim, linear_value_head_dim=net.head_dim, linear_conv_kernel_dim=net.n_taps,
        norm_topk_prob=True,
    )


def one_plus(norm):
    """Norms of these models are around 0 in transformers and mean 1 + w; files hold what is multiplied."""
    return [1.0 + x for x in norm]


def heads(rows, order, dim):
    return [rows[h * dim + i] for h in order for i in range(dim)]


def split_by_key_head(rows, net, widths):
    """Rows that stand by key head, the parts of each side by side, as one list for each part."""
    parts, at = [[] for _ in widths], 0
    for _ in range(net.n_key_heads):
        for part, width in zip(parts, widths):
            part += rows[at:at + width]
            at += width
    return parts


def inputs(net, weights, lin, d_model):
    """{GGUF name: matrix} of what a layer computes of its input: q k v, z, b and a."""
    keys, values = net.cols()
    r, dim, order = net.n_sharing(), net.head_dim, net.value_heads()
    if net.tiled:
        qkv = weights.take(lin + "in_proj_qkv.weight", 2 * keys + values, d_model)
        return {
            "attn_qkv.weight": qkv[:2 * keys] + heads(qkv[2 * keys:], order, dim),
            "attn_gate.weight": heads(weights.take(lin + "in_proj_z.weight", values, d_model), order, dim),
            "ssm_beta.weight": heads(weights.take(lin + "in_proj_b.weight", net.n_value_heads, d_model), order, 1),
            "ssm_alpha.weight": heads(weights.take(lin + "in_proj_a.weight", net.n_value_heads, d_model), order, 1),
        }
    qkvz = weights.take(lin + "in_proj_qkvz.weight", 2 * keys + 2 * values, d_model)
    q, k, v, z = split_by_key_head(qkvz, net, (dim, dim, r * dim, r * dim))
    return {
        "attn_qkv.weight": q + k + v,
        "attn_gate.weight": z,
        "ssm_ba.weight": weights.take(lin + "in_proj_ba.weight", 2 * net.n_value_heads, d_model),
    }


def linear_tensors(net, weights, hf, d_model):
    lin, (keys, values) = hf + "linear_attn.", net.cols()
    dim, order, channels = net.head_dim, net.value_heads(), 2 * keys + values
    conv = [taps[0] for taps in weights.take(lin + "conv1d.weight", channels, 1, net.n_taps)]
    out = weights.take(lin + "out_proj.weight", d_model, values)
    return inputs(net, weights, lin, d_model) | {
        "ssm_conv1d.weight": conv[:2 * keys] + heads(conv[2 * keys:], order, dim),
        "ssm_dt.bias": heads(weights.take(lin + "dt_bias", net.n_value_heads), order, 1),
        "ssm_a": [-math.exp(x) for x in heads(weights.take(lin + "A_log", net.n_value_heads), order, 1)],
        "ssm_norm.weight": weights.take(lin + "norm.weight", dim),
        "ssm_out.weight": [heads(row, order, dim) for row in out],
    }
