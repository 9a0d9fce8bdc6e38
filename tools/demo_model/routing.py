# Which experts a model uses for what: their use over the evaluation set, by kind of task, and a
# trace of every choice in the format of other recorded traces:
#   turn,phase,step,layer,slot,expert,weight,residency,expert_bytes      (phase 0 prompt, 1 answer)
# with a comment line per turn that says which kind of question it was.
# SPDX-License-Identifier: Apache-2.0
import json
import math

import torch

from model import Router

KINDS = ["add", "subtract", "multiply", "sort", "count", "world", "json", "code", "story", "talk"]


class Recorder:
    """While open, keeps what the routers of all layers chose: [(chosen, weights)] per layer."""

    def __init__(self, model):
        self.routers = [m for m in model.modules() if isinstance(m, Router)]
        self.choices = [None] * len(self.routers)

    def __enter__(self):
        def keep(i):
            return lambda _, __, out: self.choices.__setitem__(i, (out[1].cpu(), out[2].cpu()))
        self.hooks = [r.register_forward_hook(keep(i)) for i, r in enumerate(self.routers)]
        return self

    def __exit__(self, *_):
        for hook in self.hooks:
            hook.remove()


@torch.no_grad()
def record(model, tokenizer, entries):
    """[(entry, n_prompt, per layer (chosen [n, k], weights [n, k]))]; the answers are the expected."""
    device = next(model.parameters()).device
    out = []
    with Recorder(model) as recorder:
        for e in entries:
            prompt = tokenizer.encode(e["prompt"])
            answer = tokenizer.encode(e["expected"] if isinstance(e["expected"], str) else json.dumps(e["expected"]))
            model.hidden(torch.tensor([prompt + answer], device=device))
            out.append((e, len(prompt), list(recorder.choices)))
    return out


def _shares(records, layer, n_experts, kind=None):
    counts = torch.zeros(n_experts)
    for e, _, choices in records:
        if kind is None or e["kind"] == kind:
            counts += torch.bincount(choices[layer][0].flatten(), minlength=n_experts)
    return counts / counts.sum()


def _entropy(p):
    p = p[p > 0]
    return float(-(p * p.log2()).sum())


def _distance(p, q):
    """Jensen-Shannon, in bits: 0 same use, 1 no expert in common."""
    return _entropy((p + q) / 2) - (_entropy(p) + _entropy(q)) / 2


def summary(records, config):
    kinds = [k for k in KINDS if any(e["kind"] == k for e, _, _ in records)]
    layers = []
    for layer in range(config.n_layers):
        p = _shares(records, layer, config.n_experts)
        by_kind = {k: _shares(records, layer, config.n_experts, k) for k in kinds}
        pairs = [_distance(by_kind[a], by_kind[b]) for i, a in enumerate(kinds) for b in kinds[:i]]
        layers.append({
            "entropy_bits": round(_entropy(p), 3), "most_bits": round(math.log2(config.n_experts), 3),
            "least_used_percent": round(100 * float(p.min()), 3), "most_used_percent": round(100 * float(p.max()), 3),
            "mean_distance_between_kinds_bits": round(sum(pairs) / len(pairs), 3) if pairs else None,
            "favourites": {k: [[int(i), round(100 * float(v), 1)] for v, i in zip(*by_kind[k].topk(4))] for k in kinds},
        })
    return layers


def write_trace(path, config, records):
    n_bytes = 3 * config.d_model * config.d_ff * 2
    with open(path, "w") as f:
        f.write(f"# route_trace v1\n# model={config.name} arch={config.architecture} n_layer={config.n_layers} "
                f"n_expert={config.n_experts} n_expert_used={config.n_experts_used}\n")
        f.writelines(f"# layer={i} expert_bytes={n_bytes} dense_bytes=0\n" for i in range(config.n_layers))
        f.writelines(f"# turn={i} kind={e['kind']} id={e['id']}\n" for i, (e, _, _) in enumerate(records))
        f.write("turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n")
        for turn, (_, n_prompt, choices) in enumerate(records):
            for step in range(len(choices[0][0])):
                for layer, (chosen, weights) in enumerate(choices):
                    for slot, (expert, weight) in enumerate(zip(chosen[step].tolist(), weights[step].tolist())):
                        f.write(f"{turn},{int(step >= n_prompt)},{step},{layer},{slot},{expert},{weight:.6f},0,{n_bytes}\n")
