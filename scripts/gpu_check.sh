#!/usr/bin/env bash
# what : checks Lockstep on the GPUs of this machine: tests, bits against the CPU's, streams, ranks, NCCL, precisions, what cuBLAS and cuDNN do, speed; a table and JSON
# usage: gpu_check.sh [--json FILE] [--compare OLDER.json] [--minutes N] [--emulation EXECUTABLE LIBRARY FIGURES]      (exit 0: all well; 1: a check failed; 77: no GPU)
# needs: a GPU of compute capability 8.0, its driver, a CUDA toolkit (setup.sh --tests --cuda); under 8 minutes with its build in build/gpu; PYTORCH=python compares speed
# shellcheck disable=SC2046,SC2086,SC2154,SC2015,SC1003
# (settings and lists are words, to be split)
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/common.sh"
. "$root/scripts/bench/gpu.sh"
json=$root/build/gpu/gpu_check.json
older="" emulation="" minutes=7.5
while [ $# -gt 0 ]; do
  case $1 in
    --json) json=$(realpath -m -- "${2:?}"); shift ;;
    --compare) older=$(realpath -- "${2:?}"); shift ;;
    --minutes) minutes=${2:?}; shift ;;
    --emulation) lockstep=$(realpath -- "${2:?}") emulation=$(realpath -- "${3:?}") figures=$(realpath -- "${4:?}"); shift 3 ;;
    *) usage ;;
  esac
  shift
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset "${!LOCKSTEP_@}"

# --- the machine, and the build for its own GPUs
if [ -n "$emulation" ]; then
  # The script itself on trial, where no GPU is: the same steps on emulated devices, with smaller networks, however long they take.
  export LOCKSTEP_DEBUG_CUDA_PLUGIN=$emulation
  gpus=4 steps=6 world_sizes="2 3" at_once=1 minutes=600
  device="emulated device" driver=none
else
  { [ -e /dev/nvidiactl ] && command -v nvidia-smi >/dev/null; } || { say "no GPU here (no /dev/nvidiactl, or no nvidia-smi): nothing is checked"; exit 77; }
  gpus=$(nvidia-smi -L | grep -c '^GPU') || die "nvidia-smi lists no GPU: $(nvidia-smi -L 2>&1 | head -n 1)"
  device=$(nvidia-smi --query-gpu=name,compute_cap,memory.total --format=csv,noheader -i 0)
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader -i 0)
  steps=100 world_sizes="2 4" at_once=5
  say "$gpus x $device, driver $driver"
  say "build for this GPU, in build/gpu"
  configure build/gpu -DBUILD_TESTING=ON -DLOCKSTEP_CUDA=ON -DLOCKSTEP_GPU_TESTS=ON -DLOCKSTEP_CUDA_ARCHITECTURES=native
  sed -n '/^-- Lockstep/,/^-- $/s/^--   //p' "$root/build/gpu/configure.log" >&2
  cmake --build "$root/build/gpu" -j "$(build_jobs)" --target lockstep lockstep_cuda lockstep_cuda_fused lockstep_gpu_tests >&2 || die "the build failed"
  lockstep=$root/build/gpu/apps/lockstep/lockstep figures=$root/build/gpu/test/cuda/gpu_figures
  say "built after $SECONDS s"
fi
mpi_environment
last_second=$(awk -v m="$minutes" 'BEGIN { print int(60 * m) }')

# --- the record: a line of the table for each check, "name<TAB>result<TAB>seconds<TAB>detail"
table=$scratch/table.tsv hashes=$scratch/hashes.tsv speeds=$scratch/speeds.tsv
touch "$table" "$hashes" "$speeds"
mkdir "$scratch/lists" "$scratch/main"   # lists: a file for each check that says more than a line
place=$scratch/main                      # of the run that trained() makes
# check NAME COMMAND...: ok where the command succeeds; what it wrote last on stdout is the detail. Exit 77, or no time left: skipped.
check() {
  local title=$1 start=$SECONDS result=ok code=0 detail
  shift
  if [ $SECONDS -ge $last_second ]; then
    echo "not one of the $minutes minutes is left" >"$scratch/detail"
    code=77
  else
    "$@" >"$scratch/detail" 2>"$scratch/errors" </dev/null || code=$?
  fi
  detail=$(tail -n 1 "$scratch/detail" | tr '\t"\\' "   ")
  case $code in
    0) ;;
    77) result=skipped ;;
    *) result=FAILED; { echo "--- $title: exit $code"; tail -n 30 "$scratch/detail" "$scratch/errors"; } >&2 ;;
  esac
  printf '%s\t%s\t%s\t%s\n' "$title" "$result" $((SECONDS - start)) "$detail" >>"$table"
  say "$(printf '%-34s %s' "$title" "$result${detail:+: $detail}")"
}

# --- networks in which nothing divides anything
# residual and global differ in whose batch batch norm is of; branched has the layers that these have not.
layers() {
  local c=$2
  printf 'name = "custom"\nlayers = [\n  { kind = "conv", name = "stem", channels = %s, kernel = 3, norm = true, activation = "relu" },\n' "$c"
  case $1 in
    branched)
      printf '  { kind = "lrn", name = "lrn", radius = 2 },\n  { kind = "conv", name = "one", channels = %s, kernel = 1, activation = "sigmoid" },\n' $((c + 1))
      printf '  { kind = "pool", name = "mean", from = ["lrn"], mode = "average", kernel = 3, stride = 1, padding = "same" },\n'
      printf '  { kind = "conv", name = "wide", from = ["lrn"], channels = %s, kernel = 5, groups = %s },\n' $((2 * c)) "$c"
      printf '  { kind = "concat", from = ["one", "mean", "wide"] },\n  { kind = "pool", kernel = 3, stride = 2 },\n  { kind = "dropout", rate = 0.25 },\n'
      printf '  { kind = "flatten" },\n  { kind = "dense", units = 13, norm = true, activation = "relu" },\n' ;;
    *)
      printf '  { kind = "residual", channels = %s },\n  { kind = "residual", channels = %s, stride = 2 },\n' "$c" $((c + 3))
      printf '  { kind = "residual", block = "bottleneck", channels = %s },\n  { kind = "global_pool" },\n' $((2 * c)) ;;
  esac
  printf '  { kind = "dense", units = 7 },\n]\n'
}
network() {
  echo '[data]'
  printf 'format = "synthetic"\nclasses = 7\ntest_samples = 0\n'
  case $1${emulation:+-small} in
    mlp) printf 'samples = 6007\nshape = [28, 28, 1]\n[model]\nhidden = [301, 77]\n[batch]\nsize = 252\n' ;;
    lenet) printf 'samples = 6007\nshape = [28, 28, 1]\n[model]\nname = "lenet"\nchannels = [20, 50]\ndropout = 0.4\n[batch]\nsize = 252\n' ;;
    mlp-small) printf 'samples = 203\nshape = [5, 5, 1]\n[model]\nhidden = [9]\n[batch]\nsize = 24\n' ;;
    lenet-small) printf 'samples = 80\nshape = [12, 12, 1]\n[model]\nname = "lenet"\nchannels = [2, 3]\ndropout = 0.4\n[batch]\nsize = 24\n' ;;
    *-small) printf 'samples = 50\nshape = [6, 6, 3]\n[model]\n%s\n[batch]\nsize = 18\nshards = 5\n' "$(layers "$1" 4)" ;;
    *) printf 'samples = 3001\nshape = [31, 33, 3]\n[model]\n%s\n[batch]\nsize = 125\n' "$(layers "$1" 20)" ;;
  esac
  case $1 in global | branched) printf '[batch_norm]\nscope = "global"\nunbiased = true\n' ;; esac
  printf '[train]\nsteps = %s\n[optimizer]\nname = "momentum"\nlr = 0.02\n[log]\nevery = 1\n' "$steps"
}
networks="mlp lenet residual global branched"
for each in $networks; do network $each >"$scratch/$each.toml"; done

# trained RANKS CONFIG KEY=VALUE|--OPTION...: prints the sha256 of the weights; with 1 rank without mpirun. The run stays in $place/run.
trained() {
  local ranks=$1 config=$2 command=("$lockstep") setting
  shift 2
  [ "$ranks" = 1 ] || command=(timeout 120 mpirun -q -np "$ranks" "$lockstep")
  command+=(train -v -c "$config" --out "$place/run")
  for setting; do
    case $setting in --*) command+=("$setting") ;; *) command+=(--set "$setting") ;; esac
  done
  rm -rf "$place/run"
  "${command[@]}" >"$place/log" 2>&1 </dev/null || { tail -n 5 "$place/log" >&2; return 1; }
  sha256sum <"$place/run/model.safetensors" | cut -d ' ' -f 1
}
gpu="device.backend=cuda"
# equal EXPECTED RANKS CONFIG KEY=VALUE...
equal() {
  local expected=$1 sum
  shift
  sum=$(trained "$@") || { echo "failed: $*"; return 1; }
  [ "$sum" = "$expected" ] || { echo "${sum:0:12} is not ${expected:0:12}: $*"; return 1; }
}
# alike EXPECTED CONFIG SETTINGS VARIANT...: a variant is a word list, ranks first; several run at a time, each in a folder of its own.
alike() {
  local expected=$1 config=$2 settings=$3 variant running=() code=0
  shift 3
  for variant; do
    (
      place=$(mktemp -d "$scratch/alike.XXXXXX")
      equal "$expected" ${variant%% *} "$config" $gpu $settings ${variant#"${variant%% *}"} || exit 1
      rm -rf "$place"
    ) &
    running+=($!)
    [ ${#running[@]} -lt $at_once ] || { wait "${running[0]}" || code=1; running=("${running[@]:1}"); }
  done
  for variant in "${running[@]}"; do wait "$variant" || code=1; done
  return $code
}
remember() { printf '%s\t%s\n' "$1" "$2" >>"$hashes"; }
# sum_of TITLE: the first run's, which all others must repeat.
sum_of() { awk -F '\t' -v title="$1" '$1 == title { print $2; exit }' "$hashes"; }
# metric NAME: of all lines of the last run's steps.
metric() { sed -n "/\"event\":\"step\"/s/.*\"$1\":\([^,}]*\).*/\1/p" "$place/run/metrics.jsonl"; }

# A test that finds no usable GPU is skipped; here that is a failure.
tests() {
  ctest --test-dir "$root/build/gpu" -L '^gpu$' -j 4 --no-tests=error --output-on-failure | tee "$scratch/tests" >&2 || return 1
  ! grep -F '***Skipped' "$scratch/tests" || return 1
  sed -n '/% tests passed/p' "$scratch/tests"
}
# sanitized TOOL TEST [CASES]
sanitized() {
  local code=0
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer"; return 77; }
  timeout 45 compute-sanitizer --tool "$1" --error-exitcode 9 "$root/build/gpu/test/cuda/gpu_$2" "${@:3}" >&2 || code=$?
  [ $code != 124 ] || { echo "not done within 45 s"; return 77; }
  return $code
}
# The runs whose hashes stand in the repository: any device of defined arithmetic gives them.
golden() {
  local file count=0
  for file in "$root"/test/e2e/golden/*.toml; do
    alike "$(sed -n "s/.*\"$(basename "$file" .toml)\": *\"\([0-9a-f]*\)\".*/\1/p" "$root/test/e2e/golden.json")" "$file" "" "1" || return 1
    count=$((count + 1))
  done
  echo "$count runs"
}
as_the_cpu() {
  local sum
  sum=$(trained 1 "$scratch/$1.toml" device.backend=cpu) || return 1
  equal "$sum" 1 "$scratch/$1.toml" $gpu || return 1
  remember "defined $1" "$sum"
  echo "${sum:0:12}"
}
repeats() {
  local sum
  sum=$(trained 1 "$scratch/$2.toml" $gpu $(settings "$1")) || return 1
  remember "$1 $2" "$sum"
  sed -n 's/.*"arithmetic": *"\([^"]*\)".*/\1/p' "$place/run/run.json" | head -n 1 >"$scratch/fingerprint $1"
  awk '/^convolution / && !seen[$0]++' "$place/log" >"$scratch/lists/cuDNN's choices, $1 $2"
  equal "$sum" 1 "$scratch/$2.toml" $gpu $(settings "$1") || return 1
  echo "${sum:0:12}"
}
settings() {
  case $1 in
    defined) ;;
    graphs) echo "device.graphs=true" ;;
    vendor) echo "device.arithmetic=vendor" ;;
    *) echo "device.arithmetic=vendor device.precision=$1" ;;
  esac
}
streams() {
  # Statistics of the global batch need it in memory at once.
  local micro="1 device.streams=2 batch.micro=1"
  ! grep -q '^scope = "global"' "$scratch/$2.toml" || micro="1 device.streams=3"
  alike "$(sum_of "$1 $2")" "$scratch/$2.toml" "$(settings "$1")" "1 device.streams=1" "1 device.streams=2" "1 device.streams=4" "1 device.streams=8" \
    "1 device.graphs=true" "$micro"
}
# Beside a second process that keeps the GPU busy, so that kernels of both alternate.
beside_another() {
  local other code=0
  "$lockstep" train -q -c "$scratch/lenet.toml" --out "$scratch/other" --set $gpu --set train.steps=$((steps * 20)) >&2 </dev/null &
  other=$!
  equal "$(sum_of "$1 lenet")" 1 "$scratch/lenet.toml" $gpu $(settings "$1") || code=1
  kill $other 2>/dev/null || echo "the other process had ended already"
  wait $other || true
  rm -rf "$scratch/other"
  return $code
}
staged() {
  local n
  for n in $world_sizes; do equal "$(sum_of "$1 $2")" "$n" "$scratch/$2.toml" $gpu $(settings "$1") device.transport=staged reduce.bucket_kib=64 || return 1; done
}
worlds_of_gpus() { local n; for n in 2 4 8; do [ $n -gt "$gpus" ] || echo $n; done; }
over_nccl() {
  local n
  [ "$gpus" -ge 2 ] || { echo "one GPU"; return 77; }
  for n in $(worlds_of_gpus); do equal "$(sum_of "$1 $2")" "$n" "$scratch/$2.toml" $gpu $(settings "$1") device.transport=nccl reduce.bucket_kib=64 || return 1; done
}
# The same bits on any number of streams and ranks, and others than fp32's.
narrow() {
  repeats "$1" "$2" >/dev/null || return 1
  alike "$(sum_of "$1 $2")" "$scratch/$2.toml" "$(settings "$1")" "1 device.streams=1" "1 device.graphs=true" "2 device.transport=staged" || return 1
  [ "$(sum_of "$1 $2")" != "$(sum_of "vendor $2")" ] || { echo "the bits of fp32"; return 1; }
  sum_of "$1 $2" | cut -c 1-12
}
# fp16's loss scale: sums of gradients of samples of such values are too large for it, so that steps are skipped until it has fallen. All of it is part of the
# promise, and of a checkpoint.
loss_scale() {
  local config=$scratch/$1.toml sum skipped half=$((steps / 2)) settings
  settings="$(settings fp16) reduce.op=sum optimizer.lr=0.00001 data.std=[0.2]"
  sum=$(trained 1 "$config" $gpu $settings checkpoint.every_steps=$half checkpoint.keep=9) || return 1
  skipped=$(metric skipped | grep -c true || true)
  echo "$skipped steps skipped, scale $(metric loss_scale | head -n 1) to $(metric loss_scale | tail -n 1)" >"$scratch/scale"
  rm -rf "$scratch/begun" && mv "$place/run" "$scratch/begun"
  alike "$sum" "$config" "$settings" "1 device.streams=1" "2 device.transport=staged" \
    "1 --resume=$(echo "$scratch/begun/checkpoints"/step-*"$half" | cut -d ' ' -f 1)" || return 1
  cat "$scratch/scale"
  [ "$skipped" -gt 0 ] && [ "$skipped" -lt "$steps" ]
}
# goes_on NETWORK BEGUN-ON ENDED-ON
goes_on() {
  local half=$((steps / 2))
  trained 1 "$scratch/$1.toml" "device.backend=$2" checkpoint.every_steps=$half checkpoint.keep=9 >&2 || return 1
  rm -rf "$scratch/begun" && mv "$place/run" "$scratch/begun"
  equal "$(sum_of "defined $1")" 1 "$scratch/$1.toml" "device.backend=$3" "--resume=$(echo "$scratch/begun/checkpoints"/step-*"$half" | cut -d ' ' -f 1)"
}
# A CPU rank among GPU ranks.
mixed() {
  local program=("$lockstep" train -q -c "$scratch/$1.toml" --out "$place/run" --set reduce.bucket_kib=16) sum
  rm -rf "$place/run"
  timeout 120 mpirun -q -np 1 env LOCKSTEP_DEVICE_BACKEND=cpu "${program[@]}" : -np 2 env LOCKSTEP_DEVICE_BACKEND=cuda "${program[@]}" >&2 || return 1
  sum=$(sha256sum <"$place/run/model.safetensors" | cut -d ' ' -f 1)
  [ "$sum" = "$(sum_of "defined $1")" ] || { echo "${sum:0:12} is not $(sum_of "defined $1" | cut -c 1-12)"; return 1; }
}
verified() {
  local code=0
  timeout 120 mpirun -q -np 2 "$lockstep" verify -c "$scratch/$1.toml" --steps 3 --set $gpu | tee "$scratch/verified" >&2 || return 1
  timeout 120 mpirun -q -np 2 "$lockstep" verify -c "$scratch/$1.toml" --steps 3 --set $gpu --fault rank:1,step:2,bit:5 >&2 || code=$?
  [ $code = 4 ] || { echo "a planted bit gives exit $code"; return 1; }
  grep 'equal: ' "$scratch/verified"
}
# NCCL's own order of additions is not the promise's; the losses must be close to those of the canonical sums.
native() {
  local loss n
  [ "$gpus" -ge 2 ] || { echo "one GPU"; return 77; }
  trained 1 "$scratch/mlp.toml" $gpu >&2 || return 1
  loss=$(metric loss | tail -n 1)
  for n in $(worlds_of_gpus); do
    trained "$n" "$scratch/mlp.toml" $gpu reduce.algorithm=native >&2 || return 1
    awk -v a="$loss" -v b="$(metric loss | tail -n 1)" -v n="$n" 'BEGIN { d = (a - b) / a; if (d < 0) d = -d; printf "%s ranks: loss %s, canonical %s\n", n, b, a; exit !(d < 1e-3) }' || return 1
  done
}
# A rank that dies must end the job within its deadline, with or without NCCL.
killed() {
  local job rank waited=0
  mpirun -q -np 2 "$lockstep" train -q -c "$scratch/mlp.toml" --out "$scratch/killed" --set $gpu --set train.steps=10000000 \
    --set device.transport="$1" --set device.timeout_s=10 >&2 </dev/null &
  job=$!
  until [ -s "$scratch/killed/metrics.jsonl" ]; do
    sleep 0.1
    waited=$((waited + 1))
    [ $waited -lt 600 ] || { kill $job; return 1; }
  done
  rank=$(pgrep -n -P $job)
  kill -KILL "$rank"
  waited=0
  while kill -0 $job 2>/dev/null; do
    sleep 0.1
    waited=$((waited + 1))
    [ $waited -lt 300 ] || { kill $job; echo "still there after 30 s"; return 1; }
  done
  ! wait $job || { echo "exit 0"; return 1; }
  rm -rf "$scratch/killed"
  echo "ended after $((waited / 10)) s"
}

as_before() {
  [ -n "$older" ] || { echo "no --compare"; return 77; }
  local title sum expected compared=0
  [ "$(sed -n 's/^ *"fingerprint": *"\(.*\)",*$/\1/p' "$older")" = "$(cat "$scratch/fingerprint vendor")" ] || { echo "made by another GPU or other versions"; return 77; }
  while IFS=$'\t' read -r title sum; do
    expected=$(sed -n "s/^ *\"$title\": *\"\([0-9a-f]*\)\".*/\1/p" "$older" | head -n 1)
    [ -n "$expected" ] || continue
    compared=$((compared + 1))
    [ "$sum" = "$expected" ] || { echo "$title: ${sum:0:12} now, ${expected:0:12} then"; return 1; }
  done <"$hashes"
  echo "$compared hashes"
}

# --- in order of worth
if [ -z "$emulation" ]; then
  check "tests" tests
  check "memory (all layers)" sanitized memcheck models "models: a network of every kind of layer has the CPU's bytes, normalised by shard"
  check "races (gemm)" sanitized racecheck gemm
fi
check "golden hashes" golden
for each in $networks; do check "$each as on the CPU" as_the_cpu $each; done
for kind in defined vendor; do
  for each in $networks; do
    check "$kind $each twice" repeats $kind $each
    check "$kind $each, streams, graph, micro" streams $kind $each
    check "$kind $each, $world_sizes ranks, staged" staged $kind $each
    check "$kind $each, NCCL" over_nccl $kind $each
  done
  check "$kind beside another process" beside_another $kind
done
check "CPU and GPU ranks" mixed global
check "begun on the CPU" goes_on global cpu cuda
check "begun on the GPU" goes_on global cuda cpu
check "verify, and a planted bit" verified global
for kind in tf32 bf16 fp16; do
  for each in lenet global; do check "$kind $each, streams and ranks" narrow $kind $each; done
done
check "fp16's loss scale" loss_scale lenet
check "native sums" native
check "a rank killed, staged" killed staged
[ "$gpus" -lt 2 ] || check "a rank killed, NCCL" killed nccl

[ -n "$emulation" ] && rows=(2 2 2) repetitions=0 rounds=1 megabytes=1 || rows=(16 16 32) repetitions=5 rounds=20 megabytes=256
for kind in fp32 bf16; do
  check "cuDNN for lenet, $kind" figure "cuDNN's choices and times, lenet $kind" convolutions lenet ${rows[0]} $kind $repetitions
  check "cuDNN for resnet20, $kind" figure "cuDNN's choices and times, resnet20 $kind" convolutions resnet20 ${rows[1]} $kind $repetitions
  check "cuDNN for resnet50, $kind" figure "cuDNN's choices and times, resnet50 $kind" convolutions resnet50 ${rows[2]} $kind $repetitions
  check "cuBLAS's workspaces, $kind" figure "cuBLAS's workspaces, $kind" products $kind $rounds
done
check "launches and memory" figure "launches and memory" machine $megabytes
for each in mlp lenet; do
  for kind in defined graphs vendor tf32 bf16 fp16; do check "speed $each $kind" speed $kind $each; done
  check "launches in $each" launch_share $each
  check "-fmad=true in $each" fused $each
  check "sums of $each, staged" reduction staged $each
  check "sums of $each, NCCL" reduction nccl $each
  for kind in fp32 tf32 bf16; do check "speed $each PyTorch $kind" torch_speed $kind $each; done
done
if [ -z "$emulation" ]; then
  for kind in vendor tf32 bf16 defined; do check "speed resnet50 $kind" speed $kind resnet50 batch.size=64; done
  for kind in fp32 tf32 bf16; do check "speed resnet50 PyTorch $kind" torch_speed $kind resnet50 64 20; done
fi
check "hashes of an older visit" as_before

# --- the table and the file
fingerprint=$(cat "$scratch/fingerprint vendor" 2>/dev/null || true)
failures=$(awk -F '\t' '$2 == "FAILED"' "$table" | wc -l)
skipped=$(awk -F '\t' '$2 == "skipped"' "$table" | wc -l)
mkdir -p "$(dirname "$json")"
{
  printf '{\n  "device": "%s",\n  "gpus": %s,\n  "driver": "%s",\n  "fingerprint": "%s",\n' "$device" "$gpus" "$driver" "$fingerprint"
  printf '  "commit": "%s",\n  "seconds": %s,\n  "failures": %s,\n' "$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)" $SECONDS "$failures"
  printf '  "checks": [\n'
  awk -F '\t' '{ printf "%s    {\"name\": \"%s\", \"result\": \"%s\", \"seconds\": %s, \"detail\": \"%s\"}", (NR > 1 ? ",\n" : ""), $1, $2, $3, $4 }' "$table"
  printf '\n  ],\n  "hashes": {\n'
  awk -F '\t' '!seen[$1]++ { printf "%s    \"%s\": \"%s\"", (n++ ? ",\n" : ""), $1, $2 }' "$hashes"
  printf '\n  },\n  "lists": {\n'
  find "$scratch/lists" -type f -size +0 | sort | while read -r list; do
    printf '%s    "%s": [\n' "${comma-}" "$(basename "$list")"
    awk '{ gsub(/[\\"\t]/, " "); printf "%s      \"%s\"", (NR > 1 ? ",\n" : ""), $0 }' "$list"
    printf '\n    ]'
    comma=$',\n'
  done
  printf '\n  }\n}\n'
} >"$json"

printf 'device: %s\nlibraries: %s\n\n| check | result | seconds | |\n|---|---|---|---|\n' "$gpus x $device, driver $driver" "${fingerprint:-unknown}"
awk -F '\t' '{ printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4 }' "$table"
find "$scratch/lists" -type f -size +0 | sort | while read -r list; do
  printf '\n%s:\n' "$(basename "$list")"
  sed 's/^/    /' "$list"
done
echo
echo "$(wc -l <"$table") checks in $SECONDS s, $skipped skipped, $failures failed; $json"
[ "$failures" = 0 ]
