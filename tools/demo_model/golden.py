# Golden vectors: the logits of transformers for held-out questions with their answers. A file is
# float32, [all positions kept, n_vocab]; the JSON beside it says for which tokens and positions.
# SPDX-License-Identifier: Apache-2.0
import json

import torch

from reference import reference_logits

N_KEPT = 8  # positions of each sequence: the last ones, where the answer is


def choose(entries, tokenizer, n, longest=120):
    """n token sequences (question and answer), the kinds in turn."""
    by_kind = {}
    for e in entries:
        ids = tokenizer.encode(e["prompt"] + (e["expected"] if isinstance(e["expected"], str) else json.dumps(e["expected"])))
        if e["check"] in ("exact", "json") and len(ids) <= longest:
            by_kind.setdefault(e["kind"], []).append(ids)
    chosen = []
    while len(chosen) < n and any(by_kind.values()):
        chosen += [sequences.pop(0) for sequences in by_kind.values() if sequences]
    return chosen[:n]


def largest_difference(model, reference, sequences):
    """Between the training model (float32, CPU) and transformers, over all positions."""
    with torch.no_grad():
        return max((model(torch.tensor([ids]))[0] - reference_logits(reference, ids)).abs().max().item() for ids in sequences)


def write(base, reference, sequences, source):
    """base.json and base.logits.bin"""
    positions = [list(range(max(0, len(ids) - N_KEPT), len(ids))) for ids in sequences]
    rows = [reference_logits(reference, ids)[at] for ids, at in zip(sequences, positions)]
    with open(f"{base}.logits.bin", "wb") as f:
        f.write(torch.cat(rows).contiguous().numpy().tobytes())
    with open(f"{base}.json", "w") as f:
        json.dump({"made_by": source, "tokens": sequences, "positions": positions}, f)
        f.write("\n")
