#!/usr/bin/env bash
# What: the executable on emulated GPUs: a run whose steps are CUDA graphs has the bytes of the CPU's, at any number of
#       ranks and after a resume without graphs; what cuDNN chose stands in run.json and in a checkpoint, and inspect shows it.
# Usage: cuda_details_test.sh PATH_TO_LOCKSTEP PATH_TO_EMULATED_CUDA_LIBRARY
# Needs: mpirun. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$(realpath "$1")
library=$(realpath "$2")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
export LOCKSTEP_DEBUG_CUDA_PLUGIN=$library

small_config | sed 's/shape = .*/shape = [12, 12, 1]/; s/hidden = .*/name = "lenet"\nchannels = [2, 3]\ndropout = 0.4/; s/samples = 203/samples = 80/' > lenet.toml
train() { # OUT ARGUMENTS…
    rm -rf "$1"
    run timeout 60 "$lockstep" train -q -c lenet.toml --out "$@"
    expect_exit 0
}

train cpu --set device.backend=cpu
train graphs --set device.backend=cuda --set device.graphs=true --set checkpoint.every_steps=4
expect_same_run cpu graphs
run mpi 2 "$lockstep" train -q -c lenet.toml --out graphs-2 --set device.backend=cuda --set device.graphs=true --set device.streams=3
expect_exit 0
expect_same_run cpu graphs-2
LOCKSTEP_DEBUG_SYNC=1 train resumed --set device.backend=cuda --set device.graphs=true --resume graphs/checkpoints/step-00000004
[[ $(sha256sum < resumed/model.safetensors) == $(sha256sum < cpu/model.safetensors) ]] || fail "a resume with graphs ends with other weights"

train vendor --set device.backend=cuda --set device.arithmetic=vendor
grep -q '^    "convolution .*forward' vendor/run.json || fail "run.json does not say what cuDNN chose"
run timeout 60 "$lockstep" inspect vendor/checkpoints/latest
expect_exit 0
expect_in_stdout "device: convolution "
train vendor-graphs --set device.backend=cuda --set device.arithmetic=vendor --set device.graphs=true
expect_same_run vendor vendor-graphs
run timeout 60 "$lockstep" inspect graphs/checkpoints/latest
expect_exit 0
! grep -q '^device: ' stdout || fail "defined arithmetic has no algorithms to tell"
