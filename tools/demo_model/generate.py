# Greedy continuation of many prompts at once with the training model, and the share of right
# answers by kind. No cache: a prompt is padded on the right, which a causal model does not see.
# SPDX-License-Identifier: Apache-2.0
from collections import defaultdict

import torch

from eval_set import is_right


@torch.no_grad()
def continue_greedily(model, prompts, order, most, end_id, pad_id, batch=96):
    """prompts: lists of ids; order: their indices, those with answers of like length together.
    Returns the new ids of each, without the end token."""
    device = next(model.parameters()).device
    answers = [None] * len(prompts)
    for start in range(0, len(order), batch):
        chosen = order[start:start + batch]
        lengths = torch.tensor([len(prompts[i]) for i in chosen], device=device)
        width = int(lengths.max())
        ids = torch.full((len(chosen), width + most), pad_id, dtype=torch.long, device=device)
        for row, i in enumerate(chosen):
            ids[row, :len(prompts[i])] = torch.tensor(prompts[i], device=device)
        rows, done = torch.arange(len(chosen), device=device), torch.zeros(len(chosen), dtype=torch.bool, device=device)
        starts = lengths.clone()
        for _ in range(most):
            hidden, _ = model.hidden(ids[:, :int(lengths.max())])
            best = model.lm_head(hidden[rows, lengths - 1]).argmax(-1)
            done |= best == end_id
            if bool(done.all()):
                break
            ids[rows, lengths] = torch.where(done, torch.full_like(best, pad_id), best)
            lengths = torch.where(done, lengths, lengths + 1)
        for row, i in enumerate(chosen):
            answers[i] = ids[row, int(starts[row]):int(lengths[row])].tolist()
    return answers


def score(model, tokenizer, entries, most=240):
    """(kind -> [right, asked], the wrong ones with what was answered)"""
    prompts = [tokenizer.encode(e["prompt"]) for e in entries]
    order = sorted(range(len(entries)), key=lambda i: (len(str(entries[i]["expected"])), len(prompts[i])))
    order.sort(key=lambda i: entries[i]["check"] == "contains")  # stories: long, whatever is asked of them
    ids = continue_greedily(model, prompts, order, most, tokenizer.ids["<|im_end|>"], tokenizer.ids["<|endoftext|>"])
    by_kind, wrong = defaultdict(lambda: [0, 0]), []
    for entry, answer_ids in zip(entries, ids):
        answer = tokenizer.decode(answer_ids)
        right = is_right(entry, answer)
        by_kind[entry["kind"]][0] += right
        by_kind[entry["kind"]][1] += 1
        if not right:
            wrong.append({"id": entry["id"], "prompt": entry["prompt"], "expected": entry["expected"], "answer": answer})
    return dict(by_kind), wrong


def table(by_kind):
    return "  ".join(f"{kind} {right}/{asked}" for kind, (right, asked) in by_kind.items())
