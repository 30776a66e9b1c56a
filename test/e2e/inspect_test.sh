#!/usr/bin/env bash
# What: what a run left behind, whole and damaged: inspect tells every part of a run that is not as it was written, with
# exit 3, and no name from elsewhere steers a terminal; export takes the weights of any checkpoint; an --out that holds
# a run without a step says how to start it anew.
# Usage: inspect_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; asks python3 for a second opinion on JSON where it is installed. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

small_config > small.toml
run "$lockstep" train -c small.toml --out whole --set checkpoint.every_steps=5 --set checkpoint.keep=9 --set checkpoint.best=loss
expect_exit 0
inspect() { run timeout 20 "$lockstep" inspect "$@"; }
# No byte that a terminal would obey, but for line ends.
expect_harmless() { ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' stdout stderr || fail "a control character: $(cat -v stdout stderr)"; }

# --- A run ------------------------------------------------------------------------------------------------------------
inspect whole
expect_exit 0
expect_stderr ""
expect_in_stdout "kind: run"
expect_in_stdout "best: whole/checkpoints/$(cat whole/checkpoints/best)"
for name in best latest; do
    inspect whole/checkpoints/$name
    expect_exit 0
    expect_in_stdout "path: whole/checkpoints/$(cat whole/checkpoints/$name)"
done

# damaged LINE COMMAND…: what the command does to a copy is told, on stderr and in both kinds of output, and all else, too.
damaged() {
    local line=$1 command
    shift
    rm -rf copy
    cp -r whole copy
    (cd copy && "$@")
    for command in "inspect copy" "inspect --json copy"; do
        run timeout 20 "$lockstep" $command
        expect_exit 3
        expect_stderr_lines 1
        expect_in_stderr "$line"
        expect_in_stdout damaged
        expect_in_stdout "$line"
        expect_in_stdout finished
    done
    ! command -v python3 > /dev/null || python3 -m json.tool stdout > /dev/null || fail "no JSON"
}
damaged "copy/model.safetensors: truncated" truncate -s -8 model.safetensors
damaged "copy/model.safetensors: damaged: its sha256 is not the one of the end event" cp checkpoints/step-00000005/model.safetensors .
# Nobody works with what is not the run's end.
cp whole/checkpoints/step-00000005/model.safetensors copy
for command in "export --format npz --out x.npz" "eval" "predict"; do
    run "$lockstep" $command --run copy
    expect_exit 3
    expect_in_stderr "copy/model.safetensors: damaged: its sha256 is not the one of the end event"
done
inspect whole/checkpoints
expect_exit 2
expect_in_stderr "whole/checkpoints: the checkpoints of a run; name one of them"
damaged "copy/model.safetensors: missing, though the run is finished" rm model.safetensors
damaged "copy/checkpoints/step-00000010/optimizer.safetensors: damaged checkpoint" truncate -s 100 checkpoints/step-00000010/optimizer.safetensors
damaged "copy/checkpoints/step-00000010: damaged checkpoint: it has no state.json" rm checkpoints/step-00000010/state.json
damaged "copy/checkpoints/latest: names step-00000099, which is no checkpoint beside it" bash -c 'echo step-00000099 > checkpoints/latest'
damaged "copy/checkpoints/best: names nothing, which is no checkpoint beside it" truncate -s 0 checkpoints/best
damaged "copy/metrics.jsonl:2: damaged: the line holds no JSON object" sed -i '2s/.*/{"cut/' metrics.jsonl
damaged "copy/config.resolved.toml:" bash -c 'echo nonsense >> config.resolved.toml'
damaged "copy/run.json: damaged" truncate -s 20 run.json
# Two at once are both told.
truncate -s -8 copy/model.safetensors
inspect copy
expect_exit 3
expect_stderr_lines 2
run mpi 2 "$lockstep" inspect copy
expect_exit 3
[[ $(lockstep_said | wc -l) == 2 ]] || fail "not two lines of one rank: $(lockstep_said)"
# What a run that was killed leaves is no damage: a last line without an end, no end event, no final weights.
rm -rf copy
cp -r whole copy
sed -i '$d' copy/metrics.jsonl
printf '{"event":"st' >> copy/metrics.jsonl
rm copy/model.safetensors copy/checkpoints/latest
inspect copy
expect_exit 0
expect_in_stdout "finished: false"

# --- Names from elsewhere -----------------------------------------------------------------------------------------------
escape=$'\e]0;owned\a\e[2J\u009b31m'
# strange NAME: a safetensors file of one tensor with this name (JSON text) and of a metadata entry like it.
strange() {
    local header='{"__metadata__":{"'$1'":"'$1'"},"'$1'":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    printf '%s' "$header" > header
    printf "\\x$(printf %02x "$(wc -c < header)")\\0\\0\\0\\0\\0\\0\\0"
    cat header
    printf '\0\0\0\0'
}
strange 'a\u001b[2J\u007f\nb' > strange.safetensors
inspect strange.safetensors
expect_exit 0
expect_harmless
expect_in_stdout '  a\x1b[2J\x7f\x0ab'
strange "$(printf 'c\u009b31m')" > strange.safetensors
inspect strange.safetensors
expect_exit 0
expect_in_stdout '  c\x9b31m'
inspect --json strange.safetensors
expect_exit 0
cp -r whole "run$escape"
inspect "run$escape"
expect_exit 0
expect_harmless
truncate -s 0 "run$escape/model.safetensors"
for command in "inspect" "eval --run" "predict --run" "diff whole" "export --format npz --out x.npz --run"; do
    run timeout 20 "$lockstep" $command "run$escape"
    [[ $last_exit != 0 || $command == "diff whole" ]] || fail "exit 0 of a run without weights"
    expect_harmless
done
for arguments in "inspect nowhere$escape" "plan -c $escape" "config check -c small.toml --set $escape=1" "train -c small.toml --resume $escape" \
    "config check -c small.toml --set model.weights=$escape.safetensors"; do
    run timeout 20 "$lockstep" $arguments
    [[ $last_exit == [23] ]] || fail "exit $last_exit"
    expect_harmless
done
ln -s around around
for command in "inspect around" "eval --run around" "export --format npz --out x.npz --checkpoint around" "diff around whole" "plan -c around"; do
    run timeout 20 "$lockstep" $command
    [[ $last_exit == [23] ]] || fail "exit $last_exit for a link that ends nowhere"
    ! grep -q unexpected stderr || fail "a link that ends nowhere is not expected"
done
inspect around
expect_exit 3
expect_stderr "lockstep: cannot read around: Too many levels of symbolic links"

# --- export -------------------------------------------------------------------------------------------------------------
for name in "$(cat whole/checkpoints/best)" best latest step-00000010; do
    run "$lockstep" export --checkpoint whole/checkpoints/$name --format safetensors --out exported.safetensors
    expect_exit 0
    path=whole/checkpoints/$name
    [[ -d $path ]] || path=whole/checkpoints/$(cat $path)
    cmp exported.safetensors "$path/model.safetensors"
done
cmp whole/model.safetensors whole/checkpoints/step-00000010/model.safetensors > /dev/null && fail "a checkpoint is the end"
for weights in exported.safetensors whole/metrics.jsonl; do
    run "$lockstep" export --checkpoint $weights --format npz --out x.npz
    expect_exit 3
    expect_stderr "lockstep: $weights: neither a checkpoint, which is a folder, nor a file that names one beside it, such as checkpoints/best"
done
run "$lockstep" export --checkpoint whole/checkpoints/nowhere --format npz --out x.npz
expect_exit 2
run "$lockstep" export --checkpoint whole/checkpoints/best --run whole --format npz --out x.npz
expect_exit 2
expect_in_stderr "give --run DIR (its final weights, else its newest checkpoint's) or --checkpoint PATH"
run "$lockstep" export --format npz --out x.npz
expect_exit 2

# --- An --out that holds a run without a step -----------------------------------------------------------------------------
run "$lockstep" train -c small.toml --out whole
expect_exit 2
expect_stderr "lockstep: whole: holds a run already; choose another --out, or go on with --resume auto"
cp -r whole begun
rm -r begun/checkpoints begun/model.safetensors
sed -i '3,$d' begun/metrics.jsonl
run "$lockstep" train -c small.toml --out begun
expect_exit 2
expect_stderr "lockstep: begun: holds a run already, which left no checkpoint; choose another --out, or start it anew from step 1 with --resume auto"
truncate -s 0 begun/metrics.jsonl
run "$lockstep" train -c small.toml --out begun
expect_exit 2
expect_stderr "lockstep: begun: holds a run already, which recorded no step; choose another --out, or start it anew with --resume auto"
# One that another process is at work in is not one that ended so.
(flock 9; run timeout 20 "$lockstep" train -c small.toml --out begun
    expect_exit 2
    expect_in_stderr "begun: another process is training into it") 9< begun
run "$lockstep" train -c small.toml --out begun --resume auto
expect_exit 0
expect_same_run begun whole
echo "inspect, export, an --out that is taken: what a run left behind is told"
