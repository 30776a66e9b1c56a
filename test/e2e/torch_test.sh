#!/usr/bin/env bash
# What: weights trained here load into PyTorch's modules under their own names and shapes and give the same
#       probabilities to 1e-5, from model.safetensors and from both formats of export.
# Usage: torch_test.sh PATH_TO_LOCKSTEP
# Needs: PYTHON (default python3) with torch and numpy; without them exit 77, skipped. Works in a temporary folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/assertions.sh"
lockstep=$(realpath "$1")
python=${PYTHON:-python3}
if ! command -v "$python" > /dev/null || ! "$python" -c "import numpy, torch" 2> /dev/null; then
    echo "skipped: $python has no torch and numpy; set PYTHON to one that has" >&2
    exit 77
fi
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

for model in mlp lenet; do
    mkdir "$model"
    "$python" "$here/torch_check.py" make "$model" "$model"
    cat > "$model/config.toml" << TOML
[data]
train = { images = "train-images", labels = "train-labels" }
test = { images = "test-images", labels = "test-labels" }
mean = [0.3]
std = [0.35]
[model]
name = "$model"
hidden = [33, 17]
channels = [3, 5]
dropout = 0.2
[batch]
size = 16
[train]
epochs = 6
[optimizer]
lr = 0.01
TOML
    run "$lockstep" train -q -c "$model/config.toml" --out "$model/run"
    expect_exit 0
    run "$lockstep" predict -q --run "$model/run" --out "$model/predictions.csv"
    expect_exit 0
    for format in safetensors npz; do
        run "$lockstep" export -q --run "$model/run" --format "$format" --out "$model/weights.$format"
        expect_exit 0
    done
    for weights in run/model.safetensors weights.safetensors weights.npz; do
        "$python" "$here/torch_check.py" check "$model" "$model" "$model/$weights" "$model/predictions.csv"
    done
    # The twin: weights of one step less must be told apart.
    run "$lockstep" train -q -c "$model/config.toml" --set train.steps=35 --out "$model/other"
    expect_exit 0
    if "$python" "$here/torch_check.py" check "$model" "$model" "$model/other/model.safetensors" "$model/predictions.csv" 2> /dev/null > /dev/null; then
        fail "other weights pass as well"
    fi
done
