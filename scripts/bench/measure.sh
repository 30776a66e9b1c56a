# what : measured runs for the benchmark scripts: runs a command, records its samples/s and how much others used the cores; tables of medians
# usage: . "$(dirname "$(readlink -f "$0")")/measure.sh"      (after scripts/common.sh)
# needs: Linux (/proc/stat), awk, sort
# shellcheck shell=bash disable=SC2154

# Cores' busy time since boot in clock ticks (all but idle and waiting for disks).
busy_ticks() { awk '/^cpu / { s = 0; for (i = 2; i <= 9; i++) s += $i; print s - $5 - $6; exit }' /proc/stat; }

# measure LABEL EXTRACT COMMAND...: appends "LABEL value others load" to $results. EXTRACT, a function, prints the figure found in
# the file of the command's output. others: per cent of all cores that processes outside the run used meanwhile.
measure() {
  local label=$1 extract=$2 output=$scratch/output before after value load
  shift 2
  load=$(cut -d ' ' -f 1 /proc/loadavg)
  before=$(busy_ticks)
  local TIMEFORMAT='%R %U %S'
  { time "$@" </dev/null >"$output" 2>"$scratch/errors"; } 2>"$scratch/time" || { tail -n 5 "$scratch/errors" >&2; say "    $label failed and is left out of this round: $*"; return 0; }
  after=$(busy_ticks)
  value=$("$extract" "$output")
  [ -n "$value" ] || die "no figure in the output of: $*"
  awk -v label="$label" -v value="$value" -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" -v cores="$(nproc --all)" -v load="$load" '
    { others = 100 * (ticks / hz - $2 - $3) / ($1 * cores); if (others < 0) others = 0
      printf "%s\t%s\t%.0f\t%s\n", label, value, others, load }' "$scratch/time" >>"$results"
  say "    $(tail -n 1 "$results" | awk -F '\t' '{ print $1 ": " $2 " (others " $3 " %)" }')"
}

# summary LABEL: of its runs prints "median min max count worst-others".
summary() {
  awk -F '\t' -v label="$1" '$1 == label { print $2 "\t" $3 }' "$results" | sort -g | awk -F '\t' '
    { v[NR] = $1; if ($2 > o) o = $2 }
    END { if (NR) print (NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2), v[1], v[NR], NR, o + 0 }'
}

# cell LABEL: "median (min..max)" in whole numbers, or "-" where there is no run.
cell() { summary "$1" | awk '{ printf "%.*f (%.*f..%.*f)", d($1), $1, d($1), $2, d($1), $3; n = 1 } END { if (!n) printf "-" } function d(x) { return x < 10 ? 3 : 0 }'; }
# ratio LABEL LABEL: of the medians, or "-".
ratio() { { summary "$1"; summary "$2"; } | awk '{ v[NR] = $1 } END { if (NR == 2) printf "%.2f", v[1] / v[2]; else printf "-" }'; }

machine() {
  echo "- machine: $(lscpu | sed -n 's/^Model name: *//p' | head -n 1), $(nproc --all) cores, $(awk '/^MemTotal:/ { printf "%.0f GB", $2 / 1e6 }' /proc/meminfo)"
  echo "- kernel $(uname -r), $(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' /etc/os-release), $(date -u +%Y-%m-%d), commit $(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)"
  awk -F '\t' '{ if (NR == 1 || $4 < lo) lo = $4; if ($4 > hi) hi = $4; if ($3 > o) o = $3 }
    END { printf "- load average at the start of a run: %s..%s; processes outside a run used up to %s %% of the cores\n", lo, hi, o }' "$results"
}

# Of both sides the figure is that of the median step after warm-up. Lockstep's is found in the lines of a run that logs every step: their first
# tenth, and at least three of them, are warm-up, as peers are told. Logging is part of its steps.
lockstep_figure() {
  sed -n '/"event":"step"/s/.*"samples_per_s":\([0-9.eE+-]*\).*/\1/p' "$scratch/run/metrics.jsonl" |
    awk '{ v[NR] = $1 } END { w = int(NR / 10); if (w < 3) w = 3; for (i = w + 1; i <= NR; ++i) print v[i] }' | sort -g |
    awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
# Peers print one JSON line.
peer_figure() { sed -n 's/.*"samples_per_s": *\([0-9.eE+-]*\).*/\1/p' "$1" | tail -n 1; }

bench_begin() {
  lockstep=${LOCKSTEP:-$root/build/release/apps/lockstep/lockstep}
  [ -x "$lockstep" ] || die "no $lockstep: build preset release first (scripts/test.sh does), or name the executable in LOCKSTEP"
  # Open MPI's own choices, which suit ranks that have their cores to themselves.
  export OMPI_MCA_btl_vader_single_copy_mechanism=${OMPI_MCA_btl_vader_single_copy_mechanism:-cma}
  export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle:-0}
  mpi_environment
  scratch=$(mktemp -d)
  results=${RESULTS:-$scratch/results.tsv}
  trap 'rm -rf "$scratch"' EXIT
}

# train_with NP MODEL [K=V...]: trains configs/bench_MODEL.toml with NP ranks of one thread each.
train_with() {
  local np=$1 model=$2 command=() setting
  shift 2
  rm -rf "$scratch/run"
  # One rank is held on one core, as its single-process peer is.
  if [ "$np" = 1 ]; then command=(taskset -c 0); else command=(mpirun --bind-to none -np "$np"); fi
  command+=("$lockstep" train -q -c "$root/configs/bench_$model.toml" --out "$scratch/run" --set device.threads=1 --set log.every=1)
  for setting; do command+=(--set "$setting"); done
  "${command[@]}"
}
