# Golden vectors of a shipped, quantised file: transformers computes with the very weights that the
# file holds, dequantised. `make test` compares with them.
#
#   sluice quantize models/demo-attn.gguf f32.gguf F32
#   golden_shipped.py --model attn --gguf f32.gguf --tokenizer FILE --eval FILE --out BASE
#
# writes BASE.json and BASE.logits.bin (golden.py).
# SPDX-License-Identifier: Apache-2.0
import argparse

import torch

import eval_set
import export_gguf
import golden
import import_gguf
from model import DemoModel, config_of
from reference import reference_model
from tokenizer import VOCABULARY, Tokenizer

N_SEQUENCES = 8
MOST_DIFFERENCE = 1e-3


def require_round_trip(config, tensors, weights):
    """What is exported again is what was read."""
    for name, tensor, _ in export_gguf.tensors(config, weights):
        if not torch.allclose(tensor.reshape(-1), tensors[name].reshape(-1), rtol=1e-6, atol=1e-7):
            raise ValueError(f"{name} does not come back as it was")


def main():
    parser = argparse.ArgumentParser()
    for name in ("model", "gguf", "tokenizer", "eval", "out"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    config = config_of(args.model, VOCABULARY)
    tensors = import_gguf.read_tensors(args.gguf)
    weights = import_gguf.weights_of(config, tensors)
    require_round_trip(config, tensors, weights)
    ours = DemoModel(config)
    ours.load_state_dict(weights)
    reference = reference_model(config, weights)
    sequences = golden.choose(eval_set.load(args.eval), Tokenizer.load(args.tokenizer), N_SEQUENCES)
    difference = golden.largest_difference(ours.eval(), reference, sequences)
    golden.write(args.out, reference, sequences, f"tools/demo_model/golden_shipped.py, {config.name}, transformers float32")
    print(f"{config.name}: {len(sequences)} sequences; the training model differs from transformers by {difference:.2e}")
    if difference > MOST_DIFFERENCE:
        raise SystemExit("golden_shipped.py: the training model is not the model of transformers")


if __name__ == "__main__":
    main()
