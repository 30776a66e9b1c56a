#!/usr/bin/env bash
# What: lockstep bench through the executable: the fields of its JSON, that what must be more than nothing is, that the
#       threads and ranks asked for are those measured, and its refusals.
# Usage: bench_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
small_config > small.toml
short=(-c small.toml --seconds 0.05 --json)

one_line() {
    expect_exit 0
    expect_stderr "${1-}"
    [[ $(wc -l < stdout) == 1 && $(head -c 1 stdout) == "{" ]] || fail "not one document on one line"
}
# positive NAME COUNT: the field stands so often on stdout, and is a number above 0 each time.
positive() {
    local found
    found=$(grep -oE "\"$1\":[^,}]*" stdout | cut -d: -f2)
    [[ $(wc -l <<< "$found") == "$2" ]] || fail "$1 is not there $2 times: $found"
    awk '!($1 > 0) { exit 1 }' <<< "$found" || fail "$1 is not above 0: $found"
}

# --- A step: how long, and the share of each stage -----------------------------------------------------------------------
run timeout 60 "$lockstep" bench step "${short[@]}"
one_line
expect_in_stdout '{"benchmark":"step","model":"mlp","device":"cpu '
expect_in_stdout '"world":1,"batch":24,"shards":8,"steps":'
positive median 1
positive samples_per_s 1
for stage in input forward backward reduce update; do positive "$stage" 1; done
shares=$(grep -oE '"(input|forward|backward|reduce|update)":[^,}]*' stdout | cut -d: -f2 | awk '{ s += $1 } END { print (s > 0.999 && s < 1.001) }')
[[ $shares == 1 ]] || fail "the shares are not a whole"
# Two ranks answer with one document, in which both stand; steps are trained, and nothing is written.
before=$(inventory)
run mpi 2 "$lockstep" bench step "${short[@]}"
expect_exit 0
[[ $(wc -l < stdout) == 1 ]] || fail "more than one rank answered"
expect_in_stdout '"world":2,'
expect_in_stdout '{"rank":0,"host":"'
expect_in_stdout '{"rank":1,"host":"'
positive samples 2
[[ $(inventory) == "$before" ]] || fail "a benchmark left something behind"

# --- Its reduction: both algorithms, the config's own first -------------------------------------------------------------
gradient=$("$lockstep" plan -c small.toml --ranks 2 --json | grep -oE '"bytes_sent_per_step":[0-9]+' | cut -d: -f2)
run timeout 60 "$lockstep" bench reduce "${short[@]}"
one_line
expect_in_stdout '"world":2,'
expect_in_stdout '"ranks_are":"threads",'
expect_in_stdout '"algorithms":[{"algorithm":"canonical",'
expect_in_stdout '{"algorithm":"native",'
expect_in_stdout "\"bytes_sent\":$gradient,"
positive median 2
positive gb_per_s 2
positive repetitions 2
run timeout 60 "$lockstep" bench reduce "${short[@]}" --ranks 3 --set reduce.algorithm=native
one_line
expect_in_stdout '"world":3,'
expect_in_stdout '"algorithms":[{"algorithm":"native",'
run mpi 2 "$lockstep" bench reduce "${short[@]}"
expect_exit 0
expect_in_stdout '"world":2,'
expect_in_stdout '"ranks_are":"processes",'
expect_in_stdout "\"bytes_sent\":$gradient,"
positive median 2

# --- Its input: as many threads as were asked for, beside what a step needs -----------------------------------------------
run timeout 60 "$lockstep" bench input "${short[@]}" --threads 1,3
one_line
expect_in_stdout '"format":"synthetic","records":203,"bytes":null,"shape":[5,5,1],"config_threads":1,"rates":[{"threads":1,'
expect_in_stdout '{"threads":3,'
positive threads 2
positive of_step 2
positive records_per_s 3
run timeout 60 "$lockstep" bench input "${short[@]}" --set device.input_threads=2
one_line
expect_in_stdout '"config_threads":2,"rates":[{"threads":2,'
[[ $(grep -o '"threads":' stdout | wc -l) == 1 ]] || fail "other numbers of threads than the config's"
idx_images 30 5 5 > images
idx_labels 30 7 > labels
run mpi 2 "$lockstep" bench input "${short[@]}" --set data.format=idx --set "data.train={images=\"images\",labels=\"labels\"}"
expect_exit 0
expect_in_stdout '"world":2,'
expect_in_stdout "\"format\":\"idx\",\"records\":30,\"bytes\":$(cat images labels | wc -c),"
positive records_per_s 2

# For people the same document on many lines.
run timeout 60 "$lockstep" bench step -c small.toml --seconds 0
expect_exit 0
(($(wc -l < stdout) > 20)) || fail "not for people"
expect_in_stdout '  "benchmark": "step",'

# --- Refusals -----------------------------------------------------------------------------------------------------------
refused() {
    run timeout 20 "$lockstep" bench "${@:2}"
    expect_exit 2
    expect_stdout ""
    expect_stderr_lines 1
    expect_in_stderr "$1"
}
refused "A subcommand is required" # of what?
refused "speed: no such command" speed -c small.toml
refused "--config" step
refused "--threads" input -c small.toml --threads 0
refused "--threads" input -c small.toml --threads two
refused "--threads" step -c small.toml --threads 2
refused "--ranks" reduce -c small.toml --ranks 0
refused "--seconds" step -c small.toml --seconds -1
refused "--seconds: nan" step -c small.toml --seconds nan
refused "batch.size must be at least 1" step -c small.toml --set batch.size=0
run mpi 2 "$lockstep" bench reduce -c small.toml --ranks 2
expect_exit 2
[[ $(lockstep_said) == "lockstep: --ranks is for a process alone: under a launcher its 2 ranks reduce" ]] ||
    fail "not one clear line: $(lockstep_said)"
run timeout 20 "$lockstep" bench input -c small.toml --set data.format=csv --set data.train=nowhere.csv
expect_exit 3
expect_stderr_lines 1
