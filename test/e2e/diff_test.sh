#!/usr/bin/env bash
# What: lockstep diff through the executable: equal runs of 1, 2 and 3 ranks, and runs that differ by a key, a pixel, a
# bit in memory, each found at its step, stage and tensor; exit codes, --json, runs without a trace.
# Usage: diff_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; asks python3 for a second opinion on JSON where it is installed. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

small_config > small.toml
traced() { local out=$1; shift; run "$lockstep" train -c small.toml --out "$out" --set check.trace=hash "$@"; }
# differs LINE RUN_A RUN_B [KEY…]: exit 4, the first line, then the keys that differ.
differs() {
    local line=$1 a=$2 b=$3
    shift 3
    run "$lockstep" diff "$a" "$b"
    expect_exit 4
    [[ $(head -n 1 stdout) == "$line" ]] || fail "the first line is not: $line"
    local number=1
    for key in "$@"; do
        number=$((number + 1))
        [[ $(sed -n "${number}p" stdout) == "$key: "* ]] || fail "line $number does not name $key"
    done
}

# --- Equal ------------------------------------------------------------------------------------------------------------
traced one
expect_exit 0
[[ $(wc -l < one/trace.jsonl) == 19 ]] || fail "the trace of 18 steps has not 19 lines"
for ranks in 2 3; do
    run mpi $ranks "$lockstep" train -c small.toml --out np$ranks --set check.trace=hash
    expect_exit 0
    cmp <(sed 's/,"own":.*//' one/trace.jsonl) <(sed 's/,"own":.*//' np$ranks/trace.jsonl)
    run "$lockstep" diff one np$ranks
    expect_exit 0
    [[ $(head -n 1 stdout) == equal ]] || fail "1 and $ranks ranks are not equal"
    expect_in_stdout "ranks: 1 against $ranks"
done
# Begun by 3 ranks, gone on with by 2.
run mpi 3 "$lockstep" train -c small.toml --out legs --set check.trace=hash --set train.epochs=1
run "$lockstep" diff one legs
expect_exit 4
[[ $(head -n 2 stdout | tr '\n' '|') == "differ at step 10: length|train.epochs: 2 against 1 (can change bits)|" ]] || fail "a shorter run"
run mpi 2 "$lockstep" train -c small.toml --out legs --set check.trace=hash --resume auto
expect_exit 0
run mpi 2 "$lockstep" diff legs np3  # of several ranks one speaks
expect_exit 0
[[ $(grep -c "" stdout) -lt 6 ]] || fail "more than one rank speaks"
[[ $(head -n 1 stdout) == equal ]] || fail "a resumed run is another one"
# Tracing changes nothing, and without it nothing is written.
run "$lockstep" train -c small.toml --out untraced
expect_same_run one untraced
[[ ! -e untraced/trace.jsonl ]] || fail "a trace that nobody asked for"
run "$lockstep" diff one untraced
expect_exit 0
[[ $(head -n 2 stdout | tr '\n' '|') == 'equal|check.trace: "hash" against "off" (changes no bit)|' ]] || fail "not equal, or without the key"
expect_in_stdout 'RUN_B has no trace.jsonl'

# --- Different by a key -----------------------------------------------------------------------------------------------
traced seed --set seed=2
differs "differ at step 0: weights fc1.weight" one seed seed
traced rate --set optimizer.lr=0.04
differs "differ at step 1: optimizer fc1.weight" one rate optimizer.lr
expect_in_stdout "learning rate: 0.05 against 0.04"
traced order --set data.shuffle=none
differs "differ at step 1: data indices" one order data.shuffle
traced dropout --set model.dropout=0.2
differs "differ at step 1: forward loss" one dropout model.dropout
traced shards --set batch.shards=6 --set device.threads=1
differs "differ at step 1: gradient fc2.bias" one shards batch.shards device.threads
traced sum --set reduce.op=sum
differs "differ at step 1: optimizer fc1.weight" one sum reduce.op
run mpi 3 "$lockstep" train -c small.toml --out native --set check.trace=hash --set reduce.algorithm=native
differs "differ at step 1: reduction fc2.bias" np3 native reduce.algorithm
expect_in_stdout "after step 18, by checkpoints/step-00000018 of both"

# --- Different by a bit -----------------------------------------------------------------------------------------------
idx_images 48 5 5 > images
idx_labels 48 3 > labels
small_idx=(--set data.format=idx --set "data.train={images=\"images\",labels=\"labels\"}" --set data.shape=[])
traced pixels "${small_idx[@]}"
expect_exit 0
printf '\x7f' | dd of=images bs=1 seek=$((16 + 25 * 20 + 3)) conv=notrunc 2> /dev/null
traced pixel "${small_idx[@]}"
differs "differ at step 1: data samples" pixels pixel "training data"
LOCKSTEP_DEBUG_FAULT=rank:1,step:5,bit:3 run mpi 2 "$lockstep" train -c small.toml --out flip --set check.trace=hash
expect_exit 4  # the ranks differ, which stops the run before it saves
differs "differ at step 5: optimizer fc1.weight" np2 flip
expect_in_stdout "in RUN_B rank 1 has another weight than rank 0: fc1.weight"
LOCKSTEP_DEBUG_FAULT=rank:0,step:5,bit:22 traced flip1
expect_exit 0
differs "differ at step 5: optimizer fc1.weight" one flip1
# Without traces the first line of metrics.jsonl that shows it: the evaluation after the first epoch.
rm flip1/trace.jsonl
differs "differ at step 9: evaluation loss" one flip1

# --- JSON, and what is no run -----------------------------------------------------------------------------------------
run "$lockstep" diff one rate --json
expect_exit 4
if command -v python3 > /dev/null; then
    python3 - << 'PYTHON'
import json
found = json.load(open("stdout"))
assert (found["equal"], found["step"], found["stage"], found["tensor"]) == (False, 1, "optimizer", "fc1.weight"), found
assert [key["key"] for key in found["keys"]] == ["optimizer.lr"], found
first = found["weights"]["tensors"][0]
assert first["differ"] == sum(first["ulp"].values()) > 0, first
PYTHON
fi
# One run begins where the other has not been yet: nothing in common, which is not equality.
traced early --set seed=2 --set train.steps=5
run "$lockstep" train -c small.toml --out late --set check.trace=hash --set train.epochs=3 --resume one/checkpoints/step-00000018
expect_exit 0
run "$lockstep" diff late early
expect_exit 3
expect_in_stderr "no step, checkpoint or final weights of both to compare; the traces tell of steps 18 to 27 of RUN_A, 0 to 5 of RUN_B"
run "$lockstep" diff --help
expect_exit 0
expect_in_stdout 'check.trace = "hash"'
run "$lockstep" diff one nowhere
expect_exit 2
expect_in_stderr "nowhere: no run directory"
run "$lockstep" diff one
expect_exit 2
echo '{"step":' > np2/run.json
run "$lockstep" diff one np2
expect_exit 3
expect_in_stderr "np2/run.json: damaged"
