#!/usr/bin/env bash
# What: every bad input ends with its exit code and one clear line for each fault, alone and as three ranks, within
# seconds, and leaves every file as it was.
# Usage: bad_input_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; gzip. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
source "$(dirname "${BASH_SOURCE[0]}")/refusals.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
limit=20

# --- Data files -------------------------------------------------------------------------------------------------------
idx_images 20 4 4 > images
idx_labels 20 4 > labels
idx_images 10 4 4 > test-images
idx_labels 10 4 > test-labels
cat > idx.toml <<'TOML'
[data]
train = { images = "images", labels = "labels" }
test = { images = "test-images", labels = "test-labels" }
[model]
hidden = [3]
[batch]
size = 8
[train]
steps = 2
TOML
run timeout 20 "$lockstep" train -c idx.toml --out whole # the good ones are good
expect_exit 0

: > empty
head -c 100 images > short
gzip -c images | head -c 60 > short.gz
gzip -c images | gzip -c > twice.gz
sed 's/^\x00\x00\x08/\x00\x01\x08/' labels > magic
idx_labels 19 4 > labels-19
{ printf '\x00\x00\x09\x01\x00\x00\x00\x14'; printf '\x01%.0s' {1..19}; printf '\xff'; } > labels-negative
idx_labels 10 9 > labels-beyond
printf '%s' "$(seq 1 50)" > text
train() { printf 'data.train={images="%s",labels="%s"}' "$1" "$2"; }
bad_data() { refused 3 "$1" -- train -c idx.toml --out no --set "$2"; }

bad_data "cannot open $PWD/none: No such file or directory" "$(train none labels)"
bad_data "$PWD/empty: empty" "$(train empty labels)"
bad_data "$PWD/short: truncated" "$(train short labels)"
bad_data "$PWD/short.gz: " "$(train short.gz labels)"
bad_data "$PWD/twice.gz: packed twice" "$(train twice.gz labels)"
bad_data "$PWD/magic: wrong magic at 0x0" "$(train images magic)"
bad_data "$PWD/text: wrong magic at 0x0" "$(train text labels)"
bad_data "cannot read $PWD: it is a folder, a file is needed" "$(train . labels)"
bad_data "$PWD/images holds 20 images, but $PWD/labels-19 holds 19 labels" "$(train images labels-19)"
bad_data "$PWD/labels-negative: label -1 of sample 19 at 0x1b is out of range" "$(train images labels-negative)"
bad_data "$PWD/labels-beyond: label 4 of sample 4 at 0xc is out of range: the training labels go from 0 to 3" \
    'data.test={images="test-images",labels="labels-beyond"}'

# One rank that cannot read a file: it is named with its host, and all stop.
run launch -np 1 "$lockstep" train -c idx.toml --out no \
    : -np 1 env LOCKSTEP_DATA_TRAIN='{ images = "images", labels = "only-here" }' "$lockstep" train -c idx.toml --out no \
    : -np 1 "$lockstep" train -c idx.toml --out no
expect_exit 3
[[ $(lockstep_said) == "lockstep: rank 1 on $(uname -n): cannot open $PWD/only-here: No such file or directory" ]] || fail "rank 1 is not named"
[[ ! -e no ]] || fail "a run directory was made"
if ((EUID != 0)); then # to root every file is readable
    cp labels sealed
    chmod 000 sealed
    run mpi 3 "$lockstep" train -c idx.toml --out no --set "$(train images sealed)"
    expect_exit 3
    [[ $(lockstep_said) == "lockstep: cannot open $PWD/sealed: Permission denied" ]] || fail "the sealed file is not named"
    rm -f sealed
fi

# --- Config -----------------------------------------------------------------------------------------------------------
bad_config() { # RANKS, TOML text, then a line for each fault
    printf '%s' "$2" > bad.toml
    refused_as "$1" 2 "${@:3}" -- train -c small.toml -c bad.toml --out no
    rm bad.toml
}
small_config > small.toml
bad_config 0 $'[batch]\nsize = = 3\n' "bad.toml:2:8: "
bad_config 3 $'[batch]\nsise = 3\n[optimizer]\nlrr = 1\n[whatever]\nx = 1\n' "bad.toml:2:1: batch.sise: unknown key; did you mean batch.size?" \
    "bad.toml:4:1: optimizer.lrr: unknown key; did you mean optimizer.lr?" "bad.toml:5:2: whatever: unknown section"
bad_config 0 $'seed = "one"\n[batch]\nsize = 2.5\nshards = true\n' 'bad.toml:1:1: seed must be a whole number, got "one"' \
    "bad.toml:3:1: batch.size must be a whole number, got 2.5" "bad.toml:4:1: batch.shards must be a whole number, got true"
bad_config 3 $'[batch]\nsize = 0\nlast = "some"\n[optimizer]\nlr = -1\nmomentum = 1.5\n' "bad.toml:2:1: batch.size must be at least 1, got 0" \
    "bad.toml:3:1: batch.last: unknown value \"some\"; one of keep, drop" \
    "bad.toml:5:1: optimizer.lr must be at least 0, got -1" "bad.toml:6:1: optimizer.momentum must be below 1, got 1.5"
bad_config 0 $'[train]\nepochs = 3\nsteps = 4\n' "train.epochs"
sed '/epochs/d' small.toml > endless.toml
refused 2 "train.epochs, train.steps: neither is set" -- train -c endless.toml --out no
refused 2 "samples" -- train -c small.toml --set batch.last=drop --set batch.size=204 --out no
refused 2 "none.toml: cannot be read: No such file or directory" -- train -c none.toml --out no
# A learning rate that fp32 cannot hold would leave weights that no later step refuses.
refused 2 "optimizer.lr must be finite in fp32 (at most 3.4028235e+38), got 1e39" -- train -c small.toml --out no --set optimizer.lr=1e39
refused 2 "schedule.factor = 1e+30: the learning rate of step 18 would be 5e+178, which fp32 cannot hold" -- \
    train -c small.toml --out no --set schedule.name=step --set schedule.factor=1e30 --set schedule.every_epochs=0.3
# What never will be on CPUs is refused rather than ignored, and so is what nobody has heard of.
refused_as 3 2 "--set model.flavor=keras: model.flavor: unknown value \"keras\"" -- train -c small.toml --out no --set model.flavor=keras
refused 2 "--set device.precision=bf16: device.precision = \"bf16\" needs device.arithmetic = \"vendor\"" -- train -c small.toml --out no \
    --set device.precision=bf16
refused 2 "device.arithmetic = \"vendor\" needs a GPU, and device.backend is \"cpu\"" -- train -c small.toml --out no \
    --set device.arithmetic=vendor --set device.backend=cpu
run launch -np 1 "$lockstep" train -c small.toml --out no : -np 2 env LOCKSTEP_BATCH_SIZE=0 "$lockstep" train -c small.toml --out no
expect_exit 2
[[ $(lockstep_said) == "lockstep: rank 1 on $(uname -n): LOCKSTEP_BATCH_SIZE: batch.size must be at least 1, got 0" ]] || fail "rank 1 is not named"
echo "bad input: all refused as it should be"
