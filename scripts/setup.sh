#!/usr/bin/env bash
# what : installs the Debian 12 packages that Lockstep needs, each for a stated reason; does nothing when all are there
# usage: setup.sh [--tests] [--long] [--check]      (--tests, --long: what tests, long tests need; --check: report only, exit 1 if any is missing)
# needs: Debian 12 and its package mirror; root or sudo where something is missing
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/common.sh"

packages='
g++                      the compiler (C++20)
cmake                    configures the build
ninja-build              runs the build
pkg-config               finds the libraries that bring no CMake file
libopenmpi-dev           MPI: messages between ranks
openmpi-bin              mpirun
libhwy-dev               Highway: kernels for AVX2, AVX-512 and NEON from one source
libfmt-dev               fmt: text formatting
nlohmann-json3-dev       JSON: metrics, state, safetensors headers
libtomlplusplus-dev      TOML: config files
libcli11-dev             CLI11: the command line
libssl-dev               OpenSSL: SHA-256 of weights and data
libdeflate-dev           libdeflate: .gz data sets
libxxhash-dev            xxHash: fast hashes of weights
zlib1g-dev               says where a damaged .gz goes wrong; checksums of .npz files
ca-certificates          certificates for package mirrors over https
dataset-fashion-mnist    Fashion-MNIST: 60,000 + 10,000 real images
'
tests='
catch2                   Catch2: the tests themselves
iproute2                 several hosts on one machine, as network namespaces (tests labelled netns; they also need root)
'
long='
clang                    a second compiler, which must give the same bits
g++-aarch64-linux-gnu    builds the kernels for another kind of CPU
qemu-user                runs them
libdnnl-dev              oneDNN: the yardstick of the kernel benchmark
slurmctld                Slurm, of which a test starts its own for the batch scripts
slurmd                   the same
slurm-client             the same
munge                    the same
libpmix-dev              the same, for srun --mpi=pmix
'

check=0
while [ $# -gt 0 ]; do
  case $1 in
    --tests) packages+=$tests ;;
    --long) packages+=$tests$long ;;
    --check) check=1 ;;
    *) usage ;;
  esac
  shift
done
packages=$(sed '/^$/d' <<<"$packages" | awk '!seen[$1]++')

command -v dpkg-query >/dev/null || die "this is no Debian system; install the counterparts of these packages yourself:"$'\n'"$packages"

# One query for all; a package counts when it is unpacked and configured ("ii", or held: "hi").
installed=$(awk '{ print $1 }' <<<"$packages" |
  xargs dpkg-query -W -f='${Package} ${db:Status-Abbrev}\n' 2>/dev/null | awk '$2 ~ /^.i/ { print $1 }' || true)
report=$(awk 'NR == FNR { have[$1] = 1; next } { print ($1 in have ? "ok      " : "missing ") $0 }' <(echo "$installed") <(echo "$packages"))
missing=$(sed -n 's/^missing //p' <<<"$report")

if [ $check = 1 ]; then
  echo "$report"
  [ -z "$missing" ] || exit 1
  exit 0
fi
if [ -z "$missing" ]; then
  say "all $(wc -l <<<"$packages") packages are installed"
  exit 0
fi

say "installing what is missing:"
sed 's/^/  /' <<<"$missing" >&2
as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || die "no root and no sudo; as root, run: apt-get install $(awk '{ print $1 }' <<<"$missing" | xargs)"
  as_root=(sudo)
fi
# Quiet when all is well; waits where another apt is at work.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${apt[@]}" update </dev/null >"$log" 2>&1 || { cat "$log" >&2; die "apt-get update failed: is a Debian mirror in reach?"; }
# shellcheck disable=SC2046
"${apt[@]}" install --no-install-recommends $(awk '{ print $1 }' <<<"$missing") </dev/null >"$log" 2>&1 ||
  { cat "$log" >&2; die "apt-get install failed; Lockstep is made for the packages of Debian 12"; }
say "done after $SECONDS s"
