#!/usr/bin/env bash
# What: verify compares worlds of every size bit by bit: equal where they are, exit 4 with step, tensor, element and both
#       values where a bit was flipped; what cannot be verified is refused.
# Usage: verify_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
source "$(dirname "${BASH_SOURCE[0]}")/refusals.sh"
lockstep=$(realpath "$1")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}" "${!SLURM_@}"
small_config > small.toml

# verified RANKS ARGUMENTS…: with 0 ranks alone, without mpirun.
verified() {
    local ranks=$1
    shift
    if ((ranks == 0)); then run timeout 60 "$lockstep" verify -c small.toml "$@"; else run mpi "$ranks" "$lockstep" verify -c small.toml "$@"; fi
}
# The rows of the table, by their column: ranks of the worlds, "yes" or not.
column() { sed -n '/^world /,/^[a-z]/{/^[0-9]/p}' stdout | sed -E 's/  +/\t/g' | cut -f "$1" | paste -sd ' '; }

# Alone: one rank, twice, with other settings.
verified 0
expect_exit 0
expect_in_stdout "equal: 18 steps in 2 worlds" # the run has no more
[[ $(column 1) == "1 1" && $(column 9) == "reference yes" ]] || fail "not the world of 1, twice"
for setting in 3 4; do [[ $(column $setting) =~ ^([0-9]+)\ ([0-9]+)$ && ${BASH_REMATCH[1]} != "${BASH_REMATCH[2]}" ]] || fail "column $setting is the same twice"; done
# Under mpirun: 1 … N, and worlds larger than the job.
verified 2 --steps 6
expect_exit 0
[[ $(column 1) == "1 2" && $(column 9) == "reference yes" ]] || fail "not the worlds 1 and 2"
verified 3 --steps 5 --set model.name=lenet --set 'model.channels=[2,3]' --set model.dropout=0.4 --set optimizer.name=adam \
    --set batch.layout=epoch --set 'data.shape=[12,12,1]'
expect_exit 0
[[ $(column 1) == "1 2 3" && $(column 9) == "reference yes yes" ]] || fail "not the worlds 1, 2 and 3"
verified 4 --steps 4 --worlds 1,2,4
expect_exit 0
[[ $(column 1) == "1 2 4" ]] || fail "not the worlds asked for"
verified 4 --steps 3 --worlds 5,8
expect_exit 0
expect_in_stdout "threads of 0"
[[ $(column 9) == "reference yes" ]] || fail "worlds of threads differ"
# It writes nothing.
[[ $(ls) == $'small.toml\nstderr\nstdout' ]] || fail "files were left behind: $(ls)"

# As JSON, and nothing else on stdout.
verified 2 --steps 3 --json
expect_exit 0
[[ $(wc -l < stdout) == 1 && $(head -c 1 stdout) == "{" ]] || fail "not one JSON document"
for part in '"steps":3' '"equal":true' '"difference":null' '"world":1,"in_process":false' '"world":2,' '"samples_per_s":'; do expect_in_stdout "$part"; done

# A planted bit: found at its step, on its rank, in the last world of the list alone, with both values.
expect_flipped() { # RANKS WORLDS RANK STEP BIT [ARGUMENTS…]
    verified "$1" --worlds "$2" --steps 7 --fault "rank:$3,step:$4,bit:$5" "${@:6}"
    expect_exit 4
    local last=${2##*,}
    [[ $(column 9) =~ ^reference(\ yes)*\ "no, from step $4"$ ]] || fail "the table says: $(column 9)"
    grep -qE "^differ at step $4: world $last( \(row [0-9]\))?, rank $3: [a-z0-9]+.weight\[0(, 0)*\]$" stdout || fail "not the place of the fault"
    grep -qE "^  element 0, [0-9]+ ulp apart; 1 of [0-9]+ elements differs$" stdout || fail "not the element of the fault"
    [[ $(lockstep_said | grep "^lockstep: ") == "lockstep: step $4: world $last"*" differs from world "*".weight[0"* ]] || fail "no word on stderr"
    local bits
    bits=$(sed -nE 's/^  world .* (0x[0-9a-f]{8})$/\1/p' stdout | paste -sd ' ')
    ((($(cut -d ' ' -f 1 <<< "$bits") ^ $(cut -d ' ' -f 2 <<< "$bits")) == 1 << $5)) || fail "other bits than number $5 differ: $bits"
}
expect_flipped 0 1,1 0 7 0
expect_flipped 0 1,3 2 2 31
expect_flipped 2 1,2 1 5 23
expect_flipped 3 1,2 0 1 3
expect_flipped 3 3,2,1 0 4 30
expect_flipped 2 2,1,4 3 3 22 --set model.name=lenet --set 'data.shape=[12,12,1]' --set 'model.channels=[2,3]'
verified 2 --fault rank:1,step:3,bit:4 --json
expect_exit 4
for part in '"equal":false' '"difference":{"step":3,"row":2,"world":2,"rank":1,"tensor":"fc1.weight","element":0,"index":[0,0]' '"ulp":16' '"bits":"0x'; do expect_in_stdout "$part"; done

# Sums in the order of the transport: other bits at another number of ranks, which is said, and the same ones at the same.
verified 3 --worlds 1,3 --set reduce.algorithm=native --steps 6
expect_exit 4
expect_in_stdout 'reduce.algorithm = "native" promises equal bits at an equal number of ranks only'
verified 3 --worlds 3 --set reduce.algorithm=native --steps 6
expect_exit 0

# A step that is not finite is the config's fault: as in train.
verified 2 --set optimizer.lr=1e38 --set optimizer.momentum=0.99
expect_exit 5
grep -q "^lockstep: step [0-9]* .*non-finite loss or gradient" <(lockstep_said) || fail "the step is not named"

# What cannot be: one line, on one rank and on several.
refused 2 "--worlds: worlds are numbers of ranks from 1 to 4096" -- verify -c small.toml --worlds 0
refused 2 "--worlds: worlds are numbers of ranks from 1 to 4096" -- verify -c small.toml --worlds 1,x
refused 2 "--fault: bit must be a whole number 0 … 31, got 32" -- verify -c small.toml --fault rank:0,step:1,bit:32
refused 2 "--fault: step 21 is never reached, the last one is 18" -- verify -c small.toml --fault rank:0,step:21,bit:1
refused 2 "--fault: step 6 is never reached, the last one is 5" -- verify -c small.toml --steps 5 --fault rank:0,step:6,bit:1
refused 2 "--fault: there is no rank 3 in a world of 3" -- verify -c small.toml --worlds 1,3 --fault rank:3,step:1,bit:1
refused 2 "--fault: rank:0 is not a fault to plant" -- verify -c small.toml --fault rank:0
refused 2 "--steps 0: at least 1" -- verify -c small.toml --steps 0
run env SLURM_STEP_NUM_TASKS=2 "$lockstep" verify -c small.toml
expect_exit 2
expect_in_stderr "--allow-singleton"
run env SLURM_STEP_NUM_TASKS=2 "$lockstep" verify -c small.toml --steps 1 --allow-singleton
expect_exit 0
# Ranks that start unequal are refused as in train.
run launch -np 1 "$lockstep" verify -c small.toml : -np 1 "$lockstep" verify -c small.toml --set seed=2
expect_exit 2
expect_in_stderr "unequal start: seed = 2 on rank 1"
echo "verify: equal worlds are equal, flipped bits are found, the rest is refused"
