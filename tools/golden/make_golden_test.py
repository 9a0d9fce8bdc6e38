#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of make_golden.py that need neither PyTorch nor transformers: the GGUF writer, read back by an
independent walk over the bytes, and the mapping of names, shapes and rows. What transformers computes
is not tested here."""

import math
import struct

import make_golden as golden
from make_golden import (ARRAY, D_FF, D_MODEL, F32, I32, N_EXPERTS, N_HEADS, STRING, U32, VOCAB, flatten,
                         gguf_bytes, gguf_tensors, model_metadata, norm_pairing)


def fake_attention(spec, hf, fill):
    q, kv, state = N_HEADS * spec.head_dim, spec.n_kv_heads * spec.head_dim, {}
    for x, n in (("q", 2 * q if spec.net else q), ("k", kv), ("v", kv)):
        state[f"{hf}self_attn.{x}_proj.weight"] = fill(n, D_MODEL)
        if spec.qkv_bias:
            state[f"{hf}self_attn.{x}_proj.bias"] = fill(n)
        if spec.qk_norm != "none" and x != "v":
            state[f"{hf}self_attn.{x}_norm.weight"] = fill(spec.head_dim if spec.qk_norm == "head" else n)
    state[hf + "self_attn.o_proj.weight"] = fill(D_MODEL, q)
    return state


def fake_linear(net, hf, fill):
    lin, (keys, values), n = hf + "linear_attn.", net.cols(), net.n_value_heads
    parts = ({"in_proj_qkv": 2 * keys + values, "in_proj_z": values, "in_proj_b": n, "in_proj_a": n} if net.tiled
             else {"in_proj_qkvz": 2 * keys + 2 * values, "in_proj_ba": 2 * n})
    return {f"{lin}{name}.weight": fill(rows, D_MODEL) for name, rows in parts.items()} | {
        lin + "conv1d.weight": fill(2 * keys + values, 1, net.n_taps), lin + "dt_bias": fill(n),
        lin + "A_log": [0.01 * x for x in range(n)],  # the file has -exp of it
        lin + "norm.weight": fill(net.head_dim), lin + "out_proj.weight": fill(D_MODEL, values)}


def fake_state(spec, fused):
    """Weights of the right names and shapes whose every value is different (up to 2^24: exact in float32)."""
    counter = iter(range(1 << 24))

    def fill(*shape):
        return [fill(*shape[1:]) for _ in range(shape[0])] if shape else float(next(counter))

    state = {"model.embed_tokens.weight": fill(VOCAB, D_MODEL), "model.norm.weight": fill(D_MODEL),
             "lm_head.weight": fill(VOCAB, D_MODEL)}
    for layer in range(spec.n_layers):
        hf, moe = f"model.layers.{layer}.", f"model.layers.{layer}.mlp."
        state |= fake_linear(spec.net, hf, fill) if spec.is_linear(layer) else fake_attention(spec, hf, fill)
        state[hf + "input_layernorm.weight"] = fill(D_MODEL)
        state[hf + "post_attention_layernorm.weight"] = fill(D_MODEL)
        if spec.shared_d_ff:
            state[moe + "shared_expert_gate.weight"] = fill(1, D_MODEL)
            for name in ("gate", "up"):
                state[f"{moe}shared_expert.{name}_proj.weight"] = fill(spec.shared_d_ff, D_MODEL)
            state[f"{moe}shared_expert.down_proj.weight"] = fill(D_MODEL, spec.shared_d_ff)
        if not fused and spec.arch == "llama":
            moe, names = hf + "block_sparse_moe.", ("w1", "w3", "w2")
        else:
            names = ("gate_proj", "up_proj", "down_proj")
        state[moe + "gate.weight"] = fill(N_EXPERTS, D_MODEL)
        gate_up, down = fill(N_EXPERTS, 2 * D_FF, D_MODEL), fill(N_EXPERTS, D_MODEL, D_FF)
        if fused:
            state |= {moe + "experts.gate_up_proj": gate_up, moe + "experts.down_proj": down}
        for e in range(0 if fused else N_EXPERTS):
            for name, matrix in zip(names, (gate_up[e][:D_FF], gate_up[e][D_FF:], down[e])):
                state[f"{moe}experts.{e}.{name}.weight"] = matrix
    return state


def read_gguf(data):
    """({key: value}, {tensor: (dims, floats)}): an independent walk over what gguf_bytes() wrote."""
    at = 0

    def get(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return value

    def text():
        nonlocal at
        n = get("Q")
        at += n
        return data[at - n:at].decode()

    def value(kind):
        if kind == ARRAY:
            element, n = get("i"), get("Q")
            return [value(element) for _ in range(n)]
        return text() if kind == STRING else get({U32: "I", I32: "i", F32: "f"}[kind])

    assert data[:4] == b"GGUF"
    at = 4
    assert get("I") == 3
    n_tensors, n_keys = get("q"), get("q")
    keys = {}
    for _ in range(n_keys):
        key = text()
        keys[key] = value(get("i"))
    infos = []
    for _ in range(n_tensors):
        name = text()
        dims = [get("q") for _ in range(get("I"))]
        assert get("i") == 0
        infos.append((name, dims, get("Q")))
    start, end, tensors = -(-at // 32) * 32, 0, {}
    for name, dims, offset in infos:
        assert offset == end and offset % 32 == 0  # packed without gaps but for the padding
        n = 1
        for dim in dims:
            n *= dim
        tensors[name] = (dims, struct.unpack_from(f"<{n}f", data, start + offset))
        end = offset + -(-4 * n // 32) * 32
    assert start + end == len(data)
    return keys, tensors


def expect_refused(spec, state):
    try:
        gguf_tensors(spec, state)
    except SystemExit:
        return
    raise AssertionError("a missing, additional or misshapen weight must be refused")


def test_rows_of_halves_become_neighbours():
    assert norm_pairing(2, 4) == [0, 2, 1, 3, 4, 6, 5, 7]


def test_tensors_survive_the_file(spec, state):
    tensors = gguf_tensors(spec, state)
    _, read = read_gguf(gguf_bytes(model_metadata(spec), tensors))
    single = struct.Struct("<f")  # -exp() is no float32 yet
    round_off = lambda values: tuple(single.unpack(single.pack(x))[0] for x in values)
    assert read == {name: (list(dims), round_off(values)) for name, dims, values in tensors}
    assert sum(len(values) for _, values in read.values()) == sum(len(flatten(v)) for v in state.values())


def test_values_land_where_the_layout_says(spec, state):
    read = {name: (dims, values) for name, dims, values in gguf_tensors(spec, state)}
    place = (2 * D_FF + 5) * D_MODEL + 7  # expert 2, row 5, column 7 of [ne0, ne1, ne2]
    fused = state["model.layers.1.mlp.experts.gate_up_proj"]
    dims, gate = read["blk.1.ffn_gate_exps.weight"]
    assert dims == (D_MODEL, D_FF, N_EXPERTS) and gate[place] == fused[2][5][7]
    assert read["blk.1.ffn_up_exps.weight"][1][place] == fused[2][D_FF + 5][7]
    # Row 3 of head 1: pair 1, second member, so row 1 + head_dim/2 of the head for NORM pairing.
    row = spec.head_dim + (1 + spec.head_dim // 2 if spec.interleave_rope else 3)
    layer = next(i for i in range(spec.n_layers) if not spec.is_linear(i))
    q = state[f"model.layers.{layer}.self_attn.q_proj.weight"]
    assert read[f"blk.{layer}.attn_q.weight"][1][(spec.head_dim + 3) * D_MODEL] == q[row][0]
    if spec.net:
        test_value_heads_stand_as_the_file_has_them(spec.net, state, read)


def test_value_heads_stand_as_the_file_has_them(net, state, read):
    """Value head 1 of the file, its row 3 and column 7."""
    lin, (keys, _), dim, r = "model.layers.0.linear_attn.", net.cols(), net.head_dim, net.n_sharing()
    theirs = r if net.tiled else 1  # the first of key head 1, or the second of key head 0
    v_row = (2 * keys + dim + 3) * D_MODEL + 7
    z_row = (dim + 3) * D_MODEL + 7
    if net.tiled:
        v = state[lin + "in_proj_qkv.weight"][2 * keys + theirs * dim + 3][7]
        z = state[lin + "in_proj_z.weight"][theirs * dim + 3][7]
        assert read["blk.0.ssm_beta.weight"][1][D_MODEL + 7] == state[lin + "in_proj_b.weight"][theirs][7]
        assert read["blk.0.ssm_alpha.weight"][1][D_MODEL + 7] == state[lin + "in_proj_a.weight"][theirs][7]
    else:
        fused = state[lin + "in_proj_qkvz.weight"]  # by key head: q, k, the values, their z
        v, z = fused[2 * dim + theirs * dim + 3][7], fused[(2 + r) * dim + theirs * dim + 3][7]
        k_head_1 = fused[(2 + 2 * r) * dim + dim + 3][7]
        assert read["blk.0.attn_qkv.weight"][1][(keys + dim + 3) * D_MODEL + 7] == k_head_1
    assert read["blk.0.attn_qkv.weight"][1][v_row] == v and read["blk.0.attn_gate.weight"][1][z_row] == z
    conv = state[lin + "conv1d.weight"][2 * keys + theirs * dim + 3][0][2]
    assert read["blk.0.ssm_conv1d.weight"][1][(2 * keys + dim + 3) * net.n_taps + 2] == conv
    out = state[lin + "out_proj.weight"][5][theirs * dim + 3]
    assert read["blk.0.ssm_out.weight"][1][5 * net.cols()[1] + dim + 3] == out
    assert read["blk.0.ssm_dt.bias"][1][1] == state[lin + "dt_bias"][theirs]
    assert abs(read["blk.0.ssm_a"][1][1] + math.exp(state[lin + "A_log"][theirs])) < 1e-6
    assert read["blk.0.attn_norm.weight"][1][4] == 1 + state["model.layers.0.input_layernorm.weight"][4]


def test_fused_and_split_experts_agree(spec, state):
    assert gguf_tensors(spec, state) == gguf_tensors(spec, fake_state(spec, fused=False))


def test_metadata_is_whole(spec):
    keys, _ = read_gguf(gguf_bytes(model_metadata(spec), []))
    assert keys[f"{spec.arch}.expert_used_count"] == spec.n_experts_used
    tokens = keys["tokenizer.ggml.tokens"]
    assert len(tokens) == len(set(tokens)) == len(keys["tokenizer.ggml.token_type"]) == VOCAB
    for merge in keys["tokenizer.ggml.merges"]:
        left, right = merge.split(" ")
        assert {left, right, left + right} <= set(tokens)


def test_wrong_weights_are_refused(spec, state):
    expect_refused(spec, {name: values for name, values in state.items() if name != "model.norm.weight"})
    expect_refused(spec, state | {"model.extra": [1.0]})
    expect_refused(spec, state | {"lm_head.weight": state["lm_head.weight"][1:]})


def main():
    test_rows_of_halves_become_neighbours()
    for spec in golden.SPECS:
        state = fake_state(spec, fused=True)
        test_tensors_survive_the_file(spec, state)
        test_values_land_where_the_layout_says(spec, state)
        test_fused_and_split_experts_agree(spec, state)
        test_metadata_is_whole(spec)
        test_wrong_weights_are_refused(spec, state)
    print("make_golden_test: ok")


if __name__ == "__main__":
    main()
