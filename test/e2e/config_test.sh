#!/usr/bin/env bash
# What: the config command, the global options and the exit codes, through the executable.
# Usage: config_test.sh PATH_TO_LOCKSTEP
# Needs: nothing but the executable; works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

# --version and --help work alone, and say what scripts rely on.
run "$lockstep" --version
expect_exit 0
expect_stdout $'lockstep 0.1.0\narithmetic 1'
expect_stderr ""
for arguments in "--help" "config --help" "config show --help"; do
    run "$lockstep" $arguments
    expect_exit 0
    expect_stderr ""
    expect_in_stdout "Usage: lockstep"
done

# Wrong usage is exit 2 with one line on stderr and nothing on stdout.
for arguments in "" "confg" "config" "config foo" "config show --color red" "config check" "config show -q -v" "config show --jsn"; do
    run "$lockstep" $arguments
    expect_exit 2
    expect_stdout ""
    expect_stderr_lines 1
done

for arguments in "confg" "config foo" "-q confg show"; do
    run "$lockstep" $arguments
    [[ $(cat stderr) == "lockstep: "*": no such command; see --help" ]] || fail "the wrong command is not named"
done

# init: a starter that checks as it is, and is never overwritten.
run "$lockstep" config init
expect_exit 0
expect_in_stdout 'format = "idx"'
cp stdout first.toml
run "$lockstep" config init exp.toml
expect_exit 0
expect_stdout "exp.toml"
cmp first.toml exp.toml
echo "seed = 5" > mine.toml
run "$lockstep" config init mine.toml
expect_exit 2
expect_stderr "lockstep: mine.toml exists and is not overwritten; name another file or remove it"
[[ $(cat mine.toml) == "seed = 5" ]] || fail "mine.toml was changed"
run "$lockstep" config init no/such/folder.toml
expect_exit 1
expect_stderr "lockstep: no/such/folder.toml cannot be written: No such file or directory"

# check: ok, or every fault at once with its place.
run "$lockstep" config check -c exp.toml -c mine.toml
expect_exit 0
expect_in_stdout "ok: exp.toml, mine.toml ("
printf '[optimizer]\n    lrr = 1\n[batch]\nsize = 0\n' > bad.toml
run "$lockstep" config check -c exp.toml -c bad.toml --set seed=x
expect_exit 2
expect_stdout ""
expect_stderr 'bad.toml:2:5: optimizer.lrr: unknown key; did you mean optimizer.lr?
bad.toml:4:1: batch.size must be at least 1, got 0
--set seed=x: seed must be a whole number, got "x"'
run "$lockstep" config check -c none.toml
expect_exit 2
expect_stderr "none.toml: cannot be read: No such file or directory"
run "$lockstep" config check -c exp.toml --set model.flavor=keras
expect_exit 2
expect_stderr '--set model.flavor=keras: model.flavor: unknown value "keras"; one of lockstep, tf, torchvision'

# Paths lose their detours, so that two ways to a folder are one value.
mkdir -p way/and
echo 'log.dir = "way/../logs"' > detour.toml
run "$lockstep" config show -c exp.toml -c way/and/../../detour.toml
expect_exit 0
expect_in_stdout "dir = \"$PWD/logs\""
run "$lockstep" config check -c exp.toml --set optimizer.lr=1e39
expect_exit 2
expect_stderr '--set optimizer.lr=1e39: optimizer.lr must be finite in fp32 (at most 3.4028235e+38), got 1e39'

# show: values with origins; the output is a config again. Global options may stand anywhere.
run env LOCKSTEP_BATCH_SIZE=64 LOCKSTEP_BATCH_SIZ=1 LOCKSTEP_DEBUG_X=1 "$lockstep" --color never config show -c exp.toml --set train.steps=7 -q
expect_exit 0
expect_stderr "lockstep: warning: LOCKSTEP_BATCH_SIZ: no such config variable; did you mean LOCKSTEP_BATCH_SIZE?"
expect_in_stdout "samples; LOCKSTEP_BATCH_SIZE"
expect_in_stdout "# steps; --set train.steps=7"
expect_in_stdout "# exp.toml:"
mkdir elsewhere
cp stdout elsewhere/shown.toml
cp stdout before
run "$lockstep" config show -c elsewhere/shown.toml
expect_exit 0
diff <(sed 's/ *#.*//' before) <(sed 's/ *#.*//' stdout) || fail "a shown config shows another"

# JSON goes to stdout alone.
run "$lockstep" config show --json -c exp.toml
expect_exit 0
expect_in_stdout '"batch.last": "default"'
run "$lockstep" config check --json -c exp.toml
expect_in_stdout '{"ok": true, '
run "$lockstep" config schema
expect_exit 0
expect_in_stdout "https://json-schema.org/draft/2020-12/schema"
cp stdout schema
run "$lockstep" config schema --json
expect_exit 0
cmp schema stdout
run "$lockstep" config reference
expect_exit 0
expect_in_stdout "# Config reference"

# What needs no data is checked without them: layers of a list, weights to start from, passes that some worlds refuse.
cat > custom.toml <<TOML
data = { format = "cifar", train = "nowhere.bin" }
train = { epochs = 1 }
[model]
name = "custom"
[[model.layers]]
kind = "conv"
kernel = 3
[[model.layers]]
kind = "pool"
kernel = 2
padding = "same"
pad = 1
[[model.layers]]
kind = "dense"
name = "a/b"
units = 10
from = "conv2"
TOML
run "$lockstep" config check -c custom.toml
expect_exit 2
expect_stderr_lines 3
expect_in_stderr "custom.toml:5:1: a conv needs channels"
expect_in_stderr "custom.toml:8:1: padding and pad are both set; set one"
expect_in_stderr "custom.toml:13:1: name \"a/b\": can hold letters, digits"
synthetic=(--set 'data={format="synthetic"}' --set train.epochs=1)
run "$lockstep" config check -c custom.toml --set 'model.layers=[{kind="dense", units=9}]'
expect_exit 0
run "$lockstep" config check -c custom.toml --set 'model.layers=[{kind="dense", units=9}]' "${synthetic[@]}"
expect_exit 2
expect_in_stderr "the last layer must have the 10 outputs of the loss"
run "$lockstep" config check -c custom.toml --set model.name=mlp --set model.weights=nowhere.safetensors
expect_exit 3
expect_in_stderr "cannot open $PWD/nowhere.safetensors"
echo "no tensors at all" > text.safetensors
run "$lockstep" config check -c custom.toml --set model.name=mlp --set model.weights=text.safetensors
expect_exit 3
run "$lockstep" config check -c custom.toml --set model.name=resnet20 --set batch_norm.scope=global --set batch.micro=32 --set batch.size=128
expect_exit 0
expect_in_stderr "fewer than 4 ranks are refused"
run "$lockstep" plan -c custom.toml --set model.name=resnet20 --set batch_norm.scope=global --set batch.micro=32 --set batch.size=128 "${synthetic[@]}" --ranks 2
expect_exit 2
run "$lockstep" plan -c custom.toml --set model.name=resnet20 --set batch_norm.scope=global --set batch.micro=32 --set batch.size=128 "${synthetic[@]}" --ranks 4
expect_exit 0
# --help says that --set takes one setting each time.
run "$lockstep" plan --help
expect_in_stdout "--set KEY=VALUE "
! grep -q -- "--set KEY=VALUE \.\.\." stdout || fail "--set looks as if it took several"

# A result that cannot be written is a failure.
if [[ -w /dev/full ]]; then
    set +e
    "$lockstep" config schema > /dev/full 2> stderr
    code=$?
    set -e
    [[ $code == 1 ]] || fail "a full disk gave exit $code"
    expect_stderr "lockstep: stdout cannot be written: No space left on device"
fi
echo "config command: all as it should be"
