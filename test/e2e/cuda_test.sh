#!/usr/bin/env bash
# What: the executable on emulated GPUs: the bits of the CPU run at any number of ranks, streams and bucket sizes, by NCCL
#       and through host memory, with CPU ranks among the GPU ranks; stop and resume on the other device; verify; vendor
#       arithmetic; and one clear line with the right exit code where a GPU cannot be used.
# Usage: cuda_test.sh PATH_TO_LOCKSTEP PATH_TO_EMULATED_CUDA_LIBRARY [all]   (all: every point, which takes minutes)
# Needs: mpirun. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$(realpath "$1")
library=$(realpath "$2")
points=${3:-some}
configs=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../configs")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
export LOCKSTEP_DEBUG_CUDA_PLUGIN=$library

small_config > mlp.toml
{
    small_config | sed 's/shape = .*/shape = [12, 12, 1]/; s/hidden = .*/name = "lenet"\nchannels = [2, 3]\ndropout = 0.4/; s/samples = 203/samples = 80/'
    printf '[optimizer]\nname = "adam"\n'
} > lenet.toml

cat > residual.toml <<'TOML'
[data]
format = "synthetic"
samples = 50
test_samples = 20
classes = 4
shape = [6, 6, 3]
[batch]
size = 16
shards = 4
[train]
epochs = 2
[log]
every = 3
[model]
name = "custom"
[[model.layers]]
kind = "conv"
channels = 4
kernel = 3
norm = true
activation = "relu"
[[model.layers]]
kind = "residual"
channels = 6
stride = 2
[[model.layers]]
kind = "global_pool"
[[model.layers]]
kind = "dense"
units = 4
TOML
{
    printf '[batch_norm]\nscope = "global"\n'
    cat residual.toml
} > residual_global.toml

# What Lockstep said, without its words on the variables of the emulation, which are none of a config.
lines_said() { lockstep_said | grep -vcE 'LOCKSTEP_EMULATION_[A-Z]+: no such config variable|^emulated CUDA' || true; }

# trained RANKS DIR ARGUMENTS…: with 0 ranks alone, without mpirun.
trained() {
    local ranks=$1 out=$2
    shift 2
    if ((ranks == 0)); then run timeout 60 "$lockstep" train -q --out "$out" "$@"; else run mpi "$ranks" "$lockstep" train -q --out "$out" "$@"; fi
}
on_cpu() { trained "$1" "$2" --set device.backend=cpu "${@:3}"; }
on_gpu() { trained "$1" "$2" --set device.backend=cuda "${@:3}"; }
# same_on_gpu RANKS MODEL ARGUMENTS…: the run on GPUs has the bytes of the CPU's.
same_on_gpu() {
    rm -rf gpu
    on_gpu "$1" gpu -c "$2.toml" "${@:3}"
    expect_exit 0
    expect_same_run "cpu-$2" gpu
}

for model in mlp lenet residual residual_global; do
    on_cpu 0 cpu-$model -c $model.toml --set checkpoint.every_steps=4 --set checkpoint.keep=100
    expect_exit 0
done

# Ranks, streams, bucket sizes, transports.
same_on_gpu 0 mlp --set device.streams=4
same_on_gpu 3 mlp --set device.streams=2 --set reduce.bucket_kib=1
same_on_gpu 2 lenet --set device.streams=4 --set reduce.small_kib=0
same_on_gpu 2 residual --set device.streams=2
same_on_gpu 3 residual_global --set device.streams=2
if [[ $points == all ]]; then
    for model in mlp lenet residual residual_global; do
        for ranks in 0 1 2 3 4 8; do
            for streams in 1 2 4; do
                for bucket in 1 4096; do
                    same_on_gpu $ranks $model --set device.streams=$streams --set reduce.bucket_kib=$bucket
                done
            done
            same_on_gpu $ranks $model --set device.transport=staged --set reduce.bucket_kib=1
        done
    done
    for order in eager random; do
        for seed in 1 2 3; do
            LOCKSTEP_EMULATION_ORDER=$order LOCKSTEP_EMULATION_SEED=$seed same_on_gpu 3 lenet --set device.streams=2
        done
    done
fi

# mixed RANKS GPUS MODEL: the last ranks compute on GPUs, the others on CPUs.
mixed() {
    local program=("$lockstep" train -q --out gpu -c "$3.toml" --set reduce.bucket_kib=1)
    rm -rf gpu
    run launch -np $(($1 - $2)) env LOCKSTEP_DEVICE_BACKEND=cpu "${program[@]}" : -np "$2" env LOCKSTEP_DEVICE_BACKEND=cuda "${program[@]}"
    expect_exit 0
    expect_same_run "cpu-$3" gpu
}
mixed 3 2 lenet
expect_in_stderr "lockstep: warning: rank 0 computes on a CPU and 2 ranks on GPUs"
[[ $points == some ]] || for ranks in 2 4 5; do mixed $ranks 1 mlp; done

# More ranks than GPUs: they take turns, with one warning; by NCCL it is refused.
LOCKSTEP_EMULATION_DEVICES=2 same_on_gpu 4 mlp
expect_in_stderr "lockstep: warning: ranks 0, 2 share GPU 0000:10:00.0 of $(hostname), and so it is on 1 more"
[[ $(lines_said) == 1 ]] || fail "more than the warning"
LOCKSTEP_EMULATION_DEVICES=2 on_gpu 3 none -c mlp.toml --set device.transport=nccl
expect_exit 2
expect_in_stderr "needs a GPU of its own for each rank, and ranks 0, 2 share GPU 0000:10:00.0"
[[ ! -e none ]] || fail "a run that cannot start leaves a folder"

# A run that goes on from a checkpoint of the other device.
goes_on() { # FROM BACKEND RANKS MODEL
    local checkpoint
    checkpoint=$(find "$1/checkpoints" -mindepth 1 -maxdepth 1 -name '*0004*' | head -n 1)
    [[ -n $checkpoint ]] || fail "no checkpoint of step 4 in $1"
    rm -rf resumed
    trained "$3" resumed -c "$4.toml" --set device.backend="$2" --resume "$checkpoint"
    expect_exit 0
    [[ $(sha256sum < resumed/model.safetensors) == $(sha256sum < "cpu-$4/model.safetensors") ]] || fail "other weights after $1"
}
goes_on cpu-lenet cuda 2 lenet
if [[ $points == all ]]; then
    goes_on cpu-mlp cuda 3 mlp
    rm -rf gpu
    on_gpu 2 gpu -c lenet.toml --set checkpoint.every_steps=4 --set checkpoint.keep=100
    expect_same_run cpu-lenet gpu
    goes_on gpu cpu 3 lenet
    goes_on gpu cuda 4 lenet
fi

# Stopped on request on GPUs, it goes on elsewhere.
long=(-c mlp.toml --set train.steps=400 --set log.every=1)
on_cpu 0 whole "${long[@]}"
rm -rf stopped
mpirun -q --oversubscribe --bind-to none -np 2 "$lockstep" train -q --out stopped "${long[@]}" --set device.backend=cuda > stdout 2> stderr < /dev/null &
job=$!
wait_for 60 grep -qs '"step":5,' stopped/metrics.jsonl
kill -s USR1 $job
finished
((hung == 1 || last_exit == 75)) || fail "exit $last_exit, not 75, of a run that was asked to stop"
[[ ! -e stopped/model.safetensors ]] || fail "the run was over before it could be stopped"
trained 3 stopped "${long[@]}" --set device.backend=cuda --set device.streams=2 --resume auto
expect_exit 0
expect_same_run whole stopped

# Real pictures: steps of the shipped experiments, with smaller networks and the first 200 pictures of each split.
pictures=/usr/share/datasets/fashion-mnist
first_pictures() { # SPLIT
    gzip -dc "$pictures/$1-images-idx3-ubyte.gz" > all
    { printf '\0\0\10\3\0\0\0\310\0\0\0\34\0\0\0\34'; head -c $((16 + 200 * 784)) all | tail -c +17; } > "$1-images"
    gzip -dc "$pictures/$1-labels-idx1-ubyte.gz" > all
    { printf '\0\0\10\1\0\0\0\310'; head -c $((8 + 200)) all | tail -c +9; } > "$1-labels"
}
fashion() { # MODEL RANKS STREAMS BUCKET
    local model=$1 ranks=$2
    local settings=(-c "$configs/fashion_$model.toml" --set train.steps=3 --set batch.size=40 --set 'model.hidden=[12]'
        --set "data.train={ images = \"$PWD/train-images\", labels = \"$PWD/train-labels\" }"
        --set "data.test={ images = \"$PWD/t10k-images\", labels = \"$PWD/t10k-labels\" }")
    [[ $model == mlp ]] || settings+=(--set 'model.channels=[2, 3]' --set model.dropout=0.3)
    if [[ ! -e fashion-$model ]]; then
        on_cpu 0 "fashion-$model" "${settings[@]}"
        expect_exit 0
    fi
    rm -rf gpu
    on_gpu "$ranks" gpu "${settings[@]}" --set device.streams="$3" --set reduce.bucket_kib="$4"
    expect_exit 0
    expect_same_run "fashion-$model" gpu
}
if [[ -e $pictures ]]; then
    first_pictures train
    first_pictures t10k
fi
if [[ ! -e $pictures ]]; then
    echo "skipped: runs on Fashion-MNIST (no $pictures)"
elif [[ $points == some ]]; then
    fashion lenet 2 2 1
else
    for model in mlp lenet; do
        for ranks in 1 2 3 4 8; do
            for streams in 1 2 4; do
                for bucket in 1 16 4096; do fashion $model $ranks $streams $bucket; done
            done
        done
    done
fi

# verify: worlds of GPUs are equal, and a planted bit is found.
run mpi 2 "$lockstep" verify -c mlp.toml --steps 3 --set device.backend=cuda
expect_exit 0
expect_in_stdout "equal: 3 steps in 2 worlds"
run mpi 2 "$lockstep" verify -c mlp.toml --steps 3 --set device.backend=cuda --fault rank:1,step:2,bit:5
expect_exit 4

# Vendor arithmetic: one result for every world, near the CPU's.
weights() { tail -c +$((9 + $(od -An -t u8 -N 8 "$1/model.safetensors"))) "$1/model.safetensors" | od -An -v -t f4 -w4; }
vendor() { # MODEL STEPS RANKS…
    local model=$1 steps=$2 ranks
    shift 2
    rm -rf near vendor-*
    on_cpu 0 near -c "$model.toml" --set train.steps="$steps"
    expect_exit 0
    for ranks in "$@"; do
        on_gpu "$ranks" "vendor-$ranks" -c "$model.toml" --set train.steps="$steps" --set device.arithmetic=vendor
        expect_exit 0
        expect_same_run "vendor-$1" "vendor-$ranks"
        ! cmp -s near/model.safetensors "vendor-$ranks/model.safetensors" || fail "vendor arithmetic has the CPU's bits: did it run?"
        paste <(weights near) <(weights "vendor-$ranks") |
            awk '{ d = $1 - $2; if (d < 0) d = -d; s = $1 < 0 ? -$1 : $1; if (!(d <= 1e-4 * (s > 1 ? s : 1))) bad = 1 } END { exit bad || NR < 10 }' ||
            fail "vendor arithmetic is far from the CPU on $ranks ranks"
    done
}
if [[ $points == all ]]; then
    vendor mlp 20 0 2 3
    vendor lenet 20 0 2 4
else
    vendor lenet 4 0 2
fi
# Narrow numbers: within one precision equal on any number of ranks, and each precision has bits of its own.
narrow() { # PRECISION RANKS…
    local precision=$1 ranks
    shift
    for ranks in 0 "$@"; do
        rm -rf "narrow-$ranks"
        on_gpu "$ranks" "narrow-$ranks" -c lenet.toml --set train.steps=4 --set device.arithmetic=vendor --set device.precision="$precision"
        expect_exit 0
        expect_same_run narrow-0 "narrow-$ranks"
    done
    sha256sum < narrow-0/model.safetensors >> precisions
}
narrow fp16 2
if [[ $points == all ]]; then
    for precision in fp32 tf32 bf16; do narrow $precision 2 3; done
    [[ $(sort -u precisions | wc -l) == 4 ]] || fail "two precisions give the same bits"
fi
# Ranks whose libraries would round otherwise are refused, in training and when a run is looked at.
unequal() {
    run launch -np 1 "$lockstep" "$@" : -np 1 env NVIDIA_TF32_OVERRIDE=0 "$lockstep" "$@"
    expect_exit 2
    expect_in_stderr "unequal start: rank 1 on $(hostname) has arithmetic "
}
rm -rf none
unequal train -q --out none -c lenet.toml --set device.backend=cuda --set device.arithmetic=vendor
[[ ! -e none ]] || fail "a run that cannot start leaves a folder"
unequal eval --run narrow-0 --split train
run timeout 60 "$lockstep" train -q --out none -c mlp.toml --set device.backend=cpu --set device.arithmetic=vendor
expect_exit 2
LOCKSTEP_EMULATION_DRIVER=missing run timeout 60 "$lockstep" train -q --out none -c mlp.toml --set device.arithmetic=vendor
expect_exit 2
expect_in_stderr 'device.arithmetic = "vendor" needs a GPU'

# refused EXIT TEXT [VARIABLE=VALUE…]: one line, thrown inside the CUDA library where it is about the GPU.
refused() {
    local code=$1 text=$2
    shift 2
    rm -rf none
    run env "$@" timeout 60 "$lockstep" train -q --out none -c mlp.toml --set device.backend=cuda
    expect_exit "$code"
    expect_in_stderr "$text"
    [[ $(lines_said) == 1 ]] || fail "more than one line"
}
refused 2 "NVIDIA's driver does not answer" LOCKSTEP_EMULATION_DRIVER=missing
refused 2 "NVIDIA's driver supports CUDA up to 12.4, and Lockstep was built for CUDA 13" LOCKSTEP_EMULATION_DRIVER=old
refused 2 "NVIDIA's driver shows this process no GPU" LOCKSTEP_EMULATION_DRIVER=no-device
refused 2 "is too old: it has compute capability 7.5" LOCKSTEP_EMULATION_ARCH=75
refused 1 "is out of memory" LOCKSTEP_EMULATION_MEMORY=4K
refused 2 "Lockstep's CUDA library is not there (looked for $PWD/nothing.so)" LOCKSTEP_DEBUG_CUDA_PLUGIN="$PWD/nothing.so"
echo "no library" > text.so
refused 2 "Lockstep's CUDA library cannot be loaded: $PWD/text.so: " LOCKSTEP_DEBUG_CUDA_PLUGIN="$PWD/text.so"
# Of another build: the text that both must have in common is changed in the library.
sed -E 's/0\.1\.0 [0-9a-f]{12}/0.1.0 0123456789ab/' "$library" > other.so
refused 2 "other.so is of another build of Lockstep (0.1.0 0123456789ab) than this executable" LOCKSTEP_DEBUG_CUDA_PLUGIN="$PWD/other.so"

# Out of memory in the first step: the advice is one that fits.
out_of_memory=(--set train.steps=1 --set batch.size=80 --set device.streams=1)
export LOCKSTEP_EMULATION_MEMORY=740K
on_gpu 0 none -c lenet.toml "${out_of_memory[@]}"
expect_exit 1
[[ $(cat stderr) =~ "is out of memory: ".*"batch.micro = "([0-9]+)" would fit" ]] || fail "no advice"
rm -rf none
on_gpu 0 none -c lenet.toml "${out_of_memory[@]}" --set batch.micro="${BASH_REMATCH[1]}"
expect_exit 0
unset LOCKSTEP_EMULATION_MEMORY

# "auto": a GPU where there is one, else the CPU with a line that says why.
rm -rf gpu
run timeout 60 "$lockstep" train --out gpu -c mlp.toml
expect_exit 0
expect_same_run cpu-mlp gpu
grep -q "Emulated GPU" stderr || fail "auto did not take the GPU"
rm -rf gpu
LOCKSTEP_EMULATION_DRIVER=missing run timeout 60 "$lockstep" train --out gpu -c mlp.toml
expect_exit 0
expect_same_run cpu-mlp gpu
expect_in_stderr "device.backend = \"auto\" takes the CPU: NVIDIA's driver does not answer"
# A run on CPUs does not look for the library at all.
rm -rf none
LOCKSTEP_DEBUG_CUDA_PLUGIN=$PWD/nothing.so on_cpu 0 none -c mlp.toml
expect_exit 0
expect_stderr ""

# env: which GPU each rank takes, and what carries the sums.
run mpi 2 "$lockstep" env
expect_exit 0
expect_in_stdout "rank 1 on Emulated GPU (sm_90), 16 GiB, at 0000:11:00.0 of $(hostname)"
expect_in_stdout "sums go by NCCL"
CUDA_VISIBLE_DEVICES=5 run mpi 2 "$lockstep" env --json
expect_exit 0
expect_in_stdout '"pci": "0000:15:00.0"'
expect_in_stdout "ranks 0, 1 share GPU 0000:15:00.0"
