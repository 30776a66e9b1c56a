#!/usr/bin/env bash
# What: runs that are stopped on request or killed at any moment go on at another number of ranks to the bytes of the run
# that was never stopped.
# Usage: stop_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun, /proc. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
cd "$(mktemp -d)"
job=
trap '[[ -z $job ]] || kill -s KILL $job 2> /dev/null || true; rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

small_config > small.toml
steps=2000
patience=20
limit=200 # seconds for 2,000 steps, most of them waiting for a core where the machine is loaded
settings() { echo -c small.toml --set train.steps=$steps --set checkpoint.every_steps=100 --set eval.every_steps=700 --set device.timeout_s=$patience; }
reference() { "$lockstep" train $(settings) -q --out uninterrupted-$steps; }
reference

# start RANKS DIR: a run in the background (0: without mpirun), which has taken its first steps when this returns; job is
# its process, and the launcher's.
start() {
    local launcher=()
    (($1 == 0)) || launcher=(mpirun -q --oversubscribe --bind-to none -np "$1")
    last_command=("${launcher[@]}" "$lockstep" train $(settings) --out "$2" --resume auto)
    "${last_command[@]}" > stdout 2> stderr < /dev/null &
    job=$!
    wait_for 30 eval "grep -qs '\"step\":30,' $2/metrics.jsonl || [[ ! -e /proc/$job ]]"
}

# stopped RANKS SIGNALS WHOM: such a run, ended by signals to "job" or to a rank. A machine so fast that the run was over
# first gets a longer one.
stopped() {
    for (( ; ; )); do
        rm -rf run
        start "$1" run
        local target=$job signal
        [[ $3 == job ]] || target=$(rank_process "$3")
        for signal in $2; do kill -s "$signal" "$target" 2> /dev/null || true; done
        finished
        ((hung == 0)) || continue
        ((last_exit == 0)) || return 0
        steps=$((steps * 4))
        ((steps < 1000000)) || fail "the signal is never noticed"
        reference
    done
}
expect_goes_on() { # RANKS
    if (($1 == 0)); then run timeout $limit "$lockstep" train $(settings) --out run --resume auto; else
        run mpi "$1" "$lockstep" train $(settings) --out run --resume auto
    fi
    expect_exit 0
    expect_same_run run uninterrupted-$steps
    [[ -z $(find run -name '.*') ]] || fail "something half-written was left: $(find run -name '.*')"
}
expect_checkpoint_at_stop() {
    local step
    step=$(sed -nE 's/^stopped on request at step ([0-9]+); go on with --resume auto --out run$/\1/p' stderr)
    [[ -n $step ]] || fail "the step of the stop is not told"
    [[ -e run/checkpoints/$(printf 'step-%08d' "$step")/state.json ]] || fail "no checkpoint of step $step"
    grep -q '^{"event":"stop",' run/events.jsonl || fail "no stop event"
    ! grep -q '"event":"end"' run/metrics.jsonl || fail "a stopped run has an end event"
}

# Asked with USR1, through mpirun or on one rank alone: all ranks leave a checkpoint and 75, which mpirun passes on.
stopped 3 USR1 job
expect_exit 75
expect_checkpoint_at_stop
expect_goes_on 2
stopped 4 USR1 3
expect_exit 75
expect_checkpoint_at_stop
expect_goes_on 0
[[ -z $(lockstep_said | grep 'asked to stop') ]] || fail "USR1 needs no answer"

# TERM to a single process: the same, said once. TERM to mpirun: the ranks have a second to write, mpirun returns 1.
stopped 0 TERM job
expect_exit 75
expect_checkpoint_at_stop
[[ $(grep -c 'lockstep: asked to stop' stderr) == 1 ]] || fail "not said once"
expect_goes_on 3
stopped 3 TERM job
((last_exit != 0)) || fail "mpirun returned 0"
(($(grep -c 'lockstep: asked to stop' stderr) <= 1)) || fail "said by several ranks"
expect_goes_on 2

# A second signal leaves at once. Both reach a process that stands still, so that no step lies between them.
stopped 0 "STOP TERM INT CONT" job
expect_exit 1
! grep -q '"event":"stop"' run/events.jsonl || fail "it stopped in order"
expect_goes_on 2

# Killed: a rank (the others are ended by mpirun), or mpirun (the ranks notice). Nothing but whole checkpoints counts.
for rank in 0 2; do
    stopped 3 KILL $rank
    ((last_exit != 0)) || fail "a killed rank gave exit 0"
    expect_goes_on $((rank + 1))
done

# A rank that stands still: the others name it and end the job.
patience=5
stopped 3 STOP 1
expect_exit 1
grep -qE '^lockstep: rank [02] on .*: rank 1 did not answer for 5 s \(device\.timeout_s\)' <(lockstep_said) || fail "rank 1 is not named: $(lockstep_said | tail -n 3)"
patience=20
expect_goes_on 2

# mpirun itself is killed; its ranks end by themselves.
for (( ; ; )); do
    rm -rf run
    start 3 run
    ranks=($(rank_process 0) $(rank_process 1) $(rank_process 2))
    kill -s KILL $job 2> /dev/null || true
    finished
    wait_for 30 all_gone "${ranks[@]}"
    grep -q '"event":"end"' run/metrics.jsonl || break
    steps=$((steps * 4)) # the run was over first
    ((steps < 1000000)) || fail "the run is always over first"
    reference
done
for turn in unfinished finished; do
    mkdir -p run/checkpoints/.writing-step-99999999 run/checkpoints/.remove-step-00000001 # as a kill at a worse moment leaves them
    touch run/.lockstep-tmp-1-0 run/checkpoints/.lockstep-tmp-1-0
    expect_goes_on 4
done
echo "stops: every run goes on to the bytes of the uninterrupted one"
