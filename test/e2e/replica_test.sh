#!/usr/bin/env bash
# What: a bit that flips in one rank's memory under mpirun: exit 4, the ranks in doubt with their element and both values,
#       nothing saved, and a resume from the checkpoint that passed which ends like the undisturbed run.
# Usage: replica_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$(realpath "$1")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

small_config > small.toml
run "$lockstep" train -q -c small.toml --out alone --set check.replicas_every=4
expect_exit 0

# What passed is written down, with a hash that is the same at any number of ranks.
checks() { sed -nE 's/.*"event":"check",.*"step":([0-9]+),"passed":(true|false),"of":"([^"]*)",("hash":"[0-9a-f]{16}")?.*/\1 \2 \3 \4/p' "$1/events.jsonl"; }
run mpi 3 "$lockstep" train -q -c small.toml --out three --set check.replicas_every=4
expect_exit 0
diff <(checks alone) <(checks three) || fail "the checks of 1 and of 3 ranks differ"
[[ $(checks three | cut -d ' ' -f 1 | xargs) == "4 8 12 16 18" ]] || fail "checks after the steps $(checks three)"
[[ $(checks three | tail -n 1) == "18 true weights and optimizer state "* ]] || fail "before the checkpoint: $(checks three | tail -n 1)"

# Step 6 is the checkpoint of no run below; the flip after step 9 is found at step 12, by the check or before the save.
for world in 2 3 4 8; do
    for how in check.replicas_every=12 checkpoint.every_steps=6; do
        export LOCKSTEP_DEBUG_FAULT=rank:$((world - 1)),step:9,bit:18
        out=run-$world-${how%%.*}
        run mpi $world "$lockstep" train -q -c small.toml --out $out --set check.replicas_every=0 --set $how
        unset LOCKSTEP_DEBUG_FAULT
        expect_exit 4
        expect_stdout ""
        said=$(lockstep_said | grep -v "warning: LOCKSTEP_DEBUG_FAULT")
        who="step 12: replica check: rank $((world - 1)) on $(uname -n) (cpu "
        [[ $said == *"$who"*" has fc1.weight[0, 0] = "*" (0x"*"), rank 0 has "* ]] || fail "the rank is not named: $said"
        if [[ $world == 2 ]]; then
            [[ $said == *"replica check: rank 0 on "*", rank 1 has "* ]] || fail "of two ranks not both are named: $said"
            lines=3
        else
            lines=2
        fi
        [[ $(wc -l <<< "$said") == "$lines" ]] || fail "not $lines lines: $said"
        [[ ! -e $out/model.safetensors ]] || fail "there is a final model"
        ! grep -q '"event":"end"' $out/metrics.jsonl || fail "there is an end event"
        grep -q '"event":"check",.*"step":12,"passed":false,.*"ranks":\[{"rank":' $out/events.jsonl || fail "no event"
        if [[ $how == check.* ]]; then
            [[ $said == *": no checkpoint has passed, start again" ]] || fail "what to do is not told: $said"
            [[ ! -e $out/checkpoints ]] || fail "something was saved"
        else
            [[ $said == *": resume from $out/checkpoints/step-00000006, the last checkpoint that passed" ]] || fail "what to do: $said"
            [[ $(ls $out/checkpoints | xargs) == "latest step-00000006" ]] || fail "saved: $(ls $out/checkpoints)"
        fi
    done
    run mpi $((world % 3 + 1)) "$lockstep" train -q -c small.toml --out run-$world-checkpoint --resume auto
    expect_exit 0
    expect_same_run run-$world-checkpoint alone
done

# The twin: unasked, the run goes on with ranks that differ; what it leaves at its end is refused all the same.
export LOCKSTEP_DEBUG_FAULT=rank:1,step:2,bit:18
run mpi 3 "$lockstep" train -q -c small.toml --out late --set check.replicas_every=0
expect_exit 4
expect_in_stderr "step 18: replica check: rank 1 on "
[[ ! -e late/model.safetensors && ! -e late/checkpoints ]] || fail "something was saved"
echo "replica check: a flipped bit is named on 2, 3, 4 and 8 ranks, and nothing of it is kept"
