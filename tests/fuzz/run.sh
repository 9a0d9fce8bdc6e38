#!/usr/bin/env bash
# Runs every libFuzzer target of a build for a while, starting from the kept corpus; new finds go to a scratch folder.
#   tests/fuzz/run.sh BUILD_DIR SECONDS
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 2 ] || { echo "usage: run.sh BUILD_DIR SECONDS" >&2; exit 2; }
build=$(cd "$1" && pwd)
# Freed memory that ASan keeps counts as used; the limit is meant for what an input needs.
export ASAN_OPTIONS=quarantine_size_mb=64
for target in "$build"/fuzz_*; do
  [ -x "$target" ] || continue
  name=$(basename "$target")
  name=${name#fuzz_}
  mkdir -p "$build/new/$name"
  echo "fuzzing $name for $2 s; new inputs in $build/new/$name"
  (cd "$build" && "$target" -max_total_time="$2" -max_len=8192 -rss_limit_mb=512 -timeout=10 -print_final_stats=1 \
    "$build/new/$name" "$here/corpus/$name" 2>&1 | grep -vE '^#|NEW_FUNC')
done
