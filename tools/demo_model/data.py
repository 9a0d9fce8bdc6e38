# Training data without end: worker processes make conversations and hand over whole steps. The
# shapes of a step are fixed: many short conversations, fewer long ones.
# SPDX-License-Identifier: Apache-2.0
import random

import torch
from torch.utils.data import DataLoader, IterableDataset

from corpus.conversation import training_row
from tokenizer import Tokenizer

# (rows, tokens per row) of the three micro-batches of a step: 69,632 tokens
SHAPES = [(256, 128), (96, 256), (12, 1024)]


def make_batch(rng, tokenizer, n_rows, length, prompt_share):
    """ids [n_rows, length]; valid [n_rows * length], 0 for padding; at: flat places whose next
    token counts; targets: those tokens; weights: 1 for what the model says, prompt_share for what it
    is told."""
    pad = tokenizer.ids["<|endoftext|>"]
    ids, valid, at, targets, weights = [], [], [], [], []
    for row in range(n_rows):
        row_ids, said = training_row(rng, tokenizer.encode, length)
        for i in range(1, len(row_ids)):
            weight = {True: 1.0, False: prompt_share, None: 0.0}[said[i]]
            if weight > 0:
                at.append(row * length + i - 1)
                targets.append(row_ids[i])
                weights.append(weight)
        n_pad = length - len(row_ids)
        ids += row_ids + [pad] * n_pad
        valid += [1] * len(row_ids) + [0] * n_pad
    return (torch.tensor(ids, dtype=torch.int16).view(n_rows, length), torch.tensor(valid, dtype=torch.uint8),
            torch.tensor(at, dtype=torch.int32), torch.tensor(targets, dtype=torch.int16), torch.tensor(weights))


class Steps(IterableDataset):
    def __init__(self, tokenizer_path, seed, shapes, prompt_share):
        self.tokenizer_path, self.seed, self.shapes, self.prompt_share = tokenizer_path, seed, shapes, prompt_share

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        rng = random.Random(f"{self.seed} {info.id if info else 0}")
        tokenizer = Tokenizer.load(self.tokenizer_path)
        while True:
            yield [make_batch(rng, tokenizer, *shape, self.prompt_share) for shape in self.shapes]


def steps(tokenizer_path, seed, shapes, n_workers, prompt_share):
    return iter(DataLoader(Steps(tokenizer_path, seed, shapes, prompt_share), batch_size=None, num_workers=n_workers,
                           prefetch_factor=4 if n_workers else None))
