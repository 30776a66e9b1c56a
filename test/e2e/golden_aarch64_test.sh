#!/usr/bin/env bash
# What: cross-compiles the whole executable for aarch64, runs it under qemu and asks it for the golden hashes: another
#       kind of processor gives the same weights, with NEON and without.
# Usage: golden_aarch64_test.sh
# Needs: aarch64-linux-gnu-g++ and qemu-aarch64, and apt-get with a Debian mirror for the arm64 libraries, which are
#        unpacked into a temporary folder and never installed (exit 77, skipped, without these).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
for tool in aarch64-linux-gnu-g++ qemu-aarch64 apt-get dpkg-deb; do
    if ! command -v "$tool" > /dev/null; then
        echo "skipped: $tool is not installed" >&2
        exit 77
    fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
libraries=$root/usr/lib/aarch64-linux-gnu

# An apt of our own beside the machine's: another architecture, other lists, nothing installed.
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/packages" "$root"
touch "$work/status"
cat > "$work/apt.conf" << CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::State "$work/state";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
Acquire::Languages "none";
CONF
linked=(libfmt-dev libfmt9 libssl-dev libssl3 libdeflate-dev libdeflate0 libxxhash-dev libxxhash0 zlib1g-dev zlib1g
    libjpeg62-turbo-dev libjpeg62-turbo libpng-dev libpng16-16 libhwy-dev libhwy1 libtomlplusplus-dev libtomlplusplus3 nlohmann-json3-dev libcli11-dev libopenmpi-dev libopenmpi3)
behind=(libc6 libgcc-s1 libstdc++6 libhwloc15 libevent-core-2.1-7 libevent-pthreads-2.1-7 libudev1)
if ! (cd "$work/packages" && export APT_CONFIG=$work/apt.conf && apt-get -q update && apt-get -q download "${linked[@]}" "${behind[@]}") \
    > "$work/log" 2>&1; then
    tail -n 5 "$work/log" >&2
    echo "skipped: the arm64 packages cannot be had from this machine's mirror" >&2
    exit 77
fi
for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$root"; done

cat > "$work/toolchain.cmake" << CMAKE
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH $root)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CXX_FLAGS_INIT "-isystem $root/usr/include/aarch64-linux-gnu")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,$libraries:$root/lib/aarch64-linux-gnu")
CMAKE
export PKG_CONFIG_LIBDIR=$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
# MPI's compiler wrapper is the host's, so its library and headers are named here.
{ cmake -S "$here/../.." -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DLOCKSTEP_UNITY=ON -DCMAKE_TOOLCHAIN_FILE="$work/toolchain.cmake" \
    -DMPI_C_LIB_NAMES=mpi -DMPI_mpi_LIBRARY="$libraries/openmpi/lib/libmpi.so" -DMPI_C_HEADER_DIR="$libraries/openmpi/include" &&
    cmake --build "$work/build" --target lockstep --parallel "$(nproc)"; } > "$work/log" 2>&1 || { tail -n 50 "$work/log" >&2; exit 1; }

printf '#!/bin/sh\nexec qemu-aarch64 -L "%s" "%s" "$@"\n' "$root" "$work/build/apps/lockstep/lockstep" > "$work/lockstep"
chmod +x "$work/lockstep"
bash "$here/golden_test.sh" "$work/lockstep"
