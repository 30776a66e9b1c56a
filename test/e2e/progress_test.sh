#!/usr/bin/env bash
# What: where progress goes and how it looks: plain lines on stderr where nobody watches, a bar on a terminal with
# columns, nothing where it was declined.
# Usage: progress_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; script(1) and stty(1) for a pseudo-terminal. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}" NO_COLOR
export TERM=xterm
small_config > small.toml
train=("$lockstep" train -c small.toml)

# What a watcher is told of such a run, at every log.every steps and at the end of each epoch.
facts='  loss [0-9.]+  lr 0\.05  [0-9,]+ samples/s  comm [0-9]+%  eta [0-9]+:[0-9][0-9]'
evaluated='test: loss [0-9.]+  accuracy [0-9.]+  top-5 [0-9.]+  \(61 samples, step'
cat > plain <<E1
304 parameters, 203 samples, 18 steps of 24 \(9 an epoch\), 8 shards on [13] ranks?, cpu .*
epoch 1/2  step 5/18$facts
epoch 1/2  step 9/18$facts
$evaluated 9\)
epoch 2/2  step 10/18$facts
epoch 2/2  step 15/18$facts
epoch 2/2  step 18/18$facts
$evaluated 18\)
done: 18 steps, .*/model\.safetensors  sha256 [0-9a-f]{64}
E1
expect_plain() { # FILE, all of it
    [[ $(wc -l < "$1") == $(wc -l < plain) ]] || fail "other lines: $(cat "$1")"
    paste -d '\n' "$1" plain | while read -r line && read -r pattern; do
        grep -qxE "$pattern" <<< "$line" || fail "'$line' where '$pattern' is expected"
    done
}
number=0
new_out() { out=run-$((++number)); }

# Not a terminal: plain lines on stderr, and stdout is empty; of rank 0 only.
for ranks in 0 3; do
    new_out
    if ((ranks == 0)); then run "${train[@]}" --out $out; else run mpi $ranks "${train[@]}" --out $out; fi
    expect_exit 0
    expect_stdout ""
    lockstep_said > said
    expect_plain said
done
for wanted in "--progress none" -q; do
    new_out
    run "${train[@]}" --out $out $wanted
    expect_exit 0
    expect_stdout ""
    ! grep -qE 'epoch [0-9]|accuracy' stderr || fail "$wanted shows progress"
    [[ $wanted != -q ]] || expect_stderr ""
done
run mpi 3 "${train[@]}" --out run-quiet -q
[[ -z $(lockstep_said) ]] || fail "-q is not quiet under mpirun"

# A reader that leaves: the lines are lost, the run is not.
new_out
run bash -o pipefail -c '"$@" 2>&1 | head -n 1' - "${train[@]}" --out $out
expect_exit 0
expect_in_stdout "304 parameters"
cmp run-1/model.safetensors $out/model.safetensors || fail "another model"
[[ -e $out/checkpoints/step-00000018/state.json ]] || fail "no checkpoint"

if ! command -v script > /dev/null || ! command -v stty > /dev/null; then
    echo "skipped: the bar (script or stty is not installed)"
    exit 0
fi

# on_terminal COLUMNS COMMAND: in a pseudo-terminal of so many columns, what it shows goes to the file shown.
on_terminal() {
    last_command=("$@")
    last_exit=0
    script -qec "stty cols $1; $2" /dev/null > shown 2> stderr < /dev/null || last_exit=$?
    cp shown stdout
    expect_exit 0
}
escape=$'\x1b'
bar_of() { sed "s/$escape\[[0-9;]*m//g" shown | tr '\r' '\n' | grep -aoE '\[[#.]+\] epoch.*' || true; }
words=$(printf '%q ' "${train[@]}")

# A terminal: a bar that is redrawn in place and ends full, with the same facts.
new_out
on_terminal 120 "$words --out $out"
[[ $(bar_of | wc -l) == 5 ]] || fail "not five bars but: $(bar_of)"
grep -qxE "\[#{10,30}\] epoch 2/2  step 18/18$facts" <(bar_of | tail -n 1) || fail "the last bar is: $(bar_of | tail -n 1)"
grep -qa "$escape\[32m#" shown || fail "the bar has no colour"
(($(bar_of | awk '{ if (length > most) most = length } END { print most }') < 120)) || fail "the bar is wider than the terminal"
grep -qa 'accuracy' shown || fail "no evaluation beside the bar"
# It is on stderr: stdout stays free for results.
new_out
on_terminal 120 "$words --out $out 2> on-stderr"
[[ ! -s shown ]] || fail "something of the bar is on stdout"
expect_plain on-stderr

# Colours are declined by a variable or an option, and the bar by an option, or by a terminal without columns.
for declined in "NO_COLOR=1 $words" "$words --color never"; do
    new_out
    on_terminal 120 "$declined --out $out"
    [[ $(bar_of | wc -l) == 5 ]] || fail "no bar without colours"
    ! grep -qa "$escape\[3" shown || fail "colours in spite of: $declined"
done
for case in "120 --progress plain" "0 "; do
    new_out
    on_terminal "${case%% *}" "$words --out $out ${case#* }"
    tr -d '\r' < shown > said
    expect_plain said
done
for wanted in "--progress none" -q; do
    new_out
    on_terminal 120 "$words --out $out $wanted"
    ! grep -qaE 'epoch [0-9]|accuracy' shown || fail "$wanted shows progress"
done
# Too narrow for a bar: the facts alone, cut to one line.
new_out
on_terminal 40 "$words --out $out"
[[ -z $(bar_of) ]] || fail "a bar on 40 columns"
grep -qaxE "$escape\[Kepoch 1/2  step 5/18.{0,29}" <(tr '\r' '\n' < shown) || fail "the facts are not cut to the terminal"

# Under mpirun every stderr is a pipe, so the bar is on stdout; plain lines on stderr where stdout is no terminal.
new_out
on_terminal 120 "mpirun -q --oversubscribe --bind-to none -np 3 $words --out $out 2> on-stderr"
[[ $(bar_of | wc -l) == 5 ]] || fail "not five bars under mpirun but: $(cat shown on-stderr)"
lockstep_said on-stderr > said
! grep -q 'epoch [0-9]' said || fail "plain lines beside the bar"
grep -qa "$escape\[32m#" shown || fail "the bar under mpirun has no colour, though its stdout is a terminal"
new_out
on_terminal 120 "mpirun -q --oversubscribe --bind-to none -np 3 $words --out $out --progress plain 2> on-stderr"
lockstep_said on-stderr > said
expect_plain said
echo "progress: on the right stream, in the right form"
