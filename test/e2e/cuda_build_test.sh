#!/usr/bin/env bash
# What: an executable with the CUDA library that nvcc and the real libraries made: it starts and trains on CPUs where no
# GPU is, loads the library only where a GPU is wanted, and says in one line why it cannot have one.
# Usage: cuda_build_test.sh PATH_TO_LOCKSTEP BUILD_FOLDER CMAKE PATH_TO_LIBRARY     (no library: "": skipped)
# Needs: the dynamic loader of glibc, which tells what it opens. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
scripts=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../scripts")
lockstep=$(realpath "$1") build=$(realpath "$2") cmake=$3 library=${4:-}
if [[ -z $library ]]; then
    echo "skipped: the CUDA library is not built here: no toolkit, or LOCKSTEP_CUDA=OFF"
    exit 77
fi
library=$(realpath "$library")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
small_config > small.toml
[[ -f $library && $(dirname "$library") == "$(dirname "$lockstep")" ]] || fail "$library is not beside the executable"

# What the loader opens: of Lockstep's CUDA library and NVIDIA's libraries nothing, unless a GPU is wanted.
opened() {
    LD_DEBUG=files LD_DEBUG_OUTPUT="$PWD/loader" "$@" > stdout 2> stderr < /dev/null || true
    grep -hoE 'file=[^ ]*(lockstep_cuda|cudart|cublas|cudnn|nccl)[^ ]*' loader.* | sort -u
    rm -f loader.*
}
for arguments in "--help" "--version" "config show -c small.toml" "train -c small.toml --out cpu --set device.backend=cpu"; do
    [[ -z $(opened "$lockstep" $arguments) ]] || fail "lockstep $arguments loads a CUDA library"
done
[[ -f cpu/model.safetensors ]] || fail "no training on the CPU"
# The twin: with a GPU wanted, these are what is opened.
wanted=$(opened "$lockstep" train -c small.toml --out wanted --set device.backend=cuda)
grep -q lockstep_cuda <<< "$wanted" && grep -q cudart <<< "$wanted" || fail "the library was not looked for: $wanted"
# The driver's library would tie the executable to machines that have one.
! readelf -d "$lockstep" "$library" | grep -E 'NEEDED.*libcuda\.so' || fail "libcuda.so is linked"

# Installed, the library is found beside no longer but in its own folder.
run "$cmake" --install "$build" --prefix "$PWD/prefix"
expect_exit 0
installed=$(find prefix -name 'liblockstep_cuda.so')
[[ $installed == prefix/lib*/lockstep/liblockstep_cuda.so ]] || fail "installed as: $installed"

# An executable alone, and one beside a library that is none.
mkdir alone damaged
cp "$lockstep" alone/lockstep
cp "$lockstep" damaged/lockstep
echo "no library" > damaged/liblockstep_cuda.so
run alone/lockstep train -c small.toml --out run --set device.backend=cuda
expect_exit 2
expect_stderr_lines 1
expect_in_stderr "Lockstep's CUDA library is not there (looked for $PWD/alone/liblockstep_cuda.so"
run damaged/lockstep train -c small.toml --out run --set device.backend=cuda
expect_exit 2
expect_stderr_lines 1
expect_in_stderr "Lockstep's CUDA library cannot be loaded: $PWD/damaged/liblockstep_cuda.so: "

if [[ -e /dev/nvidiactl ]]; then
    echo "there is a GPU here: not tested what is said without one"
    exit 0
fi
run "$scripts/gpu_check.sh"
expect_exit 77
expect_stderr_lines 1
expect_in_stderr "no GPU here"
for lockstep in "$lockstep" prefix/bin/lockstep; do
    run "$lockstep" train -c small.toml --out run --set device.backend=cuda
    expect_exit 2
    expect_stdout ""
    expect_stderr_lines 1
    expect_in_stderr "driver"
    [[ ! -e run ]] || fail "a run directory was made"
    # One line for all ranks, too.
    run mpi 2 "$lockstep" train -c small.toml --out run --set device.backend=cuda
    expect_exit 2
    [[ $(lockstep_said | wc -l) == 1 && ! -e run ]] || fail "not one line: $(lockstep_said)"
    # "auto" takes the CPU, with its bits.
    run "$lockstep" train -c small.toml --out auto --set device.backend=auto -q
    expect_exit 0
    expect_same_run auto cpu
    rm -r auto
done
