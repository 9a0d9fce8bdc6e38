# Trains one demo model for a number of seconds and saves its weights, rounded to bf16: these are
# the model, and everything after (export, golden vectors, evaluation) uses them.
#
#   train.py --model attn|hybrid --tokenizer FILE --eval FILE --out CHECKPOINT [--seconds S] [--smoke]
#
# bf16 matrix products over f32 weights; AdamW; warm-up, then a cosine to zero over the time that was
# asked for. In the last part 4-bit rounding is felt (model.py, Rounding), so that the quantised file
# answers as well as this one.
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import math
import random
import time

import torch
import torch.nn.functional as F

import data
import eval_set
import generate
from model import DemoModel, Rounding, config_of
from tokenizer import VOCABULARY, Tokenizer

PEAK_RATE = 2e-3
WARM_UP = 0.02  # shares of the whole time
ROUNDING_FROM = 0.55
BALANCE = 0.01
SMOKE_STEPS = 12
PROBED = ["add", "subtract", "multiply", "sort", "world", "json", "count", "code"]


def rate_at(share):
    if share < WARM_UP:
        return PEAK_RATE * share / WARM_UP
    return PEAK_RATE * 0.5 * (1 + math.cos(math.pi * min(1.0, (share - WARM_UP) / (1 - WARM_UP))))


def make_optimizer(model):
    """Decay for matrices alone; no decay for norms, the router and what steers the DeltaNet."""
    decays = lambda name, p: p.dim() > 1 and "mlp.gate.weight" not in name and "conv1d" not in name
    named = list(model.named_parameters())
    groups = [{"params": [p for n, p in named if decays(n, p)], "weight_decay": 0.1},
              {"params": [p for n, p in named if not decays(n, p)], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-8, fused=torch.cuda.is_available())


class Trainer:
    def __init__(self, args, device):
        self.device = device
        self.model = DemoModel(config_of(args.model, VOCABULARY)).to(device)
        self.optimizer = make_optimizer(self.model)
        self.n_steps = self.n_tokens = self.n_skipped = 0

    def step(self, batches, rate):
        """(loss per counted token, balance) of one step over all its micro-batches."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        n_counted = sum(weights.sum().item() for *_, weights in batches)
        loss_sum, balance_sum = 0.0, 0.0
        for ids, valid, at, targets, weights in batches:
            move = lambda t, dtype: t.to(self.device, non_blocking=True).to(dtype)
            with torch.autocast(self.device, dtype=torch.bfloat16):
                hidden, balance = self.model.hidden(move(ids, torch.long), move(valid, torch.float32))
                logits = self.model.lm_head(hidden.flatten(0, 1)[move(at, torch.long)])
            losses = F.cross_entropy(logits.float(), move(targets, torch.long), reduction="none")
            loss = (losses * move(weights, torch.float32)).sum() / n_counted
            (loss + BALANCE * balance / len(batches)).backward()
            loss_sum, balance_sum = loss_sum + loss.detach(), balance_sum + balance.detach() / len(batches)
            self.n_tokens += ids.numel()
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if torch.isfinite(norm):
            self.optimizer.step()
        else:
            self.n_skipped += 1
            if self.n_skipped > 20:
                raise RuntimeError("the gradient is not finite, for the 20th time")
        self.optimizer.zero_grad(set_to_none=True)
        self.n_steps += 1
        return loss_sum, balance_sum


def probe(model, tokenizer, entries, device):
    """Right answers by kind for a few questions."""
    was_on, Rounding.on = Rounding.on, False
    with torch.autocast(device, dtype=torch.bfloat16):
        by_kind, _ = generate.score(model, tokenizer, entries, most=60)
    Rounding.on = was_on
    return generate.table(by_kind)


def probe_entries(path, per_kind):
    entries = eval_set.load(path)
    return [e for kind in PROBED for e in [e for e in entries if e["kind"] == kind][:per_kind]]


def train(trainer, tokenizer, entries, args):
    steps = data.steps(args.tokenizer, args.seed, data.SHAPES, args.workers, args.prompt_share)
    batches = next(steps)  # the workers have started
    started = last_line = last_probe = time.time()
    losses, n_printed = [], 0
    while True:
        elapsed = time.time() - started
        share = trainer.n_steps / SMOKE_STEPS if args.smoke else elapsed / args.seconds
        if share >= 1:
            return
        Rounding.on = share >= ROUNDING_FROM
        loss, balance = trainer.step(batches, rate_at(share))
        batches = next(steps)
        losses.append(loss)
        now = time.time()
        if now - last_line >= 10 or args.smoke:
            mean, rate = torch.stack(losses).mean().item(), (trainer.n_tokens - n_printed) / (time.time() - last_line)
            print(f"{args.model} {elapsed:5.0f} s  step {trainer.n_steps}  {rate / 1e3:.0f}k tokens/s  loss {mean:.4f}  "
                  f"balance {balance.item():.3f}  rounding {Rounding.on}", flush=True)
            losses, last_line, n_printed = [], time.time(), trainer.n_tokens
        if now - last_probe >= args.probe_every:
            print(f"{args.model} {elapsed:5.0f} s  {probe(trainer.model, tokenizer, entries, trainer.device)}", flush=True)
            last_line = last_probe = time.time()
            n_printed = trainer.n_tokens


def save(trainer, args, seconds):
    """The weights as bf16 values in f32, on the CPU."""
    Rounding.on = False
    weights = {k: v.detach().to(torch.bfloat16).float().cpu() for k, v in trainer.model.state_dict().items()}
    bad = [k for k, v in weights.items() if not bool(torch.isfinite(v).all())]
    if bad:
        raise RuntimeError(f"weights are not finite: {bad[:3]}")
    facts = {"model": args.model, "seconds": round(seconds, 1), "steps": trainer.n_steps, "tokens": trainer.n_tokens,
             "skipped_steps": trainer.n_skipped, "seed": args.seed, "prompt_share": args.prompt_share, "parameters": sum(v.numel() for v in weights.values())}
    torch.save({"weights": weights, "facts": facts}, args.out)
    print(json.dumps(facts), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True, choices=["attn", "hybrid"])
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--eval", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=380)
    parser.add_argument("--workers", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--prompt-share", type=float, default=0.1, help="how much a token of the prompt counts; an answer's counts 1")
    parser.add_argument("--probe-every", type=float, default=60)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = Tokenizer.load(args.tokenizer)
    entries = probe_entries(args.eval, 2 if args.smoke else 24)
    trainer = Trainer(args, device)
    started = time.time()
    try:
        train(trainer, tokenizer, entries, args)
    finally:  # whatever happened, what was learned is kept
        save(trainer, args, time.time() - started)
    print(f"{args.model} at the end: {probe(trainer.model, tokenizer, entries, device)}", flush=True)


if __name__ == "__main__":
    main()
