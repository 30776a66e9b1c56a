# What: what the end-to-end scripts about training share: launching ranks, reading what Lockstep said, waiting for a
# line, comparing runs, and small data sets and configs.
# Usage: source it after assertions.sh; the variable lockstep holds the path of the executable.
# Needs: mpirun, and the tools of a bare Debian (no Python).

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1

# Every rank on whatever core is free; the error of a world that ends is Lockstep's to tell, not mpirun's.
mpi() { timeout -k 5 "${limit:-60}" mpirun -q --oversubscribe --bind-to none -np "$@"; }
# The same for a command that mpirun is to run with another environment or program on some ranks (ranks after ":").
launch() { timeout -k 5 "${limit:-60}" mpirun -q --oversubscribe --bind-to none "$@"; }

# What Lockstep itself said on stderr: without the banners that mpirun sets between lines of dashes, its own "[host:pid]"
# lines, and empty lines.
lockstep_said() { sed -E '/^-{40,}$/,/^-{40,}$/d; /^\[[^]]*:[0-9]+\]/d; /^$/d' "${1:-stderr}"; }

# Metrics as equal runs share them: without what the clock decides.
without_wall() { sed -E 's/,"wall":\{[^}]*\}//' "$@"; }

# The bytes of a run that two equal runs share.
expect_same_run() {
    [[ $(sha256sum < "$1/model.safetensors") == $(sha256sum < "$2/model.safetensors") ]] || fail "$1 and $2 end with other weights"
    diff <(without_wall "$1/metrics.jsonl") <(without_wall "$2/metrics.jsonl") >&2 || fail "$1 and $2 have other metrics"
}

# wait_for SECONDS COMMAND…: until the command succeeds; a deadline, not a pace.
wait_for() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < deadline)) || fail "waited in vain for: $*"
        sleep 0.02
    done
}

# The process of one rank of the job (mpirun is process $job), or with "." of all.
rank_process() {
    local status
    for status in /proc/[0-9]*/status; do
        grep -qs "^PPid:[[:space:]]*$job$" "$status" || continue
        if grep -qx "OMPI_COMM_WORLD_RANK=$1" <(tr '\0' '\n' 2> /dev/null < "${status%status}environ"); then basename "$(dirname "$status")"; fi
    done
}
# Waits for the end of the job; its exit code in last_exit. mpirun itself (Open MPI 4.1, in PMIx_server_finalize) now and
# then waits for ever after its last rank has left; hung says so. Ranks that are still there are Lockstep's fault.
finished() {
    local deadline=$((SECONDS + 30))
    hung=0
    while [[ -e /proc/$job ]]; do
        if ((SECONDS >= deadline)); then
            [[ -z $(rank_process .) ]] || fail "the ranks do not leave"
            hung=1
            kill -s KILL $job
        fi
        sleep 0.02
    done
    last_exit=0
    { wait $job || last_exit=$?; } 2> /dev/null
    job=
}
all_gone() {
    local process
    for process in "$@"; do [[ ! -e /proc/$process ]] || return 1; done
}

# Every file and folder here with its contents, but for what the scripts themselves write.
inventory() {
    find . -type d -printf '%p/\n' | sort
    find . -type f ! -path ./stdout ! -path ./stderr -exec sha256sum {} + | sort
}

be32() { printf '\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)); }
# idx_images COUNT HEIGHT WIDTH and idx_labels COUNT CLASSES [FIRST]: IDX files of unsigned bytes on stdout.
idx_images() {
    printf "\x00\x00\x08\x03$(be32 "$1")$(be32 "$2")$(be32 "$3")"
    local i bytes=""
    for ((i = 0; i < $1 * $2 * $3; ++i)); do bytes+=$(printf '\\x%02x' $((i * 37 % 251))); done
    printf "$bytes"
}
idx_labels() {
    printf "\x00\x00\x08\x01$(be32 "$1")"
    local i
    for ((i = 0; i < $1; ++i)); do printf "$(printf '\\x%02x' $(((i + ${3:-0}) % $2)))"; done
}

# A run of a second or less in which nothing divides anything: 203 samples, 24 a step, 9 steps an epoch.
small_config() {
    cat <<'TOML'
[data]
format = "synthetic"
samples = 203
test_samples = 61
classes = 7
shape = [5, 5, 1]
[model]
hidden = [9]
[batch]
size = 24
[train]
epochs = 2
[log]
every = 5
TOML
}
