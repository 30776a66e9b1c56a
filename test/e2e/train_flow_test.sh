#!/usr/bin/env bash
# What: the way of a run through the executable: the same files at any number of ranks, their layout and fields, and the
# commands that read them (eval, predict, export, inspect).
# Usage: train_flow_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; asks python3 for a second opinion on JSON where it is installed. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"

# --- The same run at any number of ranks ------------------------------------------------------------------------------
small_config > small.toml
run "$lockstep" train -c small.toml --out alone --set checkpoint.every_steps=7
expect_exit 0
expect_stdout ""
for ranks in 1 2 3 4 8; do
    run mpi $ranks "$lockstep" train -c small.toml --out np$ranks --set checkpoint.every_steps=7
    expect_exit 0
    expect_stdout ""
    expect_same_run np$ranks alone
    for file in model.safetensors optimizer.safetensors; do cmp np$ranks/checkpoints/step-00000014/$file alone/checkpoints/step-00000014/$file; done
    expect_in_stderr "8 shards on $ranks rank"
done
[[ $(lockstep_said | tail -n 1) == "done: 18 steps, np8/model.safetensors  sha256 $(sha256sum < alone/model.safetensors | cut -d ' ' -f 1)" ]] ||
    fail "the last line is not the witness"
# The twin: another seed is another run, so the comparison can fail.
run "$lockstep" train -c small.toml --out other --set seed=2
(expect_same_run other alone) 2> /dev/null && fail "another seed gives the same run"

# --- The run directory ------------------------------------------------------------------------------------------------
listing=$(cd alone && find . -type f -printf '%P\n' | sort)
[[ $listing == "checkpoints/latest
checkpoints/step-00000007/model.safetensors
checkpoints/step-00000007/optimizer.safetensors
checkpoints/step-00000007/state.json
checkpoints/step-00000014/model.safetensors
checkpoints/step-00000014/optimizer.safetensors
checkpoints/step-00000014/state.json
checkpoints/step-00000018/model.safetensors
checkpoints/step-00000018/optimizer.safetensors
checkpoints/step-00000018/state.json
config.resolved.toml
events.jsonl
metrics.jsonl
model.safetensors
run.json" ]] || fail "the run directory holds: $listing"
[[ $(cat alone/checkpoints/latest) == step-00000018 ]] || fail "latest names another checkpoint"
cmp alone/model.safetensors alone/checkpoints/step-00000018/model.safetensors

# The resolved config is the run's: it loads again, from anywhere, and trains the same.
mkdir elsewhere
(cd elsewhere && run "$lockstep" train -c ../alone/config.resolved.toml --out ../again && expect_exit 0)
expect_same_run again alone
diff alone/config.resolved.toml again/config.resolved.toml || fail "a resolved config resolves to another"

# --- Going on ---------------------------------------------------------------------------------------------------------
# A finished run is reported; asked for more, it goes on like a run that was longer from the start.
before=$(inventory)
run mpi 3 "$lockstep" train -c small.toml --out alone --resume auto
expect_exit 0
[[ $(lockstep_said) == "alone: the run is done: 18 steps" ]] || fail "not told that the run is done: $(lockstep_said)"
[[ $(inventory) == "$before" ]] || fail "a finished run was changed"
# A model that was removed is written again from the last checkpoint; without one the loss is told.
mv alone/model.safetensors kept
run "$lockstep" train -c small.toml --out alone --resume auto
expect_exit 0
[[ $(sha256sum < kept) == $(sha256sum < alone/model.safetensors) ]] || fail "not the model that was removed"
expect_in_stderr "alone/model.safetensors was missing: written again from the last checkpoint"
rm kept
cp -r alone bare
rm -r bare/model.safetensors bare/checkpoints
run "$lockstep" train -c small.toml --out bare --resume auto
expect_exit 3
expect_stderr "lockstep: bare: the run is done, but its model.safetensors is missing and no checkpoint is left to write it from; train again into another --out"
cp -r np2 longer
run mpi 3 "$lockstep" train -c small.toml --out longer --resume auto --set train.epochs=3
expect_exit 0
run "$lockstep" train -c small.toml --out long --set train.epochs=3
expect_same_run longer long
grep -q '^{"event":"resume",.*"step":18,"from":"longer/checkpoints/step-00000018","world":3' longer/events.jsonl || fail "no resume event"
# From a checkpoint into a folder of its own: the same weights, and the metrics after that step.
run mpi 2 "$lockstep" train -c small.toml --out branch --resume alone/checkpoints/step-00000007
expect_exit 0
cmp branch/model.safetensors alone/model.safetensors
diff <(without_wall branch/metrics.jsonl) <(without_wall alone/metrics.jsonl | tail -n +2) || fail "a branch has other metrics"
# It holds that checkpoint itself: cut off before its next one, it goes on from there, not from the initial weights.
cp -r branch cut
rm -r cut/model.safetensors cut/checkpoints/step-00000018
echo step-00000007 > cut/checkpoints/latest
head -n 2 branch/metrics.jsonl > cut/metrics.jsonl
run mpi 3 "$lockstep" train -c small.toml --out cut --resume auto
expect_exit 0
expect_same_run cut branch
# A folder without its state is no complete checkpoint; and killed before `latest` was written, a run still ends with it.
cp -r alone torn
rm torn/checkpoints/step-00000018/state.json torn/model.safetensors
echo step-00000007 > torn/checkpoints/latest
sed -i '$d' torn/metrics.jsonl
cp -r torn unnamed
cp alone/checkpoints/step-00000018/state.json unnamed/checkpoints/step-00000018
for folder in torn unnamed; do
    run mpi 2 "$lockstep" train -c small.toml --out $folder --resume auto
    expect_exit 0
    expect_same_run $folder alone
    [[ $(cat $folder/checkpoints/latest) == step-00000018 ]] || fail "latest names another checkpoint"
done
# Two processes never train into one folder.
exec 9< other
flock 9
before=$(inventory)
run timeout 30 "$lockstep" train -c small.toml --out other --resume auto
expect_exit 2
expect_stderr "lockstep: other: another process is training into it; wait for its end, or choose another --out"
[[ $(inventory) == "$before" ]] || fail "a folder in use was changed"
exec 9<&-
(for i in 1 2 3; do "$lockstep" train -c small.toml --set train.epochs=200 --out shared -q 2> shared.$i || echo "$?" > shared.exit.$i & done; wait)
[[ $(cat shared.exit.*) == $'2\n2' ]] || fail "of three that start in one folder, not two are refused: $(cat shared.exit.*)"
run "$lockstep" train -c small.toml --set train.epochs=200 --out unshared -q
expect_same_run shared unshared

# --- metrics.jsonl and the other files --------------------------------------------------------------------------------
# metrics.jsonl: the events in their order, each with its fields in their order.
number='-?[0-9][0-9.e+-]*'
wall="\"wall\":\{\"time_s\":$number,\"samples_per_s\":$number\}"
step() { echo "\{\"event\":\"step\",\"step\":$1,\"epoch\":$2,\"samples\":$3,\"loss\":$number,\"lr\":0\.05,$wall\}"; }
evaluation() { echo "\{\"event\":\"eval\",\"step\":$1,\"epoch\":$2,\"split\":\"test\",\"count\":61,\"loss\":$number,\"accuracy\":$number,\"top5\":$number\}"; }
{
    step 5 0 120
    evaluation 9 1
    step 10 1 227
    step 15 1 347
    step 18 1 406
    evaluation 18 2
    echo "\{\"event\":\"end\",\"steps\":18,\"epochs\":2,\"weights\":\"[0-9a-f]{16}\",\"sha256\":\"$(sha256sum < alone/model.safetensors | cut -d ' ' -f 1)\",$wall\}"
} > expected
[[ $(wc -l < alone/metrics.jsonl) == $(wc -l < expected) ]] || fail "metrics.jsonl: $(cat alone/metrics.jsonl)"
paste -d '\n' alone/metrics.jsonl expected | while read -r line && read -r pattern; do
    grep -qxE "$pattern" <<< "$line" || fail "metrics.jsonl has $line where $pattern is expected"
done
for field in argv version world hosts start end; do grep -q "^  \"$field\": " alone/run.json || fail "run.json has no $field"; done
grep -q '"world": 8' np8/run.json || fail "run.json has another world"
for event in start checkpoint; do grep -q "^{\"event\":\"$event\",\"time\":\".*Z\",\"host\":\"$(uname -n)\"" alone/events.jsonl || fail "no $event event"; done

# The header of the weights, byte for byte, padded to 8 bytes.
header=$(head -c 600 alone/model.safetensors | tail -c +9 | grep -aom 1 '^{"__metadata__":{[^}]*}')
[[ $header == '{"__metadata__":{"format":"pt","lockstep.arithmetic":"1","lockstep.model":"mlp"}' ]] || fail "metadata: $header"
(($(od -An -tu8 -N8 alone/model.safetensors) % 8 == 0)) || fail "the header is not padded"

# --- The commands that read a run -------------------------------------------------------------------------------------
eval_event=$(grep '"event":"eval","step":18' alone/metrics.jsonl)
run "$lockstep" eval --run alone --json
expect_exit 0
expect_stdout "$eval_event"
run mpi 3 "$lockstep" eval --run alone --json
expect_exit 0
expect_stdout "$eval_event"
run "$lockstep" eval --checkpoint alone/checkpoints/step-00000014 -c small.toml --json
expect_exit 0
expect_in_stdout '{"event":"eval","step":14,"epoch":1,"split":"test","count":61,'
run "$lockstep" eval --run alone
expect_exit 0
expect_in_stdout "(61 samples, step 18)"
run "$lockstep" eval --run alone --split train --json
expect_in_stdout '"split":"train","count":203,'
run "$lockstep" train -c small.toml --out held -q --set data.test_samples=0 --set data.validation=0.2
run "$lockstep" eval --run held
expect_exit 2
expect_stderr "lockstep: data.test is not set: there is no such split; look at --split validation or --split train"
run "$lockstep" eval --run held --split validation
expect_exit 0

run "$lockstep" predict --run alone --out alone.csv
expect_exit 0
expect_stdout ""
run "$lockstep" predict --run alone
cmp stdout alone.csv
# What is no file is written to as it is, and stays what it is.
mkfifo pipe
cat pipe > piped.csv &
run timeout 20 "$lockstep" predict --run alone --out pipe
expect_exit 0
[[ -p pipe ]] || fail "the pipe was replaced"
wait $!
cmp piped.csv alone.csv
for ranks in 1 2 5; do
    run mpi $ranks "$lockstep" predict --run alone --out p$ranks.csv
    expect_exit 0
    cmp p$ranks.csv alone.csv
done
[[ $(head -n 1 alone.csv) == index,label,class,p0,p1,p2,p3,p4,p5,p6 ]] || fail "header: $(head -n 1 alone.csv)"
[[ $(tail -n +2 alone.csv | cut -d , -f 1) == $(seq 0 60) ]] || fail "the rows are not in data order"
right=$(tail -n +2 alone.csv | awk -F , '$2 == $3' | wc -l)
accuracy=$(sed -E 's/.*"accuracy":([0-9.e-]+).*/\1/' <<< "$eval_event")
awk -v right="$right" -v accuracy="$accuracy" 'BEGIN { exit !(right / 61 - accuracy < 1e-15 && accuracy - right / 61 < 1e-15) }' ||
    fail "predict has $right of 61 right, eval says $accuracy"
awk -F , 'NR > 1 { sum = 0; best = 0; for (k = 4; k <= NF; ++k) { sum += $k; if ($k > $(best + 4)) best = k - 4 }
    if (NF != 10 || best != $3 || sum < 0.99999 || sum > 1.00001) exit 1 }' alone.csv || fail "a row is no distribution with its class on top"

run "$lockstep" export --run alone --format safetensors --out exported.safetensors
expect_exit 0
cmp exported.safetensors alone/model.safetensors
run "$lockstep" export --run alone --format npz --out exported.npz
expect_exit 0
[[ $(head -c 4 exported.npz | od -An -tx1) == " 50 4b 03 04" ]] || fail "npz is no zip file"
tensors=$(tail -c +9 alone/model.safetensors | grep -aom 1 '^{"__metadata__":.*' | grep -oE '"[a-z0-9_.]+":\{"dtype"' | cut -d '"' -f 2 | sort)
[[ $tensors == $'fc1.bias\nfc1.weight\nfc2.bias\nfc2.weight' ]] || fail "tensors: $tensors"
for tensor in $tensors; do grep -qa "$tensor.npy" exported.npz || fail "npz has no $tensor"; done
run "$lockstep" export --run alone --format onnx --out x.onnx
expect_exit 2
run "$lockstep" export --help
! grep -qi onnx stdout || fail "export offers what is not built"
run "$lockstep" eval --help
expect_in_stdout "this or --checkpoint is needed"
run "$lockstep" export --run alone --format safetensors --out elsewhere
expect_exit 2

idx_images 3 4 5 > three-images
run "$lockstep" inspect alone
expect_in_stdout "kind: run"
run "$lockstep" inspect alone/checkpoints/step-00000014
expect_in_stdout "step: 14"
run "$lockstep" inspect alone/checkpoints/$(cat alone/checkpoints/latest)
cp stdout newest
run "$lockstep" inspect alone/checkpoints/latest
expect_exit 0
cmp newest stdout
cp -r alone spoiled
echo '{"event":5}' >> spoiled/metrics.jsonl
run "$lockstep" inspect spoiled
expect_exit 0
for text in '{"cut":' '7' "$(printf '%300000s' '' | tr ' ' '[')"; do
    echo "$text" > spoiled/run.json
    run "$lockstep" inspect spoiled
    expect_exit 3
    expect_in_stderr "spoiled/run.json: damaged"
    run "$lockstep" diff alone spoiled
    expect_exit 3
done
mkdir dangling
echo step-00000099 > dangling/latest
run "$lockstep" inspect dangling/latest
expect_exit 3
expect_stderr "lockstep: dangling/latest: names step-00000099, which is no checkpoint beside it"
run "$lockstep" inspect alone/model.safetensors
expect_in_stdout "$tensor"
run "$lockstep" inspect three-images
expect_in_stdout "extents: [3,4,5]"
# One JSON document on stdout, and nothing else.
for thing in alone alone/checkpoints/step-00000014 alone/model.safetensors three-images; do
    run "$lockstep" inspect --json $thing
    expect_exit 0
    expect_stderr ""
    [[ $(head -c 1 stdout) == "{" && $(tail -n 1 stdout) == "}" ]] || fail "$thing: not one JSON object"
    ! command -v python3 > /dev/null || python3 -m json.tool stdout > /dev/null || fail "$thing: no JSON"
done
run "$lockstep" inspect elsewhere
expect_exit 2
run "$lockstep" inspect small.toml
expect_exit 2
expect_in_stderr "small.toml: a config, not data: lockstep config show -c small.toml prints it"
run "$lockstep" inspect nowhere
expect_exit 3
echo "train, eval, predict, export, inspect: the same at any number of ranks"
