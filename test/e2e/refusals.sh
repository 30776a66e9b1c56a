# What: assertions about refusals: the exit code, one line for each fault and no other, and files that stay as they were.
# Usage: source it after assertions.sh and training.sh.
# Needs: mpirun.

# refused CODE LINE… -- ARGUMENTS…: on stderr stand these lines and no others, each given by a part of it.
refused_as() {
    local ranks=$1 code=$2 lines=()
    shift 2
    for (( ; ; )); do
        [[ $1 != -- ]] || break
        lines+=("$1")
        shift
    done
    shift
    local before after
    before=$(inventory)
    if ((ranks == 0)); then run timeout 20 "$lockstep" "$@"; else run mpi "$ranks" "$lockstep" "$@"; fi
    expect_exit "$code"
    expect_stdout ""
    local said line
    said=$(lockstep_said)
    [[ $(wc -l <<< "$said") == "${#lines[@]}" ]] || fail "not ${#lines[@]} lines but: $said"
    for line in "${lines[@]}"; do [[ $said == *"$line"* ]] || fail "no line has: $line"; done
    after=$(inventory)
    [[ $before == "$after" ]] || fail "files changed: $(diff <(echo "$before") <(echo "$after"))"
}
refused() {
    refused_as 0 "$@"
    refused_as 3 "$@"
}
