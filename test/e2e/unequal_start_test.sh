#!/usr/bin/env bash
# What: ranks that start with different configs or data are refused by name, ranks that differ only in what cannot change
# a bit train the same bits.
# Usage: unequal_start_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
limit=20
host=$(uname -n)

small_config > small.toml
idx_images 20 4 4 > images
idx_labels 20 4 > labels
cat > idx.toml <<'TOML'
[data]
train = { images = "images", labels = "labels" }
[model]
hidden = [3]
[batch]
size = 8
[train]
steps = 2
TOML

# rank_1_has VARIABLE=VALUE… -- ARGUMENTS…: three ranks, of which rank 1 has other variables.
rank_1_has() {
    local variables=()
    for (( ; ; )); do
        [[ $1 != -- ]] || break
        variables+=("$1")
        shift
    done
    shift
    run launch -np 1 "$lockstep" "$@" : -np 1 env "${variables[@]}" "$lockstep" "$@" : -np 1 "$lockstep" "$@"
}
expect_refused() { # CODE LINE…
    expect_exit "$1"
    [[ ! -e no ]] || fail "a run directory was made"
    diff <(lockstep_said) <(printf '%s\n' "${@:2}") >&2 || fail "not the lines expected"
}

# What can change a bit must be equal: rank, key, both values and where they come from are named, each difference once.
advice='give all ranks one value (mpirun -x NAME hands a variable to other hosts)'
rank_1_has LOCKSTEP_OPTIMIZER_LR=0.5 -- train -c small.toml --out no --set optimizer.lr=0.25 --set optimizer.momentum=0.5
expect_exit 0 # --set wins over the variable on every rank
rm -r no
rank_1_has LOCKSTEP_OPTIMIZER_LR=0.5 -- train -c small.toml --out no
expect_refused 2 "lockstep: unequal start: optimizer.lr = 0.5 on rank 1 on $host (from LOCKSTEP_OPTIMIZER_LR), 0.05 on rank 0 (from default); $advice"
rank_1_has LOCKSTEP_SEED=2 LOCKSTEP_BATCH_SIZE=12 -- train -c idx.toml --out no
expect_refused 2 "lockstep: unequal start: seed = 2 on rank 1 on $host (from LOCKSTEP_SEED), 1 on rank 0 (from default); $advice" \
    "lockstep: unequal start: batch.size = 12 on rank 1 on $host (from LOCKSTEP_BATCH_SIZE), 8 on rank 0 (from idx.toml:6:1); $advice"

# Data: the contents decide, not the path.
idx_labels 20 4 1 > labels-other
rank_1_has LOCKSTEP_DATA_TRAIN='{ images = "images", labels = "labels-other" }' -- train -c idx.toml --out no
expect_exit 3
[[ $(lockstep_said) == "lockstep: unequal start: the train data of rank 1 on $host are not rank 0's ("*"); copy the same files to every host" ]] ||
    fail "rank 1 and its data are not named"
mkdir elsewhere
cp images labels elsewhere
rank_1_has LOCKSTEP_DATA_TRAIN='{ images = "elsewhere/images", labels = "elsewhere/labels" }' -- train -c idx.toml --out idx-mixed
expect_exit 0
run "$lockstep" train -c idx.toml --out idx-alone
expect_same_run idx-mixed idx-alone

# The commands that read a run look at the same split of the same data on every rank. The path is one, what it leads to not.
mkdir rank-0 rank-1
cp images labels rank-0
cp images rank-1
cp labels-other rank-1/labels
here=$PWD
run "$lockstep" train -c idx.toml --set 'data.train={images="/proc/self/cwd/images",labels="/proc/self/cwd/labels"}' --out apart
expect_exit 0
for command in eval predict; do
    run launch -np 1 -wdir "$here/rank-0" "$lockstep" $command --run "$here/apart" --split train : \
        -np 1 -wdir "$here/rank-1" "$lockstep" $command --run "$here/apart" --split train
    expect_exit 3
    expect_stdout ""
    [[ $(lockstep_said) == "lockstep: unequal start: the train data of rank 1 on $host are not rank 0's ("*"); copy the same files to every host" ]] ||
        fail "rank 1 and its data are not named"
done
run "$lockstep" train -c small.toml --out splits -q
run launch -np 1 "$lockstep" eval --run splits --split train : -np 1 "$lockstep" eval --run splits
expect_exit 2
[[ $(lockstep_said) == "lockstep: unequal start: --split is test on rank 1 on $host, train on rank 0" ]] || fail "the split of rank 1 is not named"

# What cannot change a bit may differ.
run "$lockstep" train -c small.toml --out alone
expect_exit 0
number=0
for variables in LOCKSTEP_DEVICE_ISA=avx2 LOCKSTEP_DEVICE_ISA=scalar LOCKSTEP_DEVICE_THREADS=2 OMP_NUM_THREADS=7 LC_ALL=tr_TR.UTF-8 LC_ALL=C; do
    [[ $variables != *avx2 ]] || grep -qm 1 avx2 /proc/cpuinfo || continue
    rank_1_has "$variables" -- train -c small.toml --out "mixed-$((++number))"
    expect_exit 0
    expect_same_run "mixed-$number" alone
    ! grep -q warning <(lockstep_said) || fail "a warning for $variables"
done

# Of the keys that shape files and messages rank 0's value holds for all, and the rank that differs is named.
rank_1_has LOCKSTEP_LOG_EVERY=3 LOCKSTEP_REDUCE_BUCKET_KIB=1 -- train -c small.toml --out warned
expect_exit 0
expect_same_run warned alone
expect_in_stderr "lockstep: warning: log.every = 3 on rank 1 on $host, 5 on rank 0: rank 0's value holds"
expect_in_stderr "lockstep: warning: reduce.bucket_kib = 1 on rank 1 on $host, 4096 on rank 0: rank 0's value holds"
[[ $(grep -c warning stderr) == 2 ]] || fail "not one warning for each key"
echo "unequal starts: refused where bits could differ, else the same bits"
