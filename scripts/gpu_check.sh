#!/usr/bin/env bash
# what : checks Lockstep on the GPUs of this machine: the tests, bits against the CPU's, streams, ranks, NCCL, cuDNN's choices, speed; a table and a JSON file
# usage: gpu_check.sh [--json FILE] [--compare OLDER.json] [--emulation EXECUTABLE LIBRARY]      (exit 0: all well; 1: a check failed; 77: no GPU here)
# needs: a GPU of compute capability 8.0, its driver, a CUDA toolkit (setup.sh --tests --cuda); under 8 minutes with its build in build/gpu; PYTORCH=python compares speed
# shellcheck disable=SC2046,SC2086,SC2154,SC2015,SC1003
# (settings and lists are words, to be split)
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/common.sh"
json=$root/build/gpu/gpu_check.json
older="" emulation=""
while [ $# -gt 0 ]; do
  case $1 in
    --json) json=$(realpath -m -- "${2:?}"); shift ;;
    --compare) older=$(realpath -- "${2:?}"); shift ;;
    --emulation) lockstep=$(realpath -- "${2:?}") emulation=$(realpath -- "${3:?}"); shift 2 ;;
    *) usage ;;
  esac
  shift
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset "${!LOCKSTEP_@}"

# --- the machine, and the build for its own GPUs
if [ -n "$emulation" ]; then
  # The script itself on trial, where no GPU is: the same steps on emulated devices, with smaller networks.
  export LOCKSTEP_DEBUG_CUDA_PLUGIN=$emulation
  gpus=4 steps=6 world_sizes="2 3"
  device="emulated device" driver=none
else
  { [ -e /dev/nvidiactl ] && command -v nvidia-smi >/dev/null; } || { say "no GPU here (no /dev/nvidiactl, or no nvidia-smi): nothing is checked"; exit 77; }
  gpus=$(nvidia-smi -L | grep -c '^GPU') || die "nvidia-smi lists no GPU: $(nvidia-smi -L 2>&1 | head -n 1)"
  device=$(nvidia-smi --query-gpu=name,compute_cap,memory.total --format=csv,noheader -i 0)
  driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader -i 0)
  steps=100 world_sizes="2 4"
  say "$gpus x $device, driver $driver"
  say "build for this GPU, in build/gpu"
  configure build/gpu -DBUILD_TESTING=ON -DLOCKSTEP_CUDA=ON -DLOCKSTEP_GPU_TESTS=ON -DLOCKSTEP_CUDA_ARCHITECTURES=native
  sed -n '/^-- Lockstep/,/^-- $/s/^--   //p' "$root/build/gpu/configure.log" >&2
  cmake --build "$root/build/gpu" -j "$(build_jobs)" --target lockstep lockstep_cuda lockstep_gpu_tests >&2 || die "the build failed"
  lockstep=$root/build/gpu/apps/lockstep/lockstep
  say "built after $SECONDS s"
fi
mpi_environment

# --- the record: a line of the table for each check, "name<TAB>result<TAB>seconds<TAB>detail"
table=$scratch/table.tsv hashes=$scratch/hashes.tsv
: >"$table"
: >"$hashes"
# check NAME COMMAND...: ok where the command succeeds; what it wrote last on stdout is the detail. Exit 77: skipped.
check() {
  local title=$1 start=$SECONDS result=ok code=0 detail
  shift
  "$@" >"$scratch/detail" 2>"$scratch/errors" </dev/null || code=$?
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
network() {
  echo '[data]'
  printf 'format = "synthetic"\nclasses = 7\ntest_samples = 0\n'
  case $1${emulation:+-small} in
    mlp) printf 'samples = 6007\nshape = [28, 28, 1]\n[model]\nhidden = [301, 77]\n[batch]\nsize = 252\n' ;;
    lenet) printf 'samples = 6007\nshape = [28, 28, 1]\n[model]\nname = "lenet"\nchannels = [20, 50]\ndropout = 0.4\n[batch]\nsize = 252\n' ;;
    mlp-small) printf 'samples = 203\nshape = [5, 5, 1]\n[model]\nhidden = [9]\n[batch]\nsize = 24\n' ;;
    lenet-small) printf 'samples = 80\nshape = [12, 12, 1]\n[model]\nname = "lenet"\nchannels = [2, 3]\ndropout = 0.4\n[batch]\nsize = 24\n' ;;
  esac
  printf '[train]\nsteps = %s\n[optimizer]\nname = "momentum"\nlr = 0.02\n' "$steps"
}
networks="mlp lenet"
for each in $networks; do network $each >"$scratch/$each.toml"; done

# trained RANKS CONFIG KEY=VALUE...: prints the sha256 of the weights; with 1 rank without mpirun.
trained() {
  local ranks=$1 config=$2 command=("$lockstep") setting
  shift 2
  [ "$ranks" = 1 ] || command=(timeout 120 mpirun -q -np "$ranks" "$lockstep")
  command+=(train -v -c "$config" --out "$scratch/run")
  for setting; do command+=(--set "$setting"); done
  rm -rf "$scratch/run"
  "${command[@]}" >"$scratch/log" 2>&1 </dev/null || { tail -n 5 "$scratch/log" >&2; return 1; }
  sha256sum <"$scratch/run/model.safetensors" | cut -d ' ' -f 1
}
gpu="device.backend=cuda"
# equal EXPECTED RANKS CONFIG KEY=VALUE...
equal() {
  local expected=$1 sum
  shift
  sum=$(trained "$@") || return 1
  [ "$sum" = "$expected" ] || { echo "${sum:0:12} is not ${expected:0:12}: $*"; return 1; }
}
remember() { printf '%s\t%s\n' "$1" "$2" >>"$hashes"; }

# A test that finds no usable GPU is skipped; here that is a failure.
tests() {
  ctest --test-dir "$root/build/gpu" -L '^gpu$' --no-tests=error --output-on-failure | tee "$scratch/tests" >&2 || return 1
  ! grep -F '***Skipped' "$scratch/tests" || return 1
  sed -n '/% tests passed/p' "$scratch/tests"
}
sanitized() {
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer"; return 77; }
  timeout 100 compute-sanitizer --tool "$1" --error-exitcode 9 "$root/build/gpu/test/cuda/gpu_$2" >&2
}
# The runs whose hashes stand in the repository: any device of defined arithmetic gives them.
golden() {
  local file
  for file in "$root"/test/e2e/golden/*.toml; do
    equal "$(sed -n "s/.*\"$(basename "$file" .toml)\": *\"\([0-9a-f]*\)\".*/\1/p" "$root/test/e2e/golden.json")" 1 "$file" $gpu || return 1
  done
}
as_the_cpu() {
  local sum
  sum=$(trained 1 "$scratch/$1.toml" device.backend=cpu) || return 1
  equal "$sum" 1 "$scratch/$1.toml" $gpu || return 1
  remember "defined $1" "$sum"
  echo "${sum:0:12}"
}
# sum_of TITLE: the first run's, which all others must repeat.
sum_of() { awk -F '\t' -v title="$1" '$1 == title { print $2; exit }' "$hashes"; }
repeats() {
  local sum
  sum=$(trained 1 "$scratch/$2.toml" $gpu $(settings "$1")) || return 1
  remember "$1 $2" "$sum"
  sed -n 's/.*"arithmetic": *"\([^"]*\)".*/\1/p' "$scratch/run/run.json" | head -n 1 >"$scratch/fingerprint $1"
  { grep '^convolution ' "$scratch/log" || true; } >"$scratch/algorithms $1"
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
  local n
  for n in 1 2 4 8; do equal "$(sum_of "$1 $2")" 1 "$scratch/$2.toml" $gpu $(settings "$1") device.streams=$n || return 1; done
}
as_graphs() { equal "$(sum_of "$1 $2")" 1 "$scratch/$2.toml" $gpu $(settings "$1") device.graphs=true; }
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
  for n in $world_sizes; do equal "$(sum_of "$1 $2")" "$n" "$scratch/$2.toml" $gpu $(settings "$1") device.transport=staged || return 1; done
}
worlds_of_gpus() { local n; for n in 2 4 8; do [ $n -gt "$gpus" ] || echo $n; done; }
over_nccl() {
  local n
  [ "$gpus" -ge 2 ] || { echo "one GPU"; return 77; }
  for n in $(worlds_of_gpus); do equal "$(sum_of "$1 $2")" "$n" "$scratch/$2.toml" $gpu $(settings "$1") device.transport=nccl || return 1; done
}
# NCCL's own order of additions is not the promise's; the losses must be close to those of the canonical sums.
native() {
  local loss n
  [ "$gpus" -ge 2 ] || { echo "one GPU"; return 77; }
  last_loss() { sed -n '/"event":"step"/s/.*"loss":\([0-9.eE+-]*\).*/\1/p' "$scratch/run/metrics.jsonl" | tail -n 1; }
  trained 1 "$scratch/mlp.toml" $gpu log.every=1 >&2 || return 1
  loss=$(last_loss)
  for n in $(worlds_of_gpus); do
    trained "$n" "$scratch/mlp.toml" $gpu reduce.algorithm=native log.every=1 >&2 || return 1
    awk -v a="$loss" -v b="$(last_loss)" -v n="$n" 'BEGIN { d = (a - b) / a; if (d < 0) d = -d; printf "%s ranks: loss %s, canonical %s\n", n, b, a; exit !(d < 1e-3) }' || return 1
  done
}
# A rank that dies must end the job within its deadline, with or without NCCL.
killed() {
  local job rank waited=0
  [ "$gpus" -ge 2 ] || { echo "one GPU"; return 77; }
  mpirun -q -np 2 "$lockstep" train -q -c "$scratch/mlp.toml" --out "$scratch/killed" --set $gpu --set train.steps=10000000 \
    --set device.timeout_s=10 >&2 </dev/null &
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
speed() {
  local config=$root/configs/bench_$2.toml
  trained 1 "$config" $gpu $(settings "$1") train.steps=400 >&2 || return 1
  sed -n '/"event":"end"/s/.*"samples_per_s":\([0-9.eE+-]*\).*/\1 samples per s/p' "$scratch/run/metrics.jsonl" | tail -n 1
}
torch_speed() {
  [ -n "${PYTORCH:-}" ] || { echo "no PyTorch: name a python that has it in PYTORCH"; return 77; }
  "$PYTORCH" "$root/scripts/bench/torch_ddp.py" --device cuda --precision "$1" --model "$2" --batch 128 --steps 400 |
    sed -n 's/.*"samples_per_s": *\([0-9.eE+-]*\).*/\1 samples per s/p'
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
kinds="defined vendor"
if [ -z "$emulation" ]; then
  check "tests" tests
  check "memory (gemm)" sanitized memcheck gemm
  check "races (gemm)" sanitized racecheck gemm
fi
check "golden hashes" golden
for each in $networks; do check "$each as on the CPU" as_the_cpu $each; done
for kind in $kinds; do
  for each in $networks; do
    check "$kind $each twice" repeats $kind $each
    check "$kind $each, 1 2 4 8 streams" streams $kind $each
    check "$kind $each, steps as graphs" as_graphs $kind $each
    check "$kind $each, $world_sizes ranks, staged" staged $kind $each
    check "$kind $each, NCCL" over_nccl $kind $each
  done
  check "$kind beside another process" beside_another $kind
done
for kind in tf32 bf16; do check "$kind lenet twice" repeats $kind lenet; done
check "native sums" native
check "a rank killed" killed
if [ -z "$emulation" ]; then
  for each in $networks; do
    for kind in defined graphs vendor tf32 bf16; do check "speed $each $kind" speed $kind $each; done
    for kind in fp32 tf32 bf16; do check "speed $each PyTorch $kind" torch_speed $kind $each; done
  done
fi
check "hashes of an older visit" as_before

# --- the table and the file
fingerprint=$(cat "$scratch/fingerprint vendor" 2>/dev/null || true)
failures=$(awk -F '\t' '$2 == "FAILED"' "$table" | wc -l)
mkdir -p "$(dirname "$json")"
{
  printf '{\n  "device": "%s",\n  "gpus": %s,\n  "driver": "%s",\n  "fingerprint": "%s",\n' "$device" "$gpus" "$driver" "$fingerprint"
  printf '  "commit": "%s",\n  "seconds": %s,\n  "failures": %s,\n' "$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)" $SECONDS "$failures"
  printf '  "checks": [\n'
  awk -F '\t' '{ printf "%s    {\"name\": \"%s\", \"result\": \"%s\", \"seconds\": %s, \"detail\": \"%s\"}", (NR > 1 ? ",\n" : ""), $1, $2, $3, $4 }' "$table"
  printf '\n  ],\n  "hashes": {\n'
  awk -F '\t' '!seen[$1]++ { printf "%s    \"%s\": \"%s\"", (n++ ? ",\n" : ""), $1, $2 }' "$hashes"
  printf '\n  }\n}\n'
} >"$json"

echo "device: $gpus x $device, driver $driver"
echo "libraries: ${fingerprint:-unknown}"
echo
echo "| check | result | seconds | |"
echo "|---|---|---|---|"
awk -F '\t' '{ printf "| %s | %s | %s | %s |\n", $1, $2, $3, $4 }' "$table"
for kind in vendor bf16; do
  [ -s "$scratch/algorithms $kind" ] || continue
  printf '\ncuDNN chose, for lenet in %s:\n' "$kind"
  sed 's/^/    /' "$scratch/algorithms $kind"
done
echo
echo "$(wc -l <"$table") checks in $SECONDS s, $failures failed; $json"
[ "$failures" = 0 ]
