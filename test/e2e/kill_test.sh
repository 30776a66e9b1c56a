#!/usr/bin/env bash
# What: runs killed at random moments, saving included (a random rank, or mpirun), and resumed at a random number of ranks,
# again and again until they are done: every one ends with the bytes of the run that was never disturbed, and goes on
# from the newest checkpoint that was complete.
# Usage: kill_test.sh PATH_TO_LOCKSTEP [RUNS] [SEED]
# Needs: mpirun, /proc. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$(realpath "$1")
runs=${2:-4}
seed=${3:-$((RANDOM * 32768 + RANDOM))}
cd "$(mktemp -d)"
job=
trap '[[ -z $job ]] || kill -s KILL $job 2> /dev/null || true; rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
RANDOM=$seed
echo "seed $seed"

small_config > small.toml
settings=(-c small.toml --set train.steps=300 --set eval.every_steps=70 --set device.timeout_s=20)
"$lockstep" train "${settings[@]}" -q --out undisturbed

newest_complete() { # step of the newest checkpoint that can be resumed from, 0 if there is none
    local state newest=0 name
    for state in run/checkpoints/step-*/state.json; do
        [[ -e $state ]] || continue
        name=$(basename "$(dirname "$state")")
        ((10#${name#step-} <= newest)) || newest=$((10#${name#step-}))
    done
    echo $newest
}

ranks_here() { # the processes that train in this folder
    local process
    for process in /proc/[0-9]*; do
        if [[ $(readlink "$process/exe") == "$lockstep" && $(readlink "$process/cwd") == "$PWD" ]]; then basename "$process"; fi
    done 2> /dev/null
}

# attempt: goes on at a random number of ranks; done, or killed when it has gone on for a random time. The kill falls on the
# start, on steps, or, where every step is saved, mostly on saving.
attempt() {
    local ranks=$((RANDOM % 5)) every=$((RANDOM % 3 == 0 ? 50 : RANDOM % 3 + 1)) launcher=() victims victim before from
    ((ranks == 0)) || launcher=(mpirun -q --oversubscribe --bind-to none -np $ranks)
    before=$(newest_complete)
    last_command=("${launcher[@]}" "$lockstep" train "${settings[@]}" --set checkpoint.every_steps=$every --out run --resume auto)
    : > stderr
    "${last_command[@]}" > stdout 2> stderr < /dev/null &
    job=$!
    if ((RANDOM % 4 > 0)); then wait_for 60 eval "grep -q ' shards on ' stderr || [[ ! -e /proc/$job ]]"; fi
    sleep "$(printf '0.%03d' $((RANDOM % 900)))"
    victims=($job $(ranks_here))
    victim=${victims[RANDOM % ${#victims[@]}]}
    kill -s KILL "$victim" 2> /dev/null || true
    finished
    wait_for 30 eval '[[ -z $(ranks_here) ]]' # also those that were just being started
    if grep -qE '"event":"(start|resume)"' run/events.jsonl 2> /dev/null && grep -q ' shards on ' stderr; then
        from=$(grep -E '"event":"(start|resume)"' run/events.jsonl | tail -n 1)
        [[ $from == *"\"step\":$before,"* ]] || fail "it did not go on from step $before: $from"
    fi
    ((last_exit != 0)) || return 0
    ((++kills))
    return 1
}

kills=0
for ((number = 1; number <= runs; ++number)); do
    rm -rf run
    for ((attempts = 1; ; ++attempts)); do
        ! attempt || break
        ((attempts < 4)) || break
    done
    run mpi $((RANDOM % 4 + 1)) "$lockstep" train "${settings[@]}" --out run --resume auto # done already, or to the end
    expect_exit 0
    expect_same_run run undisturbed
    [[ -z $(find run -name '.*') ]] || fail "something half-written was left: $(find run -name '.*')"
done
echo "kills: $runs runs, killed $kills times in all, ended with the bytes of the undisturbed one"
