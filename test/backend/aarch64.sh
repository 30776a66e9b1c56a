#!/usr/bin/env bash
# what : cross-compiles lib/core, lib/backend and the backend's tests for aarch64 and runs them under qemu: NEON gives the bytes too
# usage: aarch64.sh [CATCH2-ARGUMENTS...]
# needs: aarch64-linux-gnu-g++ and qemu-aarch64 (exit 77, skipped, without them); headers of fmt, Highway and Catch2
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
compiler=aarch64-linux-gnu-g++
for tool in "$compiler" qemu-aarch64; do
    if ! command -v "$tool" >/dev/null; then
        echo "skipped: $tool is not installed" >&2
        exit 77
    fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Only the headers that do not depend on the machine: /usr/include itself is the host's C library.
mkdir "$work/include"
for library in fmt hwy catch2; do ln -s "/usr/include/$library" "$work/include/$library"; done

export work root compiler
compile() {
    "$compiler" -std=c++20 -O2 -ffp-contract=off -Wall -Wextra -Werror -DFMT_HEADER_ONLY -DLOCKSTEP_VERSION='"0"' \
        '-DHWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)' \
        -I"$root/lib" -I"$root/test" -isystem "$work/include" -c "$1" -o "$work/$(basename "${1%.cpp}").o"
}
export -f compile
cd "$root"
# hash.cpp needs OpenSSL for the target, and nothing here hashes.
find lib/core lib/backend test/main.cpp test/backend -name '*.cpp' ! -name hash.cpp ! -name 'kernel_*' ! -name 'fma_peak*' \
    -print0 | sort -z | xargs -0 -P "$(nproc)" -I{} bash -c 'compile "$1"' _ {} | sed '/^$/d'
"$compiler" -static -pthread "$work"/*.o -o "$work/backend_tests"
qemu-aarch64 "$work/backend_tests" "$@"
