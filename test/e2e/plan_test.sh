#!/usr/bin/env bash
# What: lockstep plan through the executable: the facts that can be worked out by hand, the shape of its JSON, its
# refusals, and that what it tells of a run is what the run then does.
# Usage: plan_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
small_config > small.toml

plan() { run timeout 60 "$lockstep" plan -c small.toml "$@"; }
synthetic() { plan --json --set data.samples="$1" --set batch.size="$2" "${@:3}"; }

# 858 samples in batches of 32 on four ranks: 27 steps an epoch, the last of 26.
synthetic 858 32 --ranks 4
expect_exit 0
expect_stderr ""
expect_in_stdout '"samples":858,"batch":32,"shards":8,"layout":"batch","steps_per_epoch":27,"epochs":2,"steps":54,"last_batch":26,'
expect_in_stdout '{"rank":1,"shards":[2,4],"shift_ratio":0.25,"samples_per_step":8,'
# 60,000 in batches of 128: 469 steps, the last of 96; the network of Fashion-MNIST sends 2,143,272 bytes at two ranks,
# in two messages, as a ring would.
fashion=(--set data.shape=[28,28,1] --set data.classes=10 --set model.hidden=[512,256] --set train.epochs=10 --set optimizer.lr=0.05)
synthetic 60000 128 --ranks 2 "${fashion[@]}"
expect_exit 0
expect_in_stdout '{"samples":60000,"batch":128,"shards":8,"layout":"batch","steps_per_epoch":469,"epochs":10,"steps":4690,"last_batch":96,"parameters":535818,"lr":[{"step":1,"lr":0.05},{"step":4690,"lr":0.05}],"batch_norm_samples":null,'
expect_in_stdout '"worlds":[{"world":2,"ranks":[{"rank":0,"shards":[0,4],"shift_ratio":0.0,"samples_per_step":64,"bytes_sent":2143272,"messages":2,'
expect_in_stdout '"bytes_sent_per_step":2143272,"messages_per_step":2,"ring_bytes_per_step":2143272,'
[[ $(wc -l < stdout) == 1 ]] || fail "the JSON is more than one line"
# A billion samples cost no time: nothing is read.
synthetic 1000000000 128 --ranks 2
expect_exit 0
expect_in_stdout '"steps_per_epoch":7812500,'

# Ten samples in batches of four: 4, 4 and 2. In data order, two ranks read 0 1 | 2 3, 4 5 | 6 7, 8 | 9.
synthetic 10 4 --ranks 2 --samples 9 --set data.shuffle=none
expect_in_stdout '"steps_per_epoch":3,'
expect_in_stdout '"last_batch":2,'
expect_in_stdout '"first_samples":[[0,1],[4,5],[8]]'
expect_in_stdout '"first_samples":[[2,3],[6,7],[9]]'
plan --ranks 2 --samples 3 --set data.shuffle=none --set data.samples=10 --set batch.size=4
expect_in_stdout '2 ranks, rank 1: step 1: 2 3; step 2: 6 7; step 3: 9'

# Warm-up, cosine, and the step that was asked for.
plan --json --set schedule.name=cosine --set schedule.warmup_epochs=1 --set optimizer.lr=0.9 --lr-at 5
expect_in_stdout '"lr":[{"step":1,"lr":0.1},{"step":5,"lr":0.5},{"step":9,"lr":0.9},{"step":10,"lr":0.9},{"step":18,'

# The text says the same to people; ranks that are alike share a line.
plan --ranks 1,2,3,8,64
expect_exit 0
expect_stderr ""
expect_in_stdout "steps         18; 9 an epoch; 2 epochs"
expect_in_stdout "free: 1, 2, 4, 8 (powers of two, V = 8, a sample for every rank)"
expect_in_stdout "costs: W = 3 is no power of two"
expect_in_stdout "costs: V = 8 shards, 56 ranks idle"
(($(wc -l < stdout) < 70)) || fail "64 ranks fill $(wc -l < stdout) lines"
[[ $(awk '{ if (length > widest) widest = length } END { print widest }' stdout) -lt 200 ]] || fail "lines are too long"

# It says so of the run that follows: the trainer's own line, and the learning rates in its metrics.
plan --json --ranks 3
foretold=$(cat stdout)
run mpi 3 "$lockstep" train -c small.toml --out three --set log.every=1
expect_exit 0
[[ $foretold == *'"steps":18,'* && $(grep -c '"event":"step"' three/metrics.jsonl) == 18 ]] || fail "not 18 steps"
parameters=$(sed -E 's/.*"parameters":([0-9]+).*/\1/' <<< "$foretold")
expect_in_stderr "$parameters parameters, 203 samples, 18 steps"

# Under mpirun one rank answers, and that number of ranks is among the answers.
run mpi 3 "$lockstep" plan -c small.toml --json --ranks 1
expect_exit 0
[[ $(wc -l < stdout) == 1 ]] || fail "more than one rank answered"
expect_in_stdout '{"world":3,'
run mpi 3 "$lockstep" plan -c small.toml --set batch.sise=9
expect_exit 2
[[ $(lockstep_said) == "--set batch.sise=9: batch.sise: unknown key; did you mean batch.size?" ]] || fail "not one clear line: $(lockstep_said)"
# Timing is measured on request only, and says where.
plan --json --ranks 1,2 --time
expect_exit 0
expect_in_stdout '"timed_on":"'
expect_in_stdout '"compute_s_per_step":'
plan --time
expect_in_stdout "measured on $(uname -n) ("

# Refusals: one line, exit 2 (the data's own: 3).
refused() {
    plan "${@:3}"
    expect_exit "$1"
    expect_stdout ""
    expect_stderr_lines 1
    expect_in_stderr "$2"
}
refused 2 "--ranks" --ranks 0
refused 2 "--ranks" --ranks two
refused 2 "--ranks" --ranks 1,,x
refused 2 "--ranks" --ranks 5000
refused 2 "--ranks" --ranks -3
refused 2 "--samples" --samples 0
refused 2 "--lr-at 19: the run has steps 1 to 18; ask for one of them" --lr-at 19
refused 2 "batch.size must be at least 1" --set batch.size=0
refused 2 "an epoch of 203 samples is shorter than one batch of 500" --set batch.size=500 --set batch.last=drop
refused 3 "cannot open $PWD/none: No such file or directory" --set data.format=idx --set data.train.images=none --set data.train.labels=none
run timeout 20 "$lockstep" plan
expect_exit 2
expect_stderr_lines 1
