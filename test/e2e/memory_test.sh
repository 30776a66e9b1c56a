#!/usr/bin/env bash
# What: training an mlp on Fashion-MNIST, with evaluation and checkpoints, stays under 300 MB at its peak.
# Usage: memory_test.sh PATH_TO_LOCKSTEP
# Needs: the Debian package dataset-fashion-mnist (skipped without it), /proc. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
config=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../configs/fashion_mlp.toml")
images=$(sed -nE 's/.*images *= *"(\/[^"]*train-images[^"]*)".*/\1/p' "$config" | head -n 1)
if [[ ! -e $images ]]; then
    echo "skipped: $images is not there (Debian package dataset-fashion-mnist)"
    exit 77
fi
cd "$(mktemp -d)"
job=
trap '[[ -z $job ]] || kill -s KILL $job 2> /dev/null || true; rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

# All that takes memory has happened once (unpacking, steps, evaluation, saving) when the first checkpoint stands; the
# process has work for a long time then, and is stopped.
last_command=("$lockstep" train -c "$config" --out run --set train.epochs=1000 --set checkpoint.every_steps=40 --set eval.every_steps=40)
"${last_command[@]}" > stdout 2> stderr < /dev/null &
job=$!
wait_for 90 eval "[[ -e run/checkpoints/latest || ! -e /proc/$job ]]"
peak=$(sed -nE 's/^VmHWM:\s*([0-9]+) kB$/\1/p' /proc/$job/status)
kill -s TERM $job
last_exit=0
wait $job || last_exit=$?
job=
expect_exit 75
[[ -n $peak ]] || fail "/proc tells no peak"
((peak * 1024 < 300 * 1000 * 1000)) || fail "the peak is $peak kB"
((peak > 47 * 1000)) || fail "$peak kB cannot hold 47 MB of images: this measures something else"
echo "memory: a peak of $((peak / 1000)) MB"
