#!/usr/bin/env bash
# What: training across two hosts: the bytes of one rank; a link that is cut for 3 s is survived; one that stays cut, and
# ranks or launchers that are stopped or killed, end the job within the deadline, with nothing left running on any host and
# the last checkpoint intact; environment variables that one host lacks are named.
# Usage: hosts_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun, root, iproute2 (else it is skipped). Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
source "$(dirname "${BASH_SOURCE[0]}")/netns.sh"
hosts_or_skip
lockstep=$(realpath "$1")
page=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../docs/cluster.md")
cd "$(mktemp -d)"
unset "${!LOCKSTEP_@}"
job=
trap '[[ -z $job ]] || kill -s KILL $job 2> /dev/null || true; hosts_down; rm -rf "$PWD"' EXIT

small_config > small.toml
hosts_up 2
timeout_s=3
endless=1000000000
settings() { echo -c small.toml --set checkpoint.every_steps=20 --set eval.every_steps=$endless --set eval.every_epochs=0 "$@"; }

# started DIR STEPS ARGUMENTS…: a run of 4 ranks, two on each host, in the background, which has saved a checkpoint when
# this returns; job is mpirun.
started() {
    local out=$1 steps=$2
    shift 2
    rm -rf "$out"
    last_command=("$hosts_folder/host_shell" host1
        "$(across -np 4 "$lockstep" train $(settings --set "train.steps=$steps") --out "$out" "$@")")
    "${last_command[@]}" > stdout 2> stderr < /dev/null &
    job=$!
    wait_for 60 eval "[[ -e $out/checkpoints/latest || ! -e /proc/$job ]]"
}
# ended SECONDS: by then mpirun is gone; its exit code in last_exit. Ranks and what ends launchers have a moment more to go.
ended() {
    local deadline=$((SECONDS + $1 + 1)) # SECONDS counts whole ones
    while [[ -e /proc/$job ]]; do
        ((SECONDS < deadline)) || fail "not ended within $1 s; running: $(hosts_running)"
        sleep 0.05
    done
    last_exit=0
    wait $job 2> /dev/null || last_exit=$?
    job=
    wait_for 10 eval '[[ -z $(hosts_running) ]]'
}
rank_on() { # HOST RANK: its process
    local process
    for process in $(ip netns pids "$hosts_name-$1"); do
        [[ $(cat "/proc/$process/comm" 2> /dev/null) == lockstep ]] || continue
        if grep -qx "OMPI_COMM_WORLD_RANK=$2" <(tr '\0' '\n' < "/proc/$process/environ"); then echo "$process"; fi
    done
}
launcher_on() { # HOST NAME
    local process
    for process in $(ip netns pids "$hosts_name-$1"); do
        if [[ $(cat "/proc/$process/comm" 2> /dev/null) == "$2" ]]; then echo "$process"; fi
    done
}
# What such an end leaves: a whole checkpoint, the bytes that one rank has after as many steps.
expect_intact() { # DIR
    local name
    name=$(cat "$1/checkpoints/latest")
    run timeout 60 "$lockstep" inspect "$1/checkpoints/$name"
    expect_exit 0
    run timeout 60 "$lockstep" train $(settings --set "train.steps=$((10#${name#step-}))") -q --out undisturbed
    expect_exit 0
    cmp "$1/checkpoints/$name/model.safetensors" undisturbed/model.safetensors || fail "not the bytes of an undisturbed run"
    rm -r undisturbed
}

# A variable that is set where mpirun runs reaches no other host by itself.
export LOCKSTEP_OPTIMIZER_LR=0.25
run on_hosts -np 4 "$lockstep" train -c small.toml --out plain
expect_exit 2
advice='give all ranks one value (mpirun -x NAME hands a variable to other hosts)'
for rank in 1 3; do
    expect_in_stderr "lockstep: unequal start: optimizer.lr = 0.05 on rank $rank on host2 (from default), 0.25 on rank 0 (from LOCKSTEP_OPTIMIZER_LR); $advice"
done
[[ ! -e plain ]] || fail "a run directory was made"
run on_hosts -x LOCKSTEP_OPTIMIZER_LR -np 4 "$lockstep" train -c small.toml --out plain
expect_exit 0
run "$lockstep" train -c small.toml --out alone
expect_same_run plain alone
unset LOCKSTEP_OPTIMIZER_LR
run "$lockstep" train -c small.toml --out default

# The commands for several hosts that the page on clusters shows.
awk '/^```sh hosts$/ { shown = 1; next } /^```/ { shown = 0 } shown' "$page" > page.sh
(($(grep -c mpirun page.sh) >= 2)) || fail "the page shows no commands for several hosts"
mkdir bin
ln -s "$lockstep" bin/lockstep
cp small.toml exp.toml
run on_host 1 env -C "$PWD" PATH="$PWD/bin:$PATH" OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent="$hosts_folder/remote_shell" OMPI_MCA_ras=^slurm \
    OMPI_MCA_btl_tcp_if_include=eth0 OMPI_MCA_oob_tcp_if_include=eth0 bash -euo pipefail page.sh
expect_exit 0
for out in runs/*; do expect_same_run "$out" default; done

# A link cut for 3 s: the job stands still and goes on.
started survives $endless
cut 2
sleep 3
before=$(tail -n 1 survives/metrics.jsonl)
heal 2
wait_for 60 eval '[[ $(tail -n 1 survives/metrics.jsonl) != "$before" ]]'
kill -s USR1 "$(rank_on 2 3)"
ended 60
expect_exit 75
expect_intact survives

# The link stays cut: both sides give the other up, and mpirun does not wait for the silent host.
started cut_off $endless --set device.timeout_s=$timeout_s
cut 2
ended $((timeout_s + 10))
((last_exit != 0)) || fail "exit 0"
[[ $(lockstep_said | grep -c 'did not answer') == 1 || $(grep "^lockstep: " stderr | tail -n 1) == "lockstep: the first of 2 errors: "* ]] ||
    fail "the first of several errors is not told last: $(lockstep_said | tail -n 3)"
grep -qE "^lockstep: .*rank [02] on host1 at .*: ranks 1, 3 did not answer for $timeout_s s \(device\.timeout_s\) \(after step [0-9]+\)$" <(lockstep_said) ||
    fail "the ranks behind the link are not named: $(lockstep_said | tail -n 3)"
heal 2
expect_intact cut_off

# A rank on the other host stands still.
started stopped $endless --set device.timeout_s=$timeout_s
kill -s STOP "$(rank_on 2 1)"
ended $((timeout_s + 10))
expect_exit 1
grep -qE "rank [023] on host[12] at .*: rank 1 did not answer for $timeout_s s" <(lockstep_said) || fail "rank 1 is not named: $(lockstep_said | tail -n 3)"
expect_intact stopped

# Killed: a rank, the launcher of the other host, mpirun itself.
for victim in "rank_on 2 3" "launcher_on 2 orted" "launcher_on 1 mpirun"; do
    started killed $endless --set device.timeout_s=$timeout_s
    kill -s KILL $($victim)
    ended $((timeout_s + 10))
    ((last_exit != 0)) || fail "exit 0 after $victim"
    expect_intact killed
done
echo "hosts: equal bytes; cut links, stopped and killed ranks end as they should"
