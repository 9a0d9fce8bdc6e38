# Hidden states at chosen layers, for whoever trains a drafter: what layer i puts out (after its
# experts, before the next layer's norm), as transformers' hidden_states[i + 1].
#
#   hidden_states.py CHECKPOINT TOKENS.json LAYERS OUT.pt      LAYERS such as 0,2,3; TOKENS [[id...]...]
#
# OUT.pt is a list with one tensor [n_layers chosen, n_tokens, d_model] per sequence.
# SPDX-License-Identifier: Apache-2.0
import json
import sys

import torch

from export_gguf import load_checkpoint
from model import DemoModel


@torch.no_grad()
def hidden_states(model, ids, layers):
    """ids: [batch, n]. Returns [len(layers), batch, n, d_model]."""
    kept, hooks = {}, []
    for i in layers:
        keep = lambda _, __, out, i=i: kept.__setitem__(i, out[0])
        hooks.append(model.model.layers[i].register_forward_hook(keep))
    try:
        model.hidden(ids)
    finally:
        for hook in hooks:
            hook.remove()
    return torch.stack([kept[i] for i in layers])


def load_model(checkpoint):
    config, weights, _ = load_checkpoint(checkpoint)
    model = DemoModel(config)
    model.load_state_dict(weights)
    return model.eval()


if __name__ == "__main__":
    checkpoint, tokens, layers, out = sys.argv[1:]
    model = load_model(checkpoint)
    chosen = [int(i) for i in layers.split(",")]
    with open(tokens) as f:
        torch.save([hidden_states(model, torch.tensor([ids]), chosen)[:, 0] for ids in json.load(f)], out)
