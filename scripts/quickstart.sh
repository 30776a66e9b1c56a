#!/usr/bin/env bash
# what : from a bare Debian 12 to a trained network: installs, builds, trains with 2 ranks and with 1, and compares the bits of both
# usage: quickstart.sh      (results on stdout, what it does on stderr; exit 0 only if both runs gave the same bits)
# needs: Debian 12, root or sudo where packages are missing; builds in build/quickstart, trains into runs/quickstart
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/common.sh"
[ $# = 0 ] || usage

say "1/4 packages"
"$root/scripts/setup.sh"

say "2/4 build, in build/quickstart (a few minutes the first time)"
configure build/quickstart -DBUILD_TESTING=OFF -DLOCKSTEP_CUDA=OFF
build build/quickstart
lockstep=$root/build/quickstart/apps/lockstep/lockstep
config=$root/configs/fashion_mlp.toml
runs=$root/runs/quickstart
say "    built after $SECONDS s"

# Both runs start from nothing: the results of an earlier quickstart make room. Training reports go to stderr: stdout is for the results.
rm -rf "$runs"
mpi_environment
say "3/4 train on Fashion-MNIST with 2 ranks: mpirun -np 2 lockstep train -c configs/fashion_mlp.toml"
mpirun -np 2 "$lockstep" train -c "$config" --out "$runs/ranks-2" </dev/null >&2
say "4/4 train with 1 rank: lockstep train -c configs/fashion_mlp.toml"
"$lockstep" train -c "$config" --out "$runs/ranks-1" </dev/null >&2
say "    done after $SECONDS s; both runs are in runs/quickstart"

accuracy() { sed -n '/"event":"eval"/s/.*"accuracy":\([0-9.e+-]*\).*/\1/p' "$1/metrics.jsonl" | tail -n 1; }
# The sums are made by sha256sum, not by the program that is on trial.
sum() { sha256sum <"$1/model.safetensors" | cut -d ' ' -f 1; }
two=$(sum "$runs/ranks-2")
one=$(sum "$runs/ranks-1")
echo "test accuracy: $(accuracy "$runs/ranks-2")"
echo "sha256 of model.safetensors, 2 ranks: $two"
echo "sha256 of model.safetensors, 1 rank:  $one"
[ "$two" = "$one" ] || die "the sums differ: 2 ranks did not give the bits of 1 rank. That is a bug; please report it with runs/quickstart"
