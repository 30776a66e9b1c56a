#!/usr/bin/env bash
# What: the ways in which Lockstep is started: from any folder, installed, alone, by mpirun, and by a launcher that does
# not know MPI.
# Usage: launch_test.sh PATH_TO_LOCKSTEP BUILD_FOLDER CMAKE
# Needs: mpirun and cmake. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
build=$2
cmake=$3
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}" "${!SLURM_@}" "${!PMI_@}" "${!PMIX_@}" "${!OMPI_COMM_@}"
small_config > small.toml

# N singletons would each train the whole job: refused, unless that is what was meant.
run "$lockstep" train -c small.toml --out run -q
expect_exit 0
singletons='lockstep: started 2 times by a launcher that does not speak MPI: every process would work alone; use srun --mpi=pmix or mpirun, or --allow-singleton if that is what you want'
for command in "train -c small.toml --out slurm" "eval --run run" "predict --run run"; do
    run env SLURM_STEP_NUM_TASKS=2 "$lockstep" $command
    expect_exit 2
    expect_stdout ""
    expect_stderr "$singletons"
    [[ $command != train* || ! -e slurm ]] || fail "a run directory was made"
    run env SLURM_STEP_NUM_TASKS=2 "$lockstep" $command --allow-singleton
    expect_exit 0
    run env SLURM_STEP_NUM_TASKS=1 "$lockstep" ${command/slurm/slurm-1}
    expect_exit 0
done
expect_same_run slurm run
# Under mpirun inside a Slurm job the variable says nothing.
run env SLURM_STEP_NUM_TASKS=2 "${BASH:-bash}" -c 'mpirun -q --oversubscribe --bind-to none -np 2 "$0" train -c small.toml --out slurm-2' "$lockstep"
expect_exit 0
expect_same_run slurm-2 run

# Installed: on PATH, from another folder, with the same result, and without the folder that it was built in.
run "$cmake" --install "$build" --prefix "$PWD/prefix with ümlaut"
expect_exit 0
PATH="$PWD/prefix with ümlaut/bin:$PATH"
[[ $(command -v lockstep) == "$PWD/prefix with ümlaut/bin/lockstep" ]] || fail "no lockstep on PATH"
mkdir "elsewhere, ünd far"
cd "elsewhere, ünd far"
run lockstep --version
expect_exit 0
expect_in_stdout "arithmetic 1"
run lockstep --help
expect_exit 0
expect_in_stdout "Usage: lockstep"
run lockstep train -c ../small.toml --out ../installed
expect_exit 0
expect_same_run ../installed ../run
run mpi 2 lockstep train -c ../small.toml --out "here, tøø"
expect_exit 0
expect_same_run "here, tøø" ../run
# Without --out a run gets a folder of its own, named after config and time.
run lockstep train -c ../small.toml
expect_exit 0
expect_same_run runs/small-* ../run

# A closed stdin, stdout or stderr: no file of the run takes its number, and so none gets the lines meant for it.
"$lockstep" train -c ../small.toml --out ../closed-1 <&- >&- 2>&-
"$lockstep" train -c ../small.toml --out ../closed-2 2>&-
for closed in ../closed-1 ../closed-2; do expect_same_run $closed ../run; done
run bash -c '"$0" eval --run ../run >&-' "$lockstep"
expect_exit 1

# A wrong command line is told once, however many ranks read it; help and version need no rank.
run mpi 3 lockstep train -c ../small.toml --bogus
expect_exit 2
[[ $(lockstep_said) == "lockstep: The following argument was not expected: --bogus; see --help" ]] || fail "not one line: $(lockstep_said)"
# Words that no option takes are told with what they were meant for.
stray() {
    run "$lockstep" "${@:2}"
    expect_exit 2
    [[ $(lockstep_said) == "lockstep: $1; see --help" ]] || fail "not the advice: $(lockstep_said)"
}
stray "b.c=2 d=[3]: write --set b.c=2 --set d=[3]; --set takes one key each" train -c ../small.toml --set train.steps=1 b.c=2 d=[3]
stray "../small.toml: write -c ../small.toml" plan ../small.toml
stray "../small.toml: write -c ../small.toml" train -c ../small.toml ../small.toml
stray "The following argument was not expected: nowhere.toml" train -c ../small.toml nowhere.toml
run mpi 3 lockstep eval
expect_exit 2
[[ $(lockstep_said) == "lockstep: give --run DIR, or --checkpoint PATH with -c FILE" ]] || fail "not one line: $(lockstep_said)"
# Commands that work with files alone: of several ranks the first does it, once.
cd ..
for arguments in "inspect run" "inspect run/model.safetensors --json" "config show -c small.toml" "config schema"; do
    run "$lockstep" $arguments
    cp stdout alone.txt
    run mpi 3 "$lockstep" $arguments
    expect_exit 0
    cmp alone.txt stdout || fail "not what one process says"
done
run mpi 3 "$lockstep" export --run run --format safetensors --out exported
expect_exit 0
cmp exported run/model.safetensors
run mpi 3 "$lockstep" config init once.toml
expect_exit 0
expect_stdout once.toml
run mpi 3 "$lockstep" inspect nowhere
expect_exit 3
[[ $(lockstep_said) == "lockstep: nowhere: no such file or folder" ]] || fail "not one line: $(lockstep_said)"

# One launch, one command line: other commands, or other runs, would wait for each other in vain.
host=$(uname -n)
mixed() { # LINE -- ARGUMENTS OF RANK 0 -- OF RANK 1
    local line=$1 first=() other=()
    shift 2
    for (( ; ; )); do
        [[ $1 != -- ]] || break
        first+=("$1")
        shift
    done
    shift
    other=("$@")
    run launch -np 1 "$lockstep" "${first[@]}" : -np 1 "$lockstep" "${other[@]}"
    expect_exit 2
    expect_stdout ""
    [[ $(lockstep_said) == "lockstep: $line" ]] || fail "not: $line"
    [[ ! -e mixed-1 && ! -e mixed-2 ]] || fail "a run directory was made"
}
mixed "unequal start: the command is eval on rank 1 on $host, train on rank 0" -- train -c small.toml --out mixed-1 -- eval --run run
mixed "unequal start: --out is mixed-2 on rank 1 on $host, mixed-1 on rank 0" -- \
    train -c small.toml --out mixed-1 -- train -c small.toml --out mixed-2
mixed "unequal start: --resume is auto on rank 1 on $host, never on rank 0" -- \
    train -c small.toml --out mixed-1 -- train -c small.toml --out mixed-1 --resume auto
mixed "rank 1 on $host: The following argument was not expected: --bogus; see --help" -- \
    train -c small.toml --out mixed-1 -- train -c small.toml --out mixed-1 --bogus
# What each rank may have for itself may differ.
cp small.toml same.toml
run launch -np 1 "$lockstep" train -c small.toml --out own -q : -np 1 "$lockstep" train -c same.toml --out own --set device.threads=1
expect_exit 0
expect_same_run own run
echo "launches: from any folder, by any launcher"
