# what : what the scripts share: the checkout's root, messages, mpirun's settings, configuring and building
# usage: . "$(dirname "$(readlink -f "$0")")/common.sh"      (sourced by a bash script that runs under set -euo pipefail)
# needs: bash 5, coreutils, grep, awk; configure and build need what setup.sh installs
# shellcheck shell=bash
export LC_ALL=C.UTF-8   # the same messages and number formats whatever the caller's locale is, and one that every Debian has
root=$(cd -P -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd)
name=$(basename -- "$0")

say() { printf '%s: %s\n' "$name" "$*" >&2; }
die() { say "$@"; exit 1; }
help() { sed -n '2,4s/^# //p' -- "$(readlink -f -- "$0")"; }
usage() { help >&2; exit 2; }
# Of every script, and before it does anything.
case ${1-} in -h | --help) help; exit 0 ;; esac

# Settings for ranks on this one host. What the caller has set already is kept.
mpi_environment() {
  # As root mpirun asks for both; the scripts run in containers, where root is the usual user.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  # More ranks than cores are fine, and ranks must not share one core while another is idle.
  export OMPI_MCA_rmaps_base_oversubscribe=${OMPI_MCA_rmaps_base_oversubscribe:-1}
  export OMPI_MCA_hwloc_base_binding_policy=${OMPI_MCA_hwloc_base_binding_policy:-none}
  # A waiting rank gives its core to the one that it waits for (milliseconds a message otherwise, on one core).
  export OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle:-1}
  # Shared memory and loopback; other transports are probed and warn where their hardware is missing.
  export OMPI_MCA_pml=${OMPI_MCA_pml:-ob1} OMPI_MCA_btl=${OMPI_MCA_btl:-self,vader,tcp}
  # Reading another process's memory directly needs ptrace rights that containers often withhold.
  export OMPI_MCA_btl_vader_single_copy_mechanism=${OMPI_MCA_btl_vader_single_copy_mechanism:-none}
  if [ ! -w /dev/shm ]; then
    export OMPI_MCA_btl_vader_backing_directory=${OMPI_MCA_btl_vader_backing_directory:-${TMPDIR:-/tmp}}
  fi
}

# At once: one compiler for each core, but no more than memory has room for (about 1 GB each).
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1000000) }' /proc/meminfo 2>/dev/null || true)
  if [ -n "$memory" ] && [ "$memory" -lt "$cores" ]; then cores=$((memory > 0 ? memory : 1)); fi
  echo "$cores"
}

# configure FOLDER CMAKE-ARGUMENTS...: preset release in a build folder of its own (relative to the root), several files at
# a time: scripts build all at once.
configure() {
  local folder=$1 cache="$root/$1/CMakeCache.txt" fresh=()
  shift
  # CMake refuses a build folder that was moved with its checkout, or that another generator made: such a one starts anew.
  if [ -e "$cache" ] && ! { grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$cache" &&
    grep -qxF "CMAKE_GENERATOR:INTERNAL=Ninja" "$cache"; }; then
    fresh=(--fresh)
  fi
  mkdir -p "$root/$folder"
  local log="$root/$folder/configure.log"
  if ! (cd "$root" && cmake --preset release -B "$folder" -G Ninja -DLOCKSTEP_UNITY=ON "${fresh[@]}" "$@") >"$log" 2>&1; then
    cat "$log" >&2
    die "configuring failed; the lines above are also in $log"
  fi
}

# build FOLDER
build() { cmake --build "$root/$1" -j "$(build_jobs)" >&2 || die "the build failed"; }
