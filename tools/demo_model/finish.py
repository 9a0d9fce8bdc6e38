# From a checkpoint to everything that is kept: the GGUF file, golden vectors of transformers, held-out
# accuracy, use of experts. Fails when the training model and transformers disagree.
#
#   finish.py --checkpoint FILE --tokenizer FILE --eval SMALL --eval-all ALL --out DIR [--smoke]
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import pathlib
import time

import torch

import eval_set
import generate
import golden
import routing
from export_gguf import export, load_checkpoint
from hidden_states import hidden_states
from model import DemoModel, Rounding
from reference import reference_model
from tokenizer import Tokenizer

MOST_DIFFERENCE = 2e-3  # of logits, training model against transformers, both float32
ROUTED_PER_KIND = 60


def check_hidden_states(model, reference, ids):
    """hidden_states.py means what it says."""
    layers = list(range(model.config.n_layers - 1))  # the last one of transformers is normalised
    ours = hidden_states(model, torch.tensor([ids]), layers)
    with torch.no_grad():
        theirs = reference(input_ids=torch.tensor([ids]), output_hidden_states=True, use_cache=False).hidden_states
    return max((ours[i] - theirs[i + 1]).abs().max().item() for i in layers)


def main():
    parser = argparse.ArgumentParser()
    for name in ("checkpoint", "tokenizer", "eval", "eval-all", "out"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    torch.set_float32_matmul_precision("highest")
    started = time.time()
    say = lambda text: print(f"finish {time.time() - started:4.0f} s  {text}", flush=True)

    config, weights, facts = load_checkpoint(args.checkpoint)
    tokenizer, out = Tokenizer.load(args.tokenizer), pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    small, everything = eval_set.load(args.eval), eval_set.load(args.eval_all)

    # First, so that it is there whatever comes after.
    export(config, weights, tokenizer, out / f"{config.name}-bf16.gguf")
    say(f"exported {config.name}")

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = DemoModel(config)
    model.load_state_dict(weights)
    model = model.eval().to(device)
    if args.smoke:
        everything = everything[::60]
    by_kind, wrong = generate.score(model, tokenizer, everything)
    say(f"held out: {generate.table(by_kind)}")
    report = {**facts, "torch": torch.__version__, "right": by_kind}
    (out / "wrong.json").write_text(json.dumps(wrong, indent=1))
    Rounding.on = True  # what the quantised file is likely to reach
    report["right_with_4_bits"], _ = generate.score(model, tokenizer, small[::10] if args.smoke else small)
    Rounding.on = False
    say(f"with 4 bits: {generate.table(report['right_with_4_bits'])}")

    kinds = dict.fromkeys(e["kind"] for e in everything)
    some = [e for kind in kinds for e in [e for e in everything if e["kind"] == kind][:ROUTED_PER_KIND]]
    records = routing.record(model, tokenizer, some)
    report["experts"] = routing.summary(records, config)
    say("experts: " + "; ".join(f"entropy {l['entropy_bits']} of {l['most_bits']}, least {l['least_used_percent']} %" for l in report["experts"]))
    traced = [r for kind in routing.KINDS for r in [r for r in records if r[0]["kind"] == kind][:4]]
    routing.write_trace(out / f"{config.name}.route.csv", config, traced)
    (out / "report.json").write_text(json.dumps(report, indent=1))

    model = model.cpu()
    reference = reference_model(config, weights)
    n = 8 if args.smoke else 64
    sequences = golden.choose(everything, tokenizer, n)
    report["largest_difference"] = golden.largest_difference(model, reference, sequences[:16])
    report["largest_difference_of_hidden_states"] = check_hidden_states(model, reference, sequences[0])
    say(f"against transformers: logits {report['largest_difference']:.2e}, hidden states {report['largest_difference_of_hidden_states']:.2e}")
    source = f"tools/demo_model/finish.py, {config.name}, transformers float32"
    golden.write(out / f"{config.name}.golden{n}", reference, sequences, source)
    golden.write(out / config.name, reference, golden.choose(small, tokenizer, 8), source)
    (out / "report.json").write_text(json.dumps(report, indent=1))
    if report["largest_difference"] > MOST_DIFFERENCE or report["largest_difference_of_hidden_states"] > MOST_DIFFERENCE:
        raise SystemExit("finish.py: the training model is not the model of transformers; nothing of this is to be used")
    say("done")


if __name__ == "__main__":
    main()
