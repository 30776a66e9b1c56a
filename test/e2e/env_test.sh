#!/usr/bin/env bash
# What: lockstep env (doctor): alone, under mpirun, with ranks that differ, bound to one core, and started by a launcher
# that does not know MPI.
# Usage: env_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}" "${!SLURM_@}" "${!PMI_@}" "${!PMIX_@}" "${!OMPI_COMM_@}" OMP_NUM_THREADS
limit=30

# finding SEVERITY SUBJECT TEXT: the text report has such a line.
finding() { grep -qE "^$1 +$2: .*$3" stdout || fail "no finding: $1 $2: $3"; }
no_finding() { ! grep -qE "^$1 +$2: " stdout || fail "a finding that should not be: $1 $2"; }
nothing_left() { [[ -z $(find . -name '.lockstep-env-*') ]] || fail "a file is left behind"; }

# Alone, without a config; the alias; nothing on stderr.
run "$lockstep" env
expect_exit 0
expect_stderr ""
expect_in_stdout "(arithmetic 1)"
finding ok launch '1 rank \(alone\)'
finding ok gpu "no host has an NVIDIA GPU"
finding ok folder "is free for $PWD"
expect_in_stdout "0 faults, "
run "$lockstep" doctor --color always
expect_exit 0
nothing_left
# What only a GPU computes does not start without one.
export LOCKSTEP_DEBUG_CUDA_PLUGIN=$PWD/nothing.so
run "$lockstep" env --set device.arithmetic=vendor
expect_exit 0
finding fault gpu "rank 0 would not start: Lockstep's CUDA library is not there"
run "$lockstep" env
finding note gpu "rank 0 would compute on the CPU: Lockstep's CUDA library is not there"
unset LOCKSTEP_DEBUG_CUDA_PLUGIN
run "$lockstep" env -c none.toml
expect_exit 0
finding fault config "none.toml: cannot be read"
expect_in_stdout "1 fault, "

# As one JSON document, with every rank in it, at 2 ranks and with more ranks than cores.
for ranks in 2 4; do
    run mpi $ranks "$lockstep" env --json --out here/and/there
    expect_exit 0
    [[ $(head -c 1 stdout) == "{" && $(tail -n 1 stdout) == "}" ]] || fail "not one document"
    expect_in_stdout '"faults": 0,'
    expect_in_stdout "\"world\": $ranks"
    [[ $(grep -c '"arithmetic": "arithmetic 1"' stdout) == "$ranks" ]] || fail "not every rank is in it"
    [[ $(grep -c '"launcher": "mpirun"' stdout) == "$ranks" ]] || fail "mpirun is not recognised"
    expect_in_stdout '"mpi": "Open MPI '
    expect_in_stdout '"sums_right": true'
    expect_in_stdout '"bytes": 1048576'
    [[ ! -e here ]] || fail "env made the run directory"
    nothing_left
done
run mpi 2 "$lockstep" env
expect_exit 0
finding ok shared "every rank sees what rank 0 writes in $PWD"
finding ok equal "the same on all ranks: version, numeric fingerprint, MPI library, binary,.* libraries"
expect_in_stdout "all-reduce of all ranks: 4 bytes in "
cores=$(nproc)
run mpi $((cores + 1)) "$lockstep" env
finding warning oversubscribed "$((cores + 1)) ranks share $cores core"

# A rank that differs where it may, and one that differs where it may not.
run launch -np 1 "$lockstep" env : -np 1 env LC_ALL=tr_TR.UTF-8 OMP_NUM_THREADS=7 LOCKSTEP_DEVICE_ISA=scalar "$lockstep" env : -np 1 "$lockstep" env
expect_exit 0
finding note environment 'LC_ALL differs: .* on ranks 0, 2, "tr_TR.UTF-8" on rank 1'
finding note environment 'OMP_NUM_THREADS differs: not set on ranks 0, 2, "7" on rank 1'
finding note settings 'LOCKSTEP_DEVICE_ISA differs: not set on ranks 0, 2, "scalar" on rank 1'
finding warning isa "scalar code on rank 1, whose CPU has "
expect_in_stdout "0 faults, "
small_config > small.toml
run launch -np 1 "$lockstep" env -c small.toml : -np 1 env LOCKSTEP_OPTIMIZER_LR=0.5 LOCKSTEP_LOG_EVERY=3 "$lockstep" env -c small.toml
expect_exit 0
finding fault settings 'optimizer.lr = 0.5 on rank 1 on .* \(from LOCKSTEP_OPTIMIZER_LR\), 0.05 on rank 0 \(from default\)'
finding note settings 'log.every = 3 on rank 1'
expect_in_stdout "1 fault, "

# Data that only one rank can see: the path is one, what it leads to is not.
idx_images 20 4 4 > images
idx_labels 20 4 > labels
cat > idx.toml <<'TOML'
[data]
train = { images = "/proc/self/cwd/images", labels = "/proc/self/cwd/labels" }
[train]
steps = 2
TOML
run "$lockstep" env -c idx.toml
finding ok data "2 files of the config can be read by every rank"
mkdir elsewhere
run launch -np 1 "$lockstep" env -c idx.toml : -np 1 -wdir "$PWD/elsewhere" "$lockstep" env -c ../idx.toml
expect_exit 0
finding fault data "data.train: .*/images cannot be read by rank 1: No such file"
expect_in_stdout "2 faults, "

# A folder that is another one for rank 1 (with a file system of its own in the same place).
if unshare -m true 2> /dev/null; then
    mkdir mine
    own='mount -t tmpfs none mine && exec "$0" env --out mine/run'
    run launch -np 1 "$lockstep" env --out mine/run : -np 1 unshare -m bash -c "$own" "$lockstep"
    expect_exit 0
    finding note shared "rank 1 does not see what rank 0 writes in $PWD/mine"
    [[ -z $(ls -A mine) ]] || fail "a file is left behind"
fi

# Bound to one core, as mpirun does with few ranks.
if ((cores > 1)); then
    run timeout -k 5 30 mpirun -q --oversubscribe --bind-to core -np 1 "$lockstep" env --set device.threads=4
    expect_exit 0
    finding warning binding "rank 0 on .*: 4 threads a rank, but 1 core"
    expect_in_stdout "--bind-to none, or --map-by slot:PE="
    run timeout -k 5 30 mpirun -q --oversubscribe --bind-to core -np 1 "$lockstep" env
    finding warning binding "may use 1 of $cores cores"
    run mpi 1 "$lockstep" env
    no_finding warning binding
fi

# N processes that know nothing of each other: the first one says so, and how to start them.
run env SLURM_JOB_ID=7 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0 "$lockstep" env
expect_exit 0
finding fault launch "srun started 2 processes that do not know of each other"
expect_in_stdout "srun --mpi=pmix"
run env SLURM_JOB_ID=7 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=1 "$lockstep" env
expect_exit 0
expect_stdout ""

# A folder that cannot be written to, and a limit.
touch file
run "$lockstep" env --out file/run
expect_exit 0
finding fault folder "cannot be written: .*/file is not a folder"
run bash -c 'ulimit -f 2048; "$0" env' "$lockstep"
finding warning limits "rank 0: files end at 2 MiB"
echo "env: says what is, and what to change"
