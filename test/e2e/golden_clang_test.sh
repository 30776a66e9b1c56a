#!/usr/bin/env bash
# What: builds the executable with clang and asks it for the golden hashes: another compiler gives the same weights.
# Usage: golden_clang_test.sh
# Needs: clang++ (exit 77, skipped, without it), and what the project needs; builds in a temporary folder.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if ! command -v clang++ > /dev/null; then
    echo "skipped: clang++ is not installed" >&2
    exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

{ cmake -S "$here/../.." -B "$work" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DLOCKSTEP_UNITY=ON -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ &&
    cmake --build "$work" --target lockstep --parallel "$(nproc)"; } > "$work/log" 2>&1 || { tail -n 50 "$work/log" >&2; exit 1; }
bash "$here/golden_test.sh" "$work/apps/lockstep/lockstep"
