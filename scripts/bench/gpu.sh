# what : measurements for scripts/gpu_check.sh: what a GPU and NVIDIA's libraries do, and how fast steps and sums of gradients are
# usage: . scripts/bench/gpu.sh      (by gpu_check.sh, whose variables these functions use: lockstep, figures, scratch, speeds, emulation, gpu, gpus)
# needs: awk, sed, mpirun
# shellcheck shell=bash disable=SC2046,SC2086,SC2154

# figure NAME ARGUMENTS...: a program that prints a list.
figure() {
  "$figures" "${@:2}" >"$scratch/lists/$1" || { cat "$scratch/lists/$1"; return 1; }
  tail -n 1 "$scratch/lists/$1"
}
# number KEY: of the JSON on stdin, where it is there once.
number() { sed -n "s/.*\"$1\":\([0-9.eE+-]*\).*/\1/p"; }
# speed_of TITLE RANKS CONFIG KEY=VALUE...: a step's time and its parts.
speed_of() {
  local title=$1 ranks=$2 config=$3 command=("$lockstep") setting file=$scratch/speed.json seconds=2
  shift 3
  [ -z "$emulation" ] || seconds=0.1
  [ "$ranks" = 1 ] || command=(timeout 60 mpirun -q -np "$ranks" "$lockstep")
  command+=(bench step -c "$config" --seconds "$seconds" --json --set "$gpu")
  for setting; do command+=(--set "$setting"); done
  "${command[@]}" >"$file" || return 1
  printf '%s\t%s\n' "$title" "$(number samples_per_s <"$file")" >>"$speeds"
  echo "$(number samples_per_s <"$file") samples per s, a step $(number median <"$file") ms:" \
    "$(sed 's/.*"shares":{\([^}]*\)}.*/\1/; s/"//g; s/\(\.[0-9][0-9]\)[0-9]*/\1/g' "$file")"
}
bench_config() { [ -z "$emulation" ] && echo "$root/configs/bench_$1.toml" || echo "$scratch/$1.toml"; }
speed() { speed_of "$1 $2" 1 "$(bench_config "$2")" $(settings "$1") ${3-}; }
# What launching costs a step: one graph has one launch.
launch_share() {
  awk -F '\t' -v a="defined $1" -v b="graphs $1" '$1 == a { x = $2 } $1 == b { y = $2 } END { if (!x || !y) exit 1; printf "%.0f %% of a step\n", 100 * (1 - x / y) }' "$speeds"
}
# What it costs that products and sums are not fused unless the source says so.
fused() {
  [ -z "$emulation" ] || { echo "no kernels by nvcc"; return 77; }
  LOCKSTEP_DEBUG_CUDA_PLUGIN=$root/build/gpu/test/cuda/fused/liblockstep_cuda_fused.so speed_of "fused $1" 1 "$(bench_config "$1")" >&2 || return 1
  awk -F '\t' -v a="defined $1" -v b="fused $1" '$1 == a { x = $2 } $1 == b { y = $2 } END { if (!x || !y) exit 1; printf "%s samples per s with it, %s as shipped: %.3f\n", y, x, y / x }' "$speeds"
}
# reduction TRANSPORT MODEL: of the model's gradient, alone; and what of it is left of a step, whose backward goes on meanwhile.
reduction() {
  local file=$scratch/reduce.json ranks=2 left
  [ "$1" = staged ] || [ "$gpus" -ge 2 ] || { echo "one GPU"; return 77; }
  timeout 60 mpirun -q -np $ranks "$lockstep" bench reduce -c "$(bench_config "$2")" --seconds 0.5 --json --set $gpu --set device.transport="$1" >"$file" || return 1
  speed_of "$1 $2, $ranks ranks" $ranks "$(bench_config "$2")" device.transport="$1" >&2 || return 1
  sed 's/.*"algorithm":"canonical"//; s/"algorithm":"native".*//' "$file" >"$file.canonical"
  left=$(awk -v ms="$(number median <"$scratch/speed.json")" -v share="$(number reduce <"$scratch/speed.json")" 'BEGIN { print ms * share }')
  echo "$(number gb_per_s <"$file.canonical") GB/s, $(number median <"$file.canonical") ms (native $(sed 's/.*"algorithm":"native"//' "$file" | number median) ms);" \
    "of a step $left ms are left of it"
}
torch_speed() {
  [ -n "${PYTORCH:-}" ] || { echo "no PyTorch: name a python that has it in PYTORCH"; return 77; }
  "$PYTORCH" "$root/scripts/bench/torch_ddp.py" --device cuda --precision "$1" --model "$2" --batch "${3:-128}" --steps "${4:-400}" |
    sed -n 's/.*"samples_per_s": *\([0-9.eE+-]*\).*/\1 samples per s/p'
}
