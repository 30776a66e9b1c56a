#!/usr/bin/env bash
# What: short runs of every kind of layer, loss and optimizer must give the weights that golden.json knows of arithmetic 1,
#       on every instruction set of this machine and on one and two threads. What every build on every machine gives
#       cannot change unseen.
# Usage: golden_test.sh PATH_TO_LOCKSTEP
# Needs: nothing but the executable, which may be a script that runs it elsewhere; works in a temporary folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/assertions.sh"
lockstep=$(realpath "$1")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

golden_of() { sed -n "s/^ *\"$1\": \"\([0-9a-f]*\)\",\{0,1\}\$/\1/p" "$here/golden.json"; }
train() { # CONFIG ISA THREADS
    run "$lockstep" train -q -c "$here/golden/$1.toml" --out "$1-$2-$3" --set "device.isa=$2" --set "device.threads=$3"
}

run "$lockstep" --version
expect_exit 0
grep -qxF "arithmetic $(golden_of arithmetic)" stdout || fail "golden.json is of arithmetic $(golden_of arithmetic); make it anew for this one"

isas=()
for isa in scalar avx2 avx512 neon; do
    train adam "$isa" 1
    if [[ $last_exit == 2 ]] && grep -qF "this CPU does not have it" stderr; then continue; fi
    expect_exit 0
    isas+=("$isa")
done
[[ ${isas[0]} == scalar && ${#isas[@]} -ge 2 ]] || fail "only these instruction sets were found: ${isas[*]}"

wrong=0
for config in "$here"/golden/*.toml; do
    name=$(basename "$config" .toml)
    golden=$(golden_of "$name")
    [[ -n $golden ]] || fail "golden.json has no \"$name\""
    for isa in "${isas[@]}"; do
        for threads in 1 2; do
            if [[ ! -e $name-$isa-$threads ]]; then
                train "$name" "$isa" "$threads"
                expect_exit 0
            fi
            sum=$(sha256sum < "$name-$isa-$threads/model.safetensors")
            [[ ${sum%% *} == "$golden" ]] || { echo "$name, $isa, $threads threads: sha256 ${sum%% *}, golden.json has $golden" >&2; wrong=1; }
            # Losses and evaluations are part of the result, too.
            sed 's/,"wall":{[^}]*}//' "$name-$isa-$threads/metrics.jsonl" > metrics
            [[ -e $name.metrics ]] || cp metrics "$name.metrics"
            cmp -s metrics "$name.metrics" || { echo "$name, $isa, $threads threads: other metrics than with ${isas[0]}" >&2; wrong=1; }
        done
    done
done
if [[ $wrong != 0 ]]; then
    echo "A bit of a trained weight has changed. That breaks what every earlier run and checkpoint rests on: find the change." >&2
    echo "If it is meant, it is another arithmetic: give kArithmetic and kNumericFingerprint (lib/core/version.hpp) a new number," >&2
    echo "so that older checkpoints are refused by name, and put the new sums and that number into test/e2e/golden.json." >&2
    exit 1
fi
# The twin: a change of the learning rate by half a millionth is seen.
run "$lockstep" train -q -c "$here/golden/adam.toml" --set optimizer.lr=0.002000001 --out twin
expect_exit 0
[[ $(sha256sum < twin/model.safetensors) != "$(golden_of adam)"* ]] || fail "another learning rate gives the same weights"
echo "golden hashes: as known, on ${isas[*]}, with 1 and 2 threads"
