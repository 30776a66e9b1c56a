#!/usr/bin/env bash
# what : seconds from exec to the end of one training step of configs/fashion_mlp.toml, process start and exit included
# usage: [PEER_PYTHON=python PEER_SCRIPTS=folder] startup.sh [REPEATS]      (5)
# needs: build/release (or LOCKSTEP=executable), dataset-fashion-mnist; peers as in throughput.sh
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/../common.sh"
. "$(dirname "$(readlink -f "$0")")/measure.sh"
if [[ ${1:-5} = *[!0-9]* ]] || [ $# -gt 1 ]; then usage; fi
repeats=${1:-5}
bench_begin

# Without the test data there is no evaluation, which is no part of the start.
grep -v '^test = ' "$root/configs/fashion_mlp.toml" >"$scratch/startup.toml"
images=$(sed -n 's/^train = .*images = "\([^"]*\)".*/\1/p' "$scratch/startup.toml")
one_step() {
  rm -rf "$scratch/run"
  "$lockstep" train -q -c "$scratch/startup.toml" --out "$scratch/run" --set train.steps=1
}
torch_step() { "$PEER_PYTHON" "$PEER_SCRIPTS/pytorch_ddp.py" --model mlp --data "$(dirname "$images")" --steps 1 --warmup 0 --no-eval --threads "$(nproc)"; }
wall() { cut -d ' ' -f 1 "$scratch/time"; }

for ((i = 1; i <= repeats; i++)); do
  measure "lockstep" wall one_step
  if [ -n "${PEER_PYTHON:-}" ]; then measure "torch" wall torch_step; fi
done

echo "Seconds for a process that reads Fashion-MNIST and trains one step of the mlp, median (min..max) of $repeats runs"
echo
echo "| Lockstep | PyTorch | PyTorch / Lockstep |"
echo "|---|---|---|"
echo "| $(cell lockstep) | $(cell torch) | $(ratio torch lockstep) |"
echo
machine
