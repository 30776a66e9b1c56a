#!/usr/bin/env bash
# what : samples per second of Lockstep beside PyTorch and JAX on the same cores, run in turn; prints medians, spread and ratios (Markdown)
# usage: [PEER_PYTHON=python PEER_SCRIPTS=folder] throughput.sh [REPEATS [MODELS...]]      (5; mlp lenet bigmlp; without peers: Lockstep alone)
# needs: build/release (or LOCKSTEP=executable), 2 idle cores; PEER_SCRIPTS holds pytorch_ddp.py and jax_train.py, PEER_PYTHON has torch and jax
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../common.sh"
. "$(dirname "$(readlink -f "$0")")/measure.sh"
if [[ ${1:-5} = *[!0-9]* ]]; then usage; fi
repeats=${1:-5}
shift $(($# > 0 ? 1 : 0))
models=("$@")
[ $# -gt 0 ] || models=(mlp lenet bigmlp)
bench_begin

# A peer in its best configuration on this kind of work (see docs/benchmarks.md): flags for PyTorch, and the same batch and data.
torch_flags() { case $1 in lenet) echo "--channels-last" ;; *) echo "--sgd loop" ;; esac; }
work() {
  case $1 in
    mlp) echo "--batch 128 --steps 400 --warmup 40" ;;
    lenet) echo "--batch 128 --steps 24 --warmup 4" ;;
    bigmlp) echo "--batch 256 --steps 12 --warmup 3" ;;
    *) die "no model $1: mlp, lenet or bigmlp" ;;
  esac
}
# peer SCRIPT NP MODEL FLAGS...: large blocks stay mapped between steps, which is worth up to 20 % to PyTorch's convolutions.
peer() {
  local script=$1 np=$2 model=$3 command=()
  shift 3
  if [ "$np" = 1 ]; then command=(taskset -c 0); else command=(mpirun --bind-to none -np "$np"); fi
  # shellcheck disable=SC2046
  MALLOC_MMAP_THRESHOLD_=4000000000 MALLOC_TRIM_THRESHOLD_=8000000000 "${command[@]}" "$PEER_PYTHON" "$PEER_SCRIPTS/$script" \
    --model "$model" --synthetic --no-eval $(work "$model") --threads 1 "$@"
}

for model in "${models[@]}"; do work "$model" >/dev/null; done
for ((i = 1; i <= repeats; i++)); do
  say "round $i of $repeats"
  for model in "${models[@]}"; do
    measure "$model lockstep 1" lockstep_figure train_with 1 "$model"
    if [ -n "${PEER_PYTHON:-}" ]; then
      # shellcheck disable=SC2046
      measure "$model torch 1" peer_figure peer pytorch_ddp.py 1 "$model" $(torch_flags "$model")
      measure "$model jax 1" peer_figure peer jax_train.py 1 "$model"
    fi
    measure "$model lockstep 2" lockstep_figure train_with 2 "$model"
    if [ -n "${PEER_PYTHON:-}" ]; then
      # shellcheck disable=SC2046
      measure "$model torch 2" peer_figure peer pytorch_ddp.py 2 "$model" $(torch_flags "$model") --static-graph
    fi
  done
done

echo "Samples per second, median (min..max) of $repeats runs in turn; one thread a rank"
echo
echo "| model | ranks | Lockstep | PyTorch (2 ranks: DDP) | JAX | Lockstep / PyTorch | Lockstep / JAX |"
echo "|---|---|---|---|---|---|---|"
for model in "${models[@]}"; do
  for np in 1 2; do
    echo "| $model | $np | $(cell "$model lockstep $np") | $(cell "$model torch $np") | $(cell "$model jax $np") |" \
      "$(ratio "$model lockstep $np" "$model torch $np") | $(ratio "$model lockstep $np" "$model jax $np") |"
  done
done
echo
machine
