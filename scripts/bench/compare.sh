#!/usr/bin/env bash
# what : samples per second of Lockstep beside PyTorch (DDP: NCCL on GPUs, gloo on CPUs), by turns, for each precision and number of ranks (Markdown)
# usage: PYTORCH=python compare.sh [--device cuda|cpu] [--ranks 1,2] [--repeats 3] [--steps 200] [MODELS...]      (cuda: as many ranks as GPUs; lenet resnet50)
# needs: build/release or LOCKSTEP=executable (on GPUs with its CUDA library); idle devices; PYTORCH, a python with torch: without it Lockstep alone
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../common.sh"
. "$(dirname "$(readlink -f "$0")")/measure.sh"
device=cuda repeats=3 steps=200 ranks=
models=()
while [ $# -gt 0 ]; do
  case $1 in
    --device) device=${2:?}; shift ;;
    --ranks) ranks=${2:?}; shift ;;
    --repeats) repeats=${2:?}; shift ;;
    --steps) steps=${2:?}; shift ;;
    mlp | lenet | resnet50) models+=("$1") ;;
    *) usage ;;
  esac
  shift
done
[ ${#models[@]} -gt 0 ] || models=(lenet resnet50)
case $device in
  cpu) precisions=(fp32); ranks=${ranks:-1,2} ;;
  cuda)
    precisions=(fp32 tf32 bf16)
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU') || { say "no GPU here (nvidia-smi lists none): --device cpu measures the CPU"; exit 77; }
    if [ -z "$ranks" ]; then ranks=1; for ((n = 2; n <= gpus; n *= 2)); do ranks+=,$n; done; fi
    ;;
  *) usage ;;
esac
bench_begin

config_of() { echo "$root/configs/bench_$1.toml"; }
# Of all ranks together; what a GPU likes takes more memory than a host may have.
batch_of() { case $1-$device in resnet50-cuda) echo 256 ;; resnet50-cpu) echo 16 ;; *) echo 128 ;; esac; }
# Why this Lockstep cannot train a model, or nothing. A model that it has not is not measured, rather than another in its place.
refusal() {
  if [ -f "$(config_of "$1")" ]; then "$lockstep" config check -c "$(config_of "$1")" 2>&1 >/dev/null || true
  else "$lockstep" config show --set data.format=synthetic --set train.steps=1 --set model.name="$1" 2>&1 >/dev/null || true; fi | head -n 1
}

launched() {   # RANKS COMMAND...
  local np=$1
  shift
  if [ "$np" = 1 ]; then "$@"; else mpirun --bind-to none -np "$np" "$@"; fi
}
ours() {       # RANKS MODEL PRECISION ARITHMETIC
  rm -rf "$scratch/run"
  launched "$1" "$lockstep" train -q -c "$(config_of "$2")" --out "$scratch/run" --set train.steps="$steps" --set batch.size="$(batch_of "$2")" --set device.threads=1 --set log.every=1 \
    --set device.backend="$device" --set device.arithmetic="$4" --set device.precision="$3"
}
theirs() {     # RANKS MODEL PRECISION
  launched "$1" "$PYTORCH" "$root/scripts/bench/torch_ddp.py" --device "$device" --model "$2" --precision "$3" --steps "$steps" \
    --batch "$(batch_of "$2")"
}

declare -A refused
for model in "${models[@]}"; do
  refused[$model]=$(refusal "$model")
  [ -z "${refused[$model]}" ] || say "$model: Lockstep refuses it and is left out: ${refused[$model]}"
done
for ((i = 1; i <= repeats; i++)); do
  say "round $i of $repeats"
  for model in "${models[@]}"; do
    for np in ${ranks//,/ }; do
      for precision in "${precisions[@]}"; do
        if [ -z "${refused[$model]}" ]; then
          if [ "$precision" = fp32 ]; then measure "$model $np defined" lockstep_figure ours "$np" "$model" fp32 defined; fi
          if [ "$device" = cuda ]; then measure "$model $np $precision" lockstep_figure ours "$np" "$model" "$precision" vendor; fi
        fi
        if [ -n "${PYTORCH:-}" ]; then measure "$model $np torch $precision" peer_figure theirs "$np" "$model" "$precision"; fi
      done
    done
  done
done

echo "Samples per second on ${device^^}, median (min..max) of $repeats runs in turn of $steps steps"
echo
echo "| model | ranks | precision | Lockstep, defined | Lockstep, vendor | PyTorch | defined / PyTorch | vendor / PyTorch |"
echo "|---|---|---|---|---|---|---|---|"
for model in "${models[@]}"; do
  for np in ${ranks//,/ }; do
    for precision in "${precisions[@]}"; do
      defined="$model $np defined" vendor="$model $np $precision" torch="$model $np torch $precision"
      [ "$precision" = fp32 ] || defined=none
      echo "| $model | $np | $precision | $(cell "$defined") | $(cell "$vendor") | $(cell "$torch") | $(ratio "$defined" "$torch") | $(ratio "$vendor" "$torch") |"
    done
  done
done
for model in "${models[@]}"; do [ -z "${refused[$model]}" ] || echo "- $model: Lockstep refuses it (${refused[$model]})"; done
if [ "$device" = cuda ]; then nvidia-smi --query-gpu=name,driver_version,clocks.sm,memory.total --format=csv,noheader | sort | uniq -c | sed 's/^ */- GPUs: /'; fi
machine
