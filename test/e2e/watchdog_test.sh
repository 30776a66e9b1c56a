#!/usr/bin/env bash
# What: who is given up and who is not: a rank that saves for longer than the deadline is waited for, one that is 20 times
# slower is named and waited for, one that stands still is given up; a suspended job goes on; and what each rank logs.
# Usage: watchdog_test.sh PATH_TO_LOCKSTEP SLOW_FSYNC_LIBRARY
# Needs: mpirun, /proc. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
slow_fsync=$2
cd "$(mktemp -d)"
job=
trap '[[ -z $job ]] || kill -s KILL $job 2> /dev/null || true; rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
small_config > small.toml
host=$(uname -n)

# Each checkpoint takes rank 0 some 3 s of waiting for its disk; the others would wait 1 s for a silent rank.
saving=(train -c small.toml --set checkpoint.every_steps=9)
run "$lockstep" "${saving[@]}" --out alone
expect_exit 0
run launch -np 1 env LD_PRELOAD="$slow_fsync" "$lockstep" "${saving[@]}" --set device.timeout_s=1 --out slow : \
    -np 2 "$lockstep" "${saving[@]}" --set device.timeout_s=1 --out slow
expect_exit 0
expect_same_run slow alone

# A rank that computes without vector instructions, many times as slowly: named once, with what it costs; the job goes on.
cat > wide.toml <<'TOML'
[data]
format = "synthetic"
samples = 4096
classes = 10
shape = [28, 28, 1]
[model]
hidden = [256]
[batch]
size = 256
[train]
steps = 1000000000
TOML
wide=(train -c wide.toml --set device.timeout_s=8 --set device.threads=1 --out wide --log-dir logs)
last_command=(mpirun -q --oversubscribe --bind-to none -np 1 "$lockstep" "${wide[@]}" : -np 1 env LOCKSTEP_DEVICE_ISA=scalar "$lockstep" "${wide[@]}"
    : -np 1 "$lockstep" "${wide[@]}")
"${last_command[@]}" > stdout 2> stderr < /dev/null &
job=$!
wait_for 60 eval "grep -q 'holds the others up' stderr || [[ ! -e /proc/$job ]]"
kill -s USR1 "$(rank_process 1)"
finished
expect_exit 75
grep -qE "^lockstep: warning: rank 1 on $host holds the others up: its own work takes [0-9.]+ ms a step, [0-9.]+ times as long as theirs, and they wait for it [0-9]+% of the time$" stderr ||
    fail "not the line expected: $(grep 'holds the others up' stderr)"
[[ $(grep -c 'holds the others up' stderr) == 1 ]] || fail "named more than once within a minute"
grep -q '"event":"warning".*"kind":"straggler".*"rank":1,' wide/events.jsonl || fail "no event"

# Every rank's log: a file each, every line with its time; what only one rank has to say is there.
for rank in 0 1 2; do
    grep -qE "^[0-9-]{10}T[0-9:]{8}Z rank $rank of 3 on $host: " logs/rank-0000$rank.log || fail "rank $rank did not log"
    ! grep -vqE '^[0-9-]{10}T[0-9:]{8}Z ' logs/rank-0000$rank.log || fail "a line without its time"
done
grep -q 'holds the others up' logs/rank-00000.log || fail "the warning is not in rank 0's log"

# A rank that stands still is given up: by one that tells why and when, the others only in their logs.
rm -r wide logs
last_command=(mpirun -q --oversubscribe --bind-to none -np 3 "$lockstep" train -c small.toml --set train.steps=1000000000 --set device.timeout_s=2 --out still --log-dir logs)
"${last_command[@]}" > stdout 2> stderr < /dev/null &
job=$!
wait_for 30 eval "grep -qs '\"step\":30,' still/metrics.jsonl || [[ ! -e /proc/$job ]]"
kill -s STOP "$(rank_process 1)"
began=$SECONDS
finished
((SECONDS - began <= 2 + 5 + 1)) || fail "it took $((SECONDS - began)) s"
expect_exit 1
last=$(lockstep_said | tail -n 1)
[[ $last =~ ^lockstep:\ (the first of 2 errors: )?rank\ [02]\ on\ $host\ at\ .*Z:\ rank\ 1\ did\ not\ answer\ for\ 2\ s.*\(after\ step\ [0-9]+\)$ ]] || fail "the last line is: $last"
grep -q 'rank 1 did not answer' logs/rank-00000.log logs/rank-00002.log || fail "no log has the error"
[[ $(grep -lE 'did not answer|stops since rank' logs/rank-0000[02].log | wc -l) == 2 ]] || fail "rank 0 or 2 does not say in its log why it ended"

# A job that is suspended as a whole for longer than the deadline, as a batch system does, has no silent rank: it goes on.
last_command=(mpirun -q --oversubscribe --bind-to none -np 3 "$lockstep" train -c small.toml --set train.steps=1000000000 --set device.timeout_s=2 --out woken)
"${last_command[@]}" > stdout 2> stderr < /dev/null &
job=$!
wait_for 30 eval "grep -qs '\"step\":30,' woken/metrics.jsonl || [[ ! -e /proc/$job ]]"
ranks=("$(rank_process 0)" "$(rank_process 1)" "$(rank_process 2)")
kill -s STOP "${ranks[@]}"
sleep 3
before=$(wc -l < woken/metrics.jsonl)
kill -s CONT "${ranks[@]}"
wait_for 30 eval "((\$(wc -l < woken/metrics.jsonl) > $before + 2)) || [[ ! -e /proc/$job ]]"
kill -s USR1 "${ranks[1]}" || true
finished
expect_exit 75
! grep -q 'did not answer' stderr || fail "a rank was blamed: $(lockstep_said | tail -n 1)"
echo "watchdog: long work is waited for, a slow rank is named, a silent one is given up, a suspended job goes on"
