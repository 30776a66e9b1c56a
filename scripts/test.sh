#!/usr/bin/env bash
# what : installs what is missing, builds Release with tests and runs all of them, except those labelled long
# usage: test.sh [CTEST-ARGUMENTS...]      e.g. test.sh -R reduce, test.sh -L mpi, test.sh -L long (hours; installs more)
# needs: Debian 12, root or sudo where packages are missing; builds in build/release
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/common.sh"

# Arguments that choose by label replace the usual choice.
choice=(-LE '^long$')
packages=(--tests)
before=
for argument; do
  case $before in
    -L | --label-regex)
      choice=()
      if [[ $argument = *long* ]]; then packages+=(--long); fi
      ;;
    -LE | --label-exclude) choice=() ;;
  esac
  before=$argument
done

say "1/3 packages"
"$root/scripts/setup.sh" "${packages[@]}"
say "2/3 build, in build/release"
# Of the GPU half, where a toolkit is: for one architecture, with machine code and with PTX.
configure build/release -DBUILD_TESTING=ON -DLOCKSTEP_CUDA_ARCHITECTURES=80
build build/release
say "3/3 tests (built after $SECONDS s)"
mpi_environment
jobs=$(nproc)
exec ctest --test-dir "$root/build/release" -j "$((jobs > 2 ? jobs : 2))" --output-on-failure --no-tests=error "${choice[@]}" "$@"
