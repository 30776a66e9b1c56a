#!/usr/bin/env bash
# What: a pixel that is infinite ends training with exit 5 on any number of ranks: one line that names step, shard,
#       position and sample; no step event of the failed step; the last checkpoint stands.
# Usage: nonfinite_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
lockstep=$(realpath "$1")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

# 60 pictures of 4 x 4 fp32 (IDX type 0x0D, big-endian): 0.5 everywhere, but for an infinite pixel of sample 41.
{
    printf '\x00\x00\x0d\x03\x00\x00\x00\x3c\x00\x00\x00\x04\x00\x00\x00\x04'
    for ((i = 0; i < 60 * 16; ++i)); do
        if ((i == 41 * 16 + 5)); then printf '\x7f\x80\x00\x00'; else printf '\x3f\x00\x00\x00'; fi
    done
} > images
{
    printf '\x00\x00\x08\x01\x00\x00\x00\x3c'
    for ((i = 0; i < 30; ++i)); do printf '\x00\x01'; done
} > labels
cat > config.toml << TOML
[data]
train = { images = "images", labels = "labels" }
shuffle = "none"
[model]
hidden = [7]
[batch]
size = 16
shards = 4
[train]
epochs = 2
[checkpoint]
every_steps = 1
[log]
every = 1
TOML

# Positions 32 … 47 are step 3, 40 … 43 of them shard 2.
said_before=
for ranks in 1 3; do
    launch=()
    if [[ $ranks != 1 ]]; then launch=(mpirun -q --bind-to none --oversubscribe -np "$ranks"); fi
    out=out-$ranks
    run "${launch[@]}" "$lockstep" train -q -c config.toml --out "$out"
    expect_exit 5
    expect_stdout ""
    said=$(grep "lockstep: " stderr | sed 's/ (rank [0-9]*)//')
    [[ $(wc -l <<< "$said") == 1 ]] || fail "more than one line"
    for part in "step 3 " "shard 2" "position 41 (sample 41)"; do [[ $said == *"$part"* ]] || fail "the message has no: $part"; done
    [[ -z $said_before || $said == "$said_before" ]] || fail "one rank said: $said_before"
    said_before=$said

    grep -c '"event":"step"' "$out/metrics.jsonl" | grep -qx 2 || fail "there should be 2 step events"
    grep -q '"step":3' "$out/metrics.jsonl" && fail "there is an event of the failed step"
    grep -q '"event":"end"' "$out/metrics.jsonl" && fail "there is an end event"
    [[ ! -e $out/model.safetensors ]] || fail "there is a final model"
    [[ $(cat "$out/checkpoints/latest") == step-00000002 ]] || fail "the last checkpoint is not step 2's"
    run "$lockstep" inspect "$out/checkpoints/step-00000002"
    expect_exit 0
    # It still is one to go on from: to the same end.
    run "$lockstep" train -q -c config.toml --out "$out" --resume auto
    expect_exit 5
    expect_in_stderr "position 41 (sample 41)"
done
cmp out-1/checkpoints/step-00000002/model.safetensors out-3/checkpoints/step-00000002/model.safetensors

# In a shuffled order the position is another, the sample is not.
run "$lockstep" train -q -c config.toml --set data.shuffle=full --out shuffled
expect_exit 5
expect_in_stderr "(sample 41)"
# However many shards are bad, the line stays one that can be read.
for ranks in 1 3; do
    run mpirun -q --bind-to none --oversubscribe -np $ranks "$lockstep" train -q -c config.toml --out wide-$ranks \
        --set data.mean=[1e38] --set data.std=[1e-30] --set batch.size=60 --set batch.shards=60
    expect_exit 5
    expect_in_stderr "; and 58 shards more"
    [[ $(grep -c "lockstep: " stderr) == 1 && $(grep "lockstep: " stderr | wc -c) -lt 2000 ]] || fail "the message is too long"
done
# Batch norm makes a sample depend on others, whose statistics a replay of it alone does not have: that is said.
for scope in shard global; do
    run mpirun -q --bind-to none --oversubscribe -np 2 "$lockstep" train -q -c config.toml --out norm-$scope \
        --set model.name=resnet20 --set batch_norm.scope=$scope
    expect_exit 5
    expect_in_stderr "shard 2"
    expect_in_stderr "not certain"
done
expect_in_stderr 'With batch_norm.scope = "global" that is not certain'
# Weights that a last step threw out of all bounds: the evaluation says that its figures mean nothing, on rank 0 alone.
cat > far.toml << TOML
data = { format = "synthetic", samples = 64, test_samples = 16 }
model.hidden = [8]
batch.size = 8
optimizer.lr = 1e30
train.steps = 1
TOML
for ranks in 1 2; do
    run mpirun -q --bind-to none --oversubscribe -np $ranks "$lockstep" train -c far.toml --out far-$ranks
    expect_exit 0
    expect_in_stderr "an evaluation's loss is "
    [[ $(grep -c "outputs are no finite numbers" stderr) == 1 ]] || fail "said once"
done
echo "non-finite steps: exit 5 and the sample's name on 1 and 3 ranks"
