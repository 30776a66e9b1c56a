#!/usr/bin/env bash
# What: one step of ResNet-50 at 224x224 from JPEG folders and from TFRecords: the same bytes from both on 1, 2 and 3 ranks,
#       and loss, gradients, weights, running statistics and predictions those of PyTorch to 1e-4 of a tensor's largest element.
# Usage: torch_resnet_test.sh PATH_TO_LOCKSTEP FOLDER_OF_JPEG_FILES
# Needs: mpirun; PYTHON (default python3) with torch and numpy; without them exit 77, skipped. Works in a temporary folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/assertions.sh"
source "$here/training.sh"
lockstep=$(realpath "$1")
pictures=$(realpath "$2")
python=${PYTHON:-python3}
if ! command -v "$python" > /dev/null || ! "$python" -c "import numpy, torch" 2> /dev/null; then
    echo "skipped: $python has no torch and numpy; set PYTHON to one that has" >&2
    exit 77
fi
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
export LOCKSTEP_DEVICE_CACHE=$PWD/cache LOCKSTEP_DEVICE_BACKEND=cpu LOCKSTEP_DEVICE_TIMEOUT_S=1200
limit=1800

"$python" "$here/torch_resnet_data.py" "$pictures"
"$python" "$here/torch_resnet_check.py" start start.safetensors
cat > data.toml << TOML
[data]
format = "image_folder"
train = "train"
shape = [224, 224, 3]
mean = [0.485, 0.456, 0.406]
std = [0.229, 0.224, 0.225]
shuffle = "none"
[train]
steps = 1
TOML
cat > resnet.toml << TOML
[data]
test = "test"
[model]
name = "resnet50"
flavor = "torchvision"
weights = "start.safetensors"
[batch]
size = 8
shards = 4
[batch_norm]
scope = "global"
unbiased = true
[optimizer]
name = "momentum"
lr = 2e-4
momentum = 0.9
weight_decay = 1e-4
TOML
printf '[data]\nformat = "tfrecord"\ntrain = "records/train-*"\ntest = "records/test-*"\n' > records.toml
printf '[model]\nname = "logistic"\n[batch]\nsize = 1\nshards = 1\n[optimizer]\nname = "sgd"\nlr = 2.0\n' > pixels.toml

for folder in pixels/*; do
    run "$lockstep" train -q -c data.toml -c pixels.toml --set data.train="$folder" --out "$folder/run"
    expect_exit 0
done

run "$lockstep" train -c data.toml -c resnet.toml --out one
expect_exit 0
run mpi 2 "$lockstep" train -c data.toml -c resnet.toml --out two
expect_exit 0
run mpi 3 "$lockstep" train -c data.toml -c resnet.toml -c records.toml --out three-records
expect_exit 0
expect_same_run two one
expect_same_run three-records one
run mpi 2 "$lockstep" predict -q --run three-records --out predictions.csv
expect_exit 0

check() { run "$python" "$here/torch_resnet_check.py" check one predictions.csv start.safetensors "$@"; }
for precision in double single; do
    check $precision
    expect_exit 0
    echo "PyTorch, $precision:"
    cat stdout
done
# The twins: PyTorch at half the rate, or with one of its paddings moved by a pixel, must be told apart where that shows.
check rate
expect_exit 4
expect_in_stdout "gradients: equal"
expect_in_stdout "weights: DIFFERENT"
expect_in_stdout "logits after the step: DIFFERENT"
check padding
expect_exit 4
expect_in_stdout "gradients: DIFFERENT"
expect_in_stdout "running statistics: DIFFERENT"
