#!/usr/bin/env bash
# what : what the promise costs: shards V = 8 against V = 1 on one rank, canonical against native reduction on two, one thread each
# usage: variants.sh [REPEATS [MODELS...]]      (5; mlp lenet bigmlp)
# needs: build/release (or LOCKSTEP=executable), 2 idle cores
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../common.sh"
. "$(dirname "$(readlink -f "$0")")/measure.sh"
if [[ ${1:-5} = *[!0-9]* ]]; then usage; fi
repeats=${1:-5}
shift $(($# > 0 ? 1 : 0))
models=("$@")
[ $# -gt 0 ] || models=(mlp lenet bigmlp)
bench_begin

for ((i = 1; i <= repeats; i++)); do
  say "round $i of $repeats"
  for model in "${models[@]}"; do
    measure "$model V8" lockstep_figure train_with 1 "$model" batch.shards=8
    measure "$model V1" lockstep_figure train_with 1 "$model" batch.shards=1
    measure "$model canonical" lockstep_figure train_with 2 "$model"
    measure "$model native" lockstep_figure train_with 2 "$model" 'reduce.algorithm="native"'
  done
done

echo "Samples per second, median (min..max) of $repeats runs in turn; one thread a rank"
echo
echo "| model | V = 8 | V = 1 | V = 8 / V = 1 | canonical, 2 ranks | native, 2 ranks | canonical / native |"
echo "|---|---|---|---|---|---|---|"
for model in "${models[@]}"; do
  echo "| $model | $(cell "$model V8") | $(cell "$model V1") | $(ratio "$model V8" "$model V1") |" \
    "$(cell "$model canonical") | $(cell "$model native") | $(ratio "$model canonical" "$model native") |"
done
echo
machine
