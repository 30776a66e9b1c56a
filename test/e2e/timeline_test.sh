#!/usr/bin/env bash
# What: train --trace-file: a JSON document with a process for each rank and a span for each stage of each step, also of a
#       run that is stopped or fails; the run is the same without it; a path that cannot be written is refused at once.
# Usage: timeline_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; asks python3 for a second opinion on JSON where it is installed. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$(realpath "$1")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

small_config > small.toml
run "$lockstep" train -q -c small.toml --out plain
expect_exit 0

# expect_trace FILE RANKS STEPS: every stage of every step, on every rank.
expect_trace() {
    [[ $(head -c 1 "$1") == "{" && $(tail -n 1 "$1") == "]}" ]] || fail "$1: not one JSON object"
    ! command -v python3 > /dev/null || python3 -m json.tool "$1" > /dev/null || fail "$1: no JSON"
    local rank stage
    for ((rank = 0; rank < $2; ++rank)); do
        grep -q "^{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":$rank,.*\"rank $rank on $(uname -n)\"" "$1" || fail "$1: no rank $rank"
        for stage in step input forward backward reduce optimizer; do
            [[ $(sed -nE "s/^\{\"name\":\"$stage\",\"cat\":\"train\",\"ph\":\"X\",\"pid\":$rank,.*\"ts\":[0-9]+\.[0-9]{3},\"dur\":[0-9]+\.[0-9]{3},\"args\":\{\"step\":([0-9]+)\}\},?$/\1/p" "$1" | xargs) == "$(seq 1 "$3" | xargs)" ]] ||
                fail "$1: $stage of rank $rank is not there for every step"
        done
        for stage in evaluate checkpoint "replica check"; do
            grep -q "^{\"name\":\"$stage\",.*\"pid\":$rank,.*\"args\":{\"step\":$3}" "$1" || fail "$1: no $stage of rank $rank"
        done
    done
    ! grep -q "\"pid\":$2," "$1" || fail "$1: more than $2 ranks"
}

run "$lockstep" train -q -c small.toml --out run1 --trace-file one.json
expect_exit 0
expect_trace one.json 1 18
expect_same_run run1 plain
# Into the run directory itself, over an old file.
run mpi 3 "$lockstep" train -q -c small.toml --out run3 --trace-file run3/trace.json
expect_exit 0
expect_trace run3/trace.json 3 18
expect_same_run run3 plain

# A host whose clock is a day ahead (a time namespace, where the system lets us make one): laid on rank 0's clock.
if unshare --time --fork --monotonic 86400 true 2> /dev/null; then
    skewed=("$lockstep" train -q -c small.toml --out skewed --trace-file skewed.json)
    run launch -np 1 "${skewed[@]}" : -np 1 unshare --time --fork --monotonic 86400 "${skewed[@]}"
    expect_exit 0
    expect_trace skewed.json 2 18
    grep -q '^{"name":"process_labels","ph":"M","pid":1,.*"clock within [0-9.]* µs of rank 0' skewed.json || fail "no word on rank 1's clock"
    ! grep -qE '"ts":[0-9]{9}' skewed.json || fail "the clocks are apart: $(grep -m 1 -E '"ts":[0-9]{9}' skewed.json)"
fi

# Stopped on request: the steps up to there.
long=(--set train.epochs=100000 --set eval.every_steps=1)
mpi 2 bash -c 'echo $$ > pid.$OMPI_COMM_WORLD_RANK; exec "$@"' _ "$lockstep" train -q -c small.toml "${long[@]}" --out stopped --trace-file stopped.json > stdout 2> stderr < /dev/null &
job=$!
wait_for 30 grep -qs '"step":5,' stopped/metrics.jsonl
kill -s USR1 "$(cat pid.1)"
last_exit=0
wait $job || last_exit=$?
expect_exit 75
expect_trace stopped.json 2 "$(sed -nE 's/.*"event":"stop",.*"step":([0-9]+),.*/\1/p' stopped/events.jsonl)"

# Failed on all ranks: the same.
export LOCKSTEP_DEBUG_FAULT=rank:1,step:7,bit:3
run mpi 3 "$lockstep" train -q -c small.toml --out failed --trace-file failed.json --set check.replicas_every=7 --set eval.every_steps=7
unset LOCKSTEP_DEBUG_FAULT
expect_exit 4
grep -c '"name":"optimizer",' failed.json | grep -qx 21 || fail "not 7 steps of 3 ranks"
! command -v python3 > /dev/null || python3 -m json.tool failed.json > /dev/null || fail "failed.json: no JSON"

# Not writable: told before the first step, and no harm done.
before=$(inventory)
for ranks in 1 2; do
    run mpi $ranks "$lockstep" train -q -c small.toml --out run1 --resume auto --set train.epochs=3 --trace-file nowhere/trace.json
    expect_exit 1
    [[ $(lockstep_said) == "lockstep: "*nowhere/trace.json* && $(lockstep_said | wc -l) == 1 ]] || fail "not one clear line: $(lockstep_said)"
    [[ $(inventory) == "$before" ]] || fail "files changed: $(diff <(echo "$before") <(inventory))"
done
# A disk that is full by then: the run is done and saved, and the exit code tells that its trace is not.
run mpi 2 "$lockstep" train -q -c small.toml --out full --trace-file /dev/full
expect_exit 1
[[ $(lockstep_said) == "lockstep: cannot write /dev/full: "* && $(lockstep_said | wc -l) == 1 ]] || fail "not one clear line: $(lockstep_said)"
expect_same_run full plain
[[ -z $(find . -name '.lockstep-tmp-*') ]] || fail "temporary files are left"
echo "time line: every stage of every step on 1, 2 and 3 ranks, stopped and failed runs included"
