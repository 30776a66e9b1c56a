#!/usr/bin/env bash
# what : builds the backend's tests with clang and runs them: another compiler gives the same bytes
# usage: clang.sh
# needs: clang++ (exit 77, skipped, without it), and what the project needs
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if ! command -v clang++ >/dev/null; then
    echo "skipped: clang++ is not installed" >&2
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake -S "$root" -B "$work" -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_UNITY=ON -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ >"$work/log" ||
    { cat "$work/log" >&2; exit 1; }
mapfile -t tests < <(ctest --test-dir "$work" -N -R '^backend_' -LE long | sed -n 's/.*: \(backend_[a-z_0-9]*\)$/\1/p')
[[ ${#tests[@]} -gt 0 ]] || { echo "no backend test found" >&2; exit 1; }
cmake --build "$work" --parallel "$(nproc)" --target "${tests[@]}"
ctest --test-dir "$work" -R '^backend_' -LE long --output-on-failure
