#!/usr/bin/env bash
# What: the batch scripts on a real Slurm with four nodes: a time limit, a requeue and other nodes change no bit; a lost node, a
# sweep and a chain of jobs do not either.
# Usage: slurm_test.sh PATH_TO_LOCKSTEP LIBRARY_OF_A_SLOW_DISK
# Needs: what slurm_cluster.sh needs; exit 77 (skipped) where that is missing. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
source "$(dirname "${BASH_SOURCE[0]}")/slurm_cluster.sh"
lockstep=$(realpath "$1")
scripts=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../scripts/slurm")
if why=$(slurm_missing); then
    echo "skipped: $why"
    exit 77
fi
cd "$(mktemp -d)"
trap 'status=$?; [[ $status == 0 ]] || tail -n 30 ./*.out >&2 || true; slurm_down; rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}" "${!SLURM_@}"
# One machine plays all nodes: loopback for the messages between them, no core of a rank's own.
export OMPI_MCA_btl=self,vader,tcp OMPI_MCA_pml=ob1 OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
export OMPI_MCA_rmaps_base_oversubscribe=1
# Jobs save every 100 steps, and until the test makes the file fast, on a disk that is so slow that none is over too soon.
printf '#!/bin/sh\n[ -e fast ] || export LD_PRELOAD="%s"\nexec "%s" "$@"\n' "$(realpath "$2")" "$lockstep" > lockstep-here
chmod +x lockstep-here
export LOCKSTEP=$PWD/lockstep-here
slurm_up "$PWD/cluster" 4 4 || fail "Slurm does not start"

small_config > small.toml
# The same as wait_for for what Slurm must be asked: a pace that leaves the cores to the jobs.
slurm_wait() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || fail "waited in vain for: $*"
        sleep 0.5
    done
}
# submit NAME OPTIONS…: a job's number, on stdout.
submit() { on ctl sbatch --parsable -o "%x.%j.out" -J "$@"; }
state() { on ctl scontrol show job "$1" -o | sed -n 's/.* JobState=\([A-Z_]*\).*/\1/p'; }
ended() { [[ $(state "$1") =~ ^(COMPLETED|FAILED|TIMEOUT|NODE_FAIL|CANCELLED)$ ]]; }
expect_state() { [[ $(state "$1") == "$2" ]] || fail "job $1 is $(state "$1"), expected $2: $(cat ./*."$1".out)"; }
reached() { grep -qs "\"step\":$2," "$1/metrics.jsonl"; }
in_state() { [[ $(state "$1") == "$2" ]]; }
restarted() { grep -q "restart [1-9]" ./*."$1".out; }
steps=20000
settings=(-c small.toml --set log.every=100 --set eval.every_steps=1000000 --set checkpoint.every_steps=100 --set "train.steps=$steps")
# What every run must equal: one rank without Slurm.
"$lockstep" train -q --out reference "${settings[@]}"

# The script for GPUs has never run anywhere: no more is claimed than that Slurm accepts it.
run on ctl sbatch --test-only -N 2 -n 4 "$scripts/train_gpu.sbatch" -c small.toml
expect_exit 0

# A job near its time limit is warned, saves, requeues itself, and goes on on other nodes with another number of ranks.
limited=$(submit limited -N 2 -n 8 --time=1 --signal=B:USR1@30 "$scripts/train.sbatch" "${settings[@]}" --out limited)
wait_for 90 grep -qs "lockstep ended with 75" "limited.$limited.out"
touch fast
slurm_wait 10 in_state "$limited" PENDING
used=$(sed -n 's/.*restart 0 on \(n[^,]*\), .*/\1/p' "limited.$limited.out")
on ctl scontrol update nodename="$used" state=drain reason=test
on ctl scontrol update job="$limited" numtasks=2
slurm_wait 150 ended "$limited"
expect_state "$limited" COMPLETED
grep -q "8 shards on 8 ranks" "limited.$limited.out" || fail "the first try had not 8 ranks"
grep -q "8 shards on 2 ranks.*, from limited/checkpoints/step-" "limited.$limited.out" || fail "the second try had not 2 ranks"
grep -qF "restart 1 on $used," "limited.$limited.out" && fail "the second try ran on the same nodes"
expect_same_run limited reference
on ctl scontrol update nodename="$used" state=resume

# The same warning through srun's own launcher.
rm fast
warned=$(submit warned -N 2 -n 2 --export=ALL,LAUNCHER=srun,START_S=20 "$scripts/train.sbatch" "${settings[@]}" --out warned)
wait_for 120 reached warned 200
touch fast
on ctl scancel --signal=USR1 --batch "$warned"
wait_for 60 grep -qs "lockstep ended with 75" "warned.$warned.out"
slurm_wait 150 ended "$warned"
expect_state "$warned" COMPLETED
restarted "$warned" || fail "the job was not requeued"
expect_same_run warned reference

# A node that dies takes the job with it; Slurm starts it again elsewhere, and it goes on from its last checkpoint.
rm fast
lost=$(submit lost -N 2 -n 2 "$scripts/train.sbatch" "${settings[@]}" --out lost)
wait_for 60 reached lost 200
touch fast
nodes=$(on ctl scontrol show hostnames "$(on ctl squeue -h -j "$lost" -o %N)")
node_dies "$(tail -n 1 <<< "$nodes")"
slurm_wait 120 restarted "$lost"
slurm_wait 150 ended "$lost"
expect_state "$lost" COMPLETED
expect_same_run lost reference
node_starts "$(tail -n 1 <<< "$nodes")"

# A sweep: task N of the array trains with line N of a file.
printf '%s\n' '--set seed=7' '--set "optimizer.name=adam" --set optimizer.lr=0.01' > sweep.txt
sweep=$(submit sweep --array=1-2 --export=ALL,SWEEP=sweep.txt "$scripts/train.sbatch" -c small.toml --out sweep)
slurm_wait 60 eval '[[ -z $(on ctl squeue -h -j '"$sweep"' 2> /dev/null) ]]'
"$lockstep" train -q -c small.toml --set seed=7 --out seed-7
"$lockstep" train -q -c small.toml --set optimizer.name=adam --set optimizer.lr=0.01 --out adam
expect_same_run sweep/task-1 seed-7
expect_same_run sweep/task-2 adam

# A chain of jobs without requeueing: the second goes on where the first stopped, the third finds the run done.
rm fast
chain=($(on ctl "$scripts/chain.sh" 3 -J chain -o %x.%j.out -N 1 -n 3 -- "${settings[@]}" --out chain))
wait_for 60 reached chain 200
touch fast
on ctl scancel --signal=USR1 --batch "${chain[0]}"
slurm_wait 150 ended "${chain[2]}"
expect_state "${chain[0]}" FAILED
grep -q "ExitCode=75:0" <(on ctl scontrol show job "${chain[0]}") || fail "the first job of the chain did not leave with 75"
expect_state "${chain[1]}" COMPLETED
expect_state "${chain[2]}" COMPLETED
grep -q "the run is done" "chain.${chain[2]}.out" || fail "the third job of the chain did not find the run done"
expect_same_run chain reference

# The commands of the page for users; those that submit jobs wait for them here.
mkdir waiting
printf '#!/bin/sh\nexec %s --wait "$@"\n' "$(command -v sbatch)" > waiting/sbatch
chmod +x waiting/sbatch
unset LOCKSTEP
on ctl env PATH="$PWD/waiting:$PATH" bash "$(dirname "$scripts")/../test/e2e/docs_test.sh" "$lockstep" "$(dirname "$scripts")/../docs/cluster.md" slurm ||
    fail "the commands of docs/cluster.md"
