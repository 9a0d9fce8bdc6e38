#!/bin/sh
# Makes the demo models from nothing: tokenizer, questions, training, export, golden vectors,
# evaluation. Needs a GPU with 40 GB, and Python with torch, numpy and transformers 5.
#
#   tools/demo_model/make.sh [--smoke] [--seconds S] [--prompt-share W] [--out DIR] [--pack DIR] MODEL...
#
# MODEL is attn or hybrid; both are trained one after the other. --smoke runs every part for a few
# steps and fails where anything is wrong. What is made goes to DIR/<model> (build/demo_model); --pack
# also puts it into another DIR as <model>.tar.gz.00, .01, ...: pieces of 15 MiB to be carried home.
# SPDX-License-Identifier: Apache-2.0
set -u

here=$(cd "$(dirname "$0")" && pwd)
out=$here/../../build/demo_model
seconds=380
prompt_share=0.1
smoke=
pack=
models=
while [ $# -gt 0 ]; do
  case $1 in
    --smoke) smoke=--smoke ;;
    --seconds) seconds=$2; shift ;;
    --prompt-share) prompt_share=$2; shift ;;
    --out) out=$2; shift ;;
    --pack) pack=$2; shift ;;
    attn | hybrid) models="$models $1" ;;
    *) echo "make.sh: '$1' is no option and no model" >&2; exit 2 ;;
  esac
  shift
done
[ -n "$models" ] || { echo "make.sh: which model? attn, hybrid or both" >&2; exit 2; }

export PYTHONUNBUFFERED=1
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
python3 "$here/tokenizer.py" "$out/tokenizer.json" || exit 1
python3 "$here/eval_set.py" "$out/eval.jsonl" "$out/eval_all.jsonl" || exit 1

# What was learned is finished and packed even when training ended badly.
make_model() {
  status=0
  rm -rf "$out/$1"
  mkdir -p "$out/$1"
  python3 "$here/train.py" --model "$1" --tokenizer "$out/tokenizer.json" --eval "$out/eval.jsonl" \
    --out "$out/$1/checkpoint.pt" --seconds "$seconds" --prompt-share "$prompt_share" $smoke || status=1
  python3 "$here/finish.py" --checkpoint "$out/$1/checkpoint.pt" --tokenizer "$out/tokenizer.json" \
    --eval "$out/eval.jsonl" --eval-all "$out/eval_all.jsonl" --out "$out/$1" $smoke || status=1
  cp "$out/tokenizer.json" "$out/eval.jsonl" "$out/$1/"
  if [ -n "$pack" ]; then
    (cd "$out" && tar -c --exclude=checkpoint.pt "$1" | gzip -1 | split -b 15M -d - "$pack/$1.tar.gz.") || status=1
    ls -l "$pack"
  fi
  return $status
}

failed=0
if [ -n "$smoke" ]; then # both at once: a smoke test is mostly waiting for imports
  pids=
  for model in $models; do
    make_model "$model" &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid" || failed=1; done
else
  for model in $models; do make_model "$model" || failed=1; done
fi
[ $failed = 0 ] && echo "make.sh: done" || echo "make.sh: FAILED"
exit $failed
