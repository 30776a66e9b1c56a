#!/usr/bin/env bash
# what : installs the Debian 12 packages that Lockstep needs, each for a stated reason; does nothing when all are there
# usage: setup.sh [--tests] [--long] [--cuda] [--check]   (--tests, --long: what tests, long tests need; --cuda: also a CUDA toolkit; --check: report only, exit 1 if any is missing)
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
libjpeg62-turbo-dev      libjpeg-turbo: JPEG pictures
libpng-dev               libpng: PNG pictures
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
cuda='
python3-pip              fetches the CUDA toolkit from PyPI, where none is installed
'

# NVIDIA's own packages, of one release that Lockstep was compiled with; 2 GB when they are unpacked.
wheels='
nvidia-cuda-nvcc==13.0.88
nvidia-nvvm==13.0.88
nvidia-cuda-crt==13.0.88
nvidia-cuda-cccl==13.0.85
nvidia-cuda-runtime==13.0.96
nvidia-nvtx==13.0.85
nvidia-cublas==13.1.0.3
nvidia-cudnn-cu13==9.19.0.56
nvidia-nccl-cu13==2.28.9
'
toolkit=${LOCKSTEP_CUDA_ROOT:-$HOME/.cache/lockstep/cuda}
# The nvcc that CMake will find, if any (cmake/LockstepCuda.cmake). A root that is named is the only place.
nvcc_there() {
  local folder
  if [ -n "${LOCKSTEP_CUDA_ROOT:-}" ]; then
    set -- "$LOCKSTEP_CUDA_ROOT"
  else
    set -- ${CUDA_HOME:+"$CUDA_HOME"} ${CUDA_PATH:+"$CUDA_PATH"} "$(dirname "$(dirname "$(command -v nvcc || echo //)")")" /usr/local/cuda /opt/cuda "$toolkit"
  fi
  for folder; do
    if [ -x "$folder/bin/nvcc" ]; then echo "$folder/bin/nvcc"; return; fi
  done
}

# Unpacks the wheels side by side and joins them to one toolkit, under another name until it is whole.
install_toolkit() {
  local part=$toolkit.part log folder library
  log=$(mktemp)
  say "fetching the CUDA toolkit into $toolkit (1.1 GB, 1.6 GB there; NVIDIA's licence terms come with it)"
  rm -rf "$part"
  mkdir -p "$part"
  # Each wheel alone: what else they ask for, Lockstep does not use.
  # shellcheck disable=SC2086
  python3 -m pip install -q --no-deps --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
    --only-binary :all: --target "$part/wheels" $wheels </dev/null >"$log" 2>&1 ||
    { cat "$log" >&2; rm -f "$log"; die "pip could not fetch the toolkit: is PyPI in reach, and is there room for 4 GB in $(dirname "$toolkit")?"; }
  rm -f "$log"
  for folder in "$part"/wheels/nvidia/*/; do cp -al "$folder". "$part/"; done
  mkdir "$part/licences"
  for folder in "$part"/wheels/*.dist-info; do cp -al "$folder" "$part/licences/"; done
  rm -rf "$part/wheels"
  ln -sfn lib "$part/lib64"
  # Linkers look for libcublas.so, the wheels bring libcublas.so.13.
  for library in "$part"/lib/*.so.*; do
    ln -sfn "$(basename "$library")" "${library%%.so.*}.so"
  done
  chmod +x "$part"/bin/* "$part"/nvvm/bin/*
  [ -x "$part/bin/nvcc" ] || die "the wheels hold no nvcc: $part"
  rm -rf "$toolkit"
  mv "$part" "$toolkit"
}

check=0
with_cuda=0
while [ $# -gt 0 ]; do
  case $1 in
    --tests) packages+=$tests ;;
    --long) packages+=$tests$long ;;
    --cuda) with_cuda=1 ;;
    --check) check=1 ;;
    *) usage ;;
  esac
  shift
done
nvcc=
if [ $with_cuda = 1 ]; then
  nvcc=$(nvcc_there)
  # pip is only needed to fetch a toolkit.
  [ -n "$nvcc" ] || packages+=$cuda
fi
packages=$(sed '/^$/d' <<<"$packages" | awk '!seen[$1]++')

command -v dpkg-query >/dev/null || die "this is no Debian system; install the counterparts of these packages yourself:"$'\n'"$packages"

# One query for all; a package counts when it is unpacked and configured ("ii", or held: "hi").
installed=$(awk '{ print $1 }' <<<"$packages" |
  xargs dpkg-query -W -f='${Package} ${db:Status-Abbrev}\n' 2>/dev/null | awk '$2 ~ /^.i/ { print $1 }' || true)
report=$(awk 'NR == FNR { have[$1] = 1; next } { print ($1 in have ? "ok      " : "missing ") $0 }' <(echo "$installed") <(echo "$packages"))
missing=$(sed -n 's/^missing //p' <<<"$report")

if [ $check = 1 ]; then
  echo "$report"
  if [ $with_cuda = 1 ]; then
    if [ -n "$nvcc" ]; then echo "ok      CUDA toolkit             $nvcc"; else echo "missing CUDA toolkit             for GPUs; to be fetched into $toolkit"; missing+=toolkit; fi
  fi
  [ -z "$missing" ] || exit 1
  exit 0
fi

# Last of all: what it needs is installed then.
finish() {
  if [ $with_cuda = 1 ]; then
    if [ -z "$nvcc" ]; then
      install_toolkit
      nvcc=$toolkit/bin/nvcc
    fi
    say "CUDA: $("$nvcc" --version | sed -n 's/.*release [^,]*, V/nvcc /p') is $nvcc; CMake finds it by itself$([ -z "${LOCKSTEP_CUDA_ROOT:-}" ] || echo " where LOCKSTEP_CUDA_ROOT is set as it is now, or -DLOCKSTEP_CUDA_ROOT=$LOCKSTEP_CUDA_ROOT is given")"
  fi
  exit 0
}
if [ -z "$missing" ]; then
  say "all $(wc -l <<<"$packages") packages are installed"
  finish
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
finish
