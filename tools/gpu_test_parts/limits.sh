# Parts of tools/gpu-test, which reads this file and calls what is here: what a machine with a GPU has to show besides
# speeds of kernels and sessions. Handshakes one by one, starts, a slow link, the automatic choice, a worker that is
# stopped, a soak.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154

# compute-sanitizer over a session: experts in VRAM, over the link and with the CPU, driven by segments. $1: its tool.
sanitize_session() {
  local tool=$1 model=$work/sanitized.gguf flags=()
  [[ $tool != memcheck ]] || flags=(--report-api-errors no)  # some are about calls that CUDA refuses
  [[ -f $model ]] || "$(program sluice)" synth "$model" "${small[@]}" >/dev/null
  if limited compute-sanitizer --tool "$tool" "${flags[@]}" --error-exitcode 9 "$(program sluice)" bench \
    -m "$model" --device cuda --segmented --moe cache --cache-slots 40 --miss-split 0.5 -p 48 -n 16 -d 0 -r 1; then
    shown+=" $tool over a session by segments: $(grep -E '(ERROR|RACECHECK) SUMMARY' "$log" | tail -n 1 |
      sed 's/=* *//');"
  else
    problem "$tool over a session"
  fi
}

bench_handshakes() {
  # One core feeds the GPU.
  timeout --kill-after=10 "$limit" "$(program bench_handshakes)" "$work/layers.gguf" cuda "${HANDSHAKES:-1000000}" \
    $(($(nproc) > 1 ? $(nproc) - 1 : 1))
}

bench_start() {
  local n_tokens=600 vram
  [[ ${SHAPE-} != small ]] || n_tokens=60
  for vram in 12GiB 8GiB; do
    printf '\n%s of VRAM:\n\n' "$vram"
    timeout --kill-after=10 "$limit" "$(program bench_start)" "$work/moe.gguf" "$work/moe.slrt" cuda "$vram" \
      "$n_tokens" 3 || return 1
  done
}

bench_slow() {
  local n_failed=0 model=moe slow=(--hold-link 6.5GB/s -t 6)
  local real=(-p 0 -n 512 -d 256 --route-trace "$work/moe.slrt")
  cache_head
  cache_line 300 "${real[@]}" --vram 12GiB "${slow[@]}"
  cache_line "" "${real[@]}" --vram 8GiB "${slow[@]}"
  cache_line "" "${real[@]}" --vram 12GiB --miss-split 0 -t 6
  cache_line "" -p 2048 -n 0 -d 0 --vram 12GiB "${slow[@]}"
  ((n_failed == 0))
}

# The median tokens/s of one test, of `sluice bench` with these flags; nothing where that way is not possible.
speed_of() {
  bench -m "$work/moe.gguf" -r 2 "$@" 2>>"$work/choice.err" |
    awk -F'|' '/^\| (prefill|decode)/ { gsub(/ /, "", $6); print $6 }'
}

# $1: VRAM; the rest: the test.
choice_line() {
  local vram=$1 way speed automatic best=0 row
  shift
  automatic=$(speed_of "$@" --vram "$vram") || true
  [[ -n $automatic ]] || return 1
  row="| $vram | $automatic |"
  for way in "--moe cache --miss-split 0" "--moe cache --miss-split 0.35" "--moe cache --miss-split 0.5" \
    "--moe cache --miss-split 1" "--moe cpu" "--moe gpu"; do
    # shellcheck disable=SC2086
    speed=$(speed_of "$@" --vram "$vram" $way) || true
    row+=" ${speed:--} |"
    best=$(awk -v a="$best" -v b="${speed:-0}" 'BEGIN { print (b > a ? b : a) }')
  done
  echo "$row $(awk -v a="$automatic" -v b="$best" 'BEGIN { printf "%.2f", (b > 0 ? a / b : 1) }') |"
}

# A prompt beside the link's own speed, as it was measured in the same run. The bytes are those that prompts streamed,
# with what was brought on a guess.
prefill_line() {
  local vram=$1 measured=$work/measured n_repeats=3
  rm -f "$measured"
  timeout --kill-after=10 "$limit" "$sluice" bench --device cuda -m "$work/moe.gguf" -p 2048 -n 0 -d 0 \
    -r "$n_repeats" --vram "$vram" --machine "$measured" --json >"$work/prefill.json" || return 1
  [[ -f $measured ]] || : >"$measured"
  awk -v vram="$vram" -v n="$((n_repeats + 1))" '
    FILENAME ~ /measured$/ { if ($1 == "link_gbps") link = $2; next }
    { gsub(/[",:]/, " ") }
    $1 == "n_tokens" && !tokens { tokens = $2 }
    $1 == "median" { speed = $2 }
    $1 == "streamed_bytes" { bytes = $2 / n }
    END {
      at_link = bytes > 0 ? tokens / (bytes / (link * 1e9)) : 0
      if (link > 0) printf "| %s | %.0f | %.2f GB | %.1f GB/s | %.0f | %.0f %% |\n",
        vram, speed, bytes / 1e9, link, at_link, (at_link > 0 ? 100 * speed / at_link : 0)
      else printf "| %s | %.0f | %.2f GB | not measured | | |\n", vram, speed, bytes / 1e9
    }' "$measured" "$work/prefill.json"
}

bench_choice() {
  local vram n_failed=0 real=(-p 0 -n 256 -d 256 --route-trace "$work/moe.slrt")
  echo "| VRAM | automatic | cache, 0 of misses read | 0.35 | 0.5 | 1 | cpu | gpu | automatic, of the best |"
  echo "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
  for vram in 12GiB 8GiB 5GiB; do
    choice_line "$vram" "${real[@]}" || n_failed=$((n_failed + 1))
  done
  printf '\nA prompt of 2,048 tokens, and what the link allows:\n\n'
  echo "| VRAM | tokens/s | streamed for it | link | tokens/s at its speed | reached |"
  echo "| --- | ---: | ---: | ---: | ---: | ---: |"
  for vram in 12GiB 8GiB 5GiB; do
    prefill_line "$vram" || n_failed=$((n_failed + 1))
  done
  ((n_failed == 0)) || cat "$work/choice.err" >&2
  ((n_failed == 0))
}

stop_worker() {
  timeout --kill-after=10 "$limit" "$(program stopped_worker)" models/demo-attn.gguf "${STOP_SECONDS:-30}" cuda |
    sed 's/^/- /'
}

run_soak() {
  local seconds=${SOAK_SECONDS:-480} n_slots=3000
  [[ ${SHAPE-} != small ]] || n_slots=20
  timeout --kill-after=10 $((seconds + 180)) "$(program soak)" "$work/moe.gguf" "$seconds" 0 cuda "$n_slots" \
    >"$work/soak" || {
    cat "$work/soak" >&2
    return 1
  }
  echo "- $(grep -c requests "$work/soak") times looked at; at last:$(grep requests "$work/soak" | tail -n 1)"
  grep -E '^(speed|memory|VRAM|answers)' "$work/soak" | sed 's/^/- /'
}
