#!/usr/bin/env bash
# what : one run as a chain of N jobs, each going on where the one before stopped: for clusters that let nobody requeue
# usage: chain.sh N [OPTIONS OF sbatch] -- -c FILE --out DIR [ARGUMENTS OF lockstep train]
# needs: as train.sbatch; prints one job number a line. Jobs after the last step report the finished run and leave with 0
set -euo pipefail
usage() { sed -n '2,4s/^# //p' -- "$0" >&2; exit 2; }
[[ ${1:-} =~ ^[1-9][0-9]*$ ]] || usage
jobs=$1
shift
options=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
[ "${1:-}" = -- ] || usage
shift
case " $* " in *" --out "* | *" --out="*) ;; *) usage ;; esac # without a folder of their own the jobs would not share one
previous=
for ((i = 0; i < jobs; ++i)); do
  previous=$(sbatch --parsable --no-requeue --export=ALL,REQUEUE=0 ${previous:+--dependency=afterany:$previous} \
    "${options[@]}" "$(dirname "$(readlink -f "$0")")/train.sbatch" "$@")
  echo "$previous"
done
