#!/usr/bin/env bash
# What: run directories, checkpoints and disks that cannot be used: each ends with its exit code and one clear line for
# each fault, alone and as three ranks, within seconds, and leaves every file as it was; a run whose disk was full goes
# on once there is room.
# Usage: bad_checkpoint_test.sh PATH_TO_LOCKSTEP
# Needs: mpirun; root for the parts with a disk of their own. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
source "$(dirname "${BASH_SOURCE[0]}")/refusals.sh"
lockstep=$1
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
limit=20

idx_images 20 4 4 > images
idx_labels 20 4 > labels
cat > idx.toml <<'TOML'
[data]
train = { images = "images", labels = "labels" }
[model]
hidden = [3]
[batch]
size = 8
[train]
steps = 2
TOML
run timeout 20 "$lockstep" train -c idx.toml --out whole
expect_exit 0
small_config > small.toml

# --- Run directories and checkpoints ----------------------------------------------------------------------------------
run timeout 20 "$lockstep" train -c small.toml --out done --set checkpoint.every_steps=5
expect_exit 0
refused 2 "done: holds a run already; choose another --out" -- train -c small.toml --out done
refused 2 "--resume auto needs --out" -- train -c small.toml --resume auto
refused 2 "nowhere: no checkpoint" -- train -c small.toml --out no --resume nowhere
refused_as 0 2 "nowhere: holds no run" -- eval --run nowhere
refused_as 3 2 "nowhere: holds no run" -- predict --run nowhere

last=done/checkpoints/step-00000018
refused 2 "$last: cannot resume: model.hidden was [9], now it is [10]" -- train -c small.toml --out no --resume "$last" --set model.hidden=[10]
refused 2 "$last: cannot resume: optimizer.momentum was 0.9, now it is 0.5" "$last: cannot resume: optimizer.lr was 0.05, now it is 0.25" -- \
    train -c small.toml --out done --resume auto --set optimizer.momentum=0.5 --set optimizer.lr=0.25 --set train.epochs=3
refused 2 "$last: cannot resume: 18 steps in all were asked of it, now 9" -- train -c small.toml --out no --resume "$last" --set train.epochs=1

# Damaged checkpoints: of the newest one, a piece at a time.
damaged() { # LINE, then a command that damages the run directory "copy"
    cp -r done copy
    local what=$1
    shift
    (cd copy/checkpoints/step-00000018 && "$@")
    refused_as 0 3 "copy/checkpoints/step-00000018/$what" -- train -c small.toml --set train.epochs=3 --out copy --resume auto
    refused_as 0 3 "copy/checkpoints/step-00000018/$what" -- eval --checkpoint copy/checkpoints/step-00000018 -c small.toml
    rm -r copy
}
flip() { printf '\x55' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
damaged "model.safetensors: damaged checkpoint" truncate -s -1 model.safetensors
damaged "optimizer.safetensors: damaged checkpoint" truncate -s 100 optimizer.safetensors
damaged "optimizer.safetensors: damaged checkpoint" flip optimizer.safetensors 900
damaged "model.safetensors: No such file or directory" rm model.safetensors
damaged "state.json: damaged checkpoint" truncate -s 300 state.json
damaged "state.json: damaged checkpoint" truncate -s 0 state.json
damaged "state.json: damaged checkpoint" sed -i 's/"step": 18/"step": 17/' state.json
cp -r done copy
truncate -s 100 copy/checkpoints/step-00000018/model.safetensors
refused_as 3 3 "copy/checkpoints/step-00000018/model.safetensors: damaged checkpoint" -- \
    train -c small.toml --set train.epochs=3 --out copy --resume auto
truncate -s 100 copy/model.safetensors
refused_as 0 3 "copy/model.safetensors: " -- eval --run copy
refused_as 0 3 "copy/model.safetensors: " -- export --run copy --format npz --out copy.npz
rm -r copy

# Another arithmetic is refused by name. state.json holds a sum over its own compact text, which the twin edit keeps.
state_sum() { sed -E '/^  "check":/d; s/^ *//; s/^("[^"]*"): /\1:/' "$1" | tr -d '\n' | sha256sum | cut -d ' ' -f 1; }
grep -qF "\"check\": \"$(state_sum $last/state.json)\"" $last/state.json || fail "the sum of state.json is not what this test computes"
cp -r done other
other=other/checkpoints/step-00000018
sed -i 's/"arithmetic": "arithmetic 1"/"arithmetic": "arithmetic 0"/' $other/state.json
sed -i "s/\"check\": \".*\"/\"check\": \"$(state_sum $other/state.json)\"/" $other/state.json
refused 2 "$other: cannot resume: it was written with arithmetic 0, this program computes arithmetic 1" -- \
    train -c small.toml --set train.epochs=3 --out other --resume auto

# Other data than the checkpoint's: data that are damaged have exit 3, a checkpoint of other data 2.
cp -r whole moved
idx_images 20 4 4 | sed 's/\x25/\x26/' > images-other
refused 2 "moved/checkpoints/step-00000002: cannot resume: the training data differ" -- \
    train -c idx.toml --set train.steps=4 --out moved --resume auto --set 'data.train={images="images-other",labels="labels"}'

# --- Folders that go away under a run -----------------------------------------------------------------------------------
# The folder of checkpoints: what was moved away stays whole, and either a new one is begun, or, where it went in the middle
# of saving, one line says so. The run directory itself: there is no place to go on.
for gone in run/checkpoints run; do
    rm -rf run away
    "$lockstep" train -c small.toml --set train.steps=1000000000 --set checkpoint.every_steps=20 --progress none --out run > stdout 2> stderr < /dev/null &
    job=$!
    wait_for 30 eval '[[ -e run/checkpoints/latest || ! -e /proc/$job ]]'
    mv $gone away
    wait_for 30 eval '[[ -e run/checkpoints/latest || ! -e /proc/$job ]]'
    kill -s USR1 $job 2> /dev/null || true
    finished
    if ((last_exit == 75)) && [[ $gone == run/checkpoints ]]; then
        run "$lockstep" inspect "run/checkpoints/$(cat run/checkpoints/latest)"
        expect_exit 0
    else
        expect_exit 1
        [[ $(lockstep_said | tail -n 1) =~ ^lockstep:\ .*run/checkpoints.*(No such file or directory|cannot put) ]] || fail "the folder is not named: $(lockstep_said)"
    fi
    kept=$(find away -name 'step-*' | sort | head -n 1)
    run "$lockstep" inspect "$kept"
    expect_exit 0
done

# --- Disks ------------------------------------------------------------------------------------------------------------
# 45,000 parameters: 180 KB of weights and as much of momentum in each checkpoint. The second one finds no room.
if ((EUID == 0)) && mkdir disk && mount -t tmpfs -o size=600k lockstep-test disk 2> stderr; then
    trap 'umount "$PWD/disk"; rm -rf "$PWD"' EXIT
    big=(train -c small.toml --set model.hidden=[200,200] --set checkpoint.every_steps=5)
    run timeout 20 "$lockstep" "${big[@]}" --out roomy
    expect_exit 0
    for ranks in 0 3; do
        if ((ranks == 0)); then run timeout 20 "$lockstep" "${big[@]}" --progress none --out disk/run; else
            run mpi $ranks "$lockstep" "${big[@]}" --progress none --out disk/run
        fi
        expect_exit 1
        [[ $(lockstep_said | tail -n 1) == "lockstep: cannot write disk/run/checkpoints/.writing-step-00000010/"*": No space left on device"* ]] ||
            fail "the full disk is not named"
        [[ $(lockstep_said | wc -l) == 2 ]] || fail "more than the opening line and the error"
        [[ $(ls -A disk/run/checkpoints) == $'latest\nstep-00000005' ]] || fail "not only the complete checkpoint stands"
        run timeout 20 "$lockstep" inspect disk/run/checkpoints/step-00000005
        expect_exit 0
        mount -o remount,size=4m disk
        run mpi 2 "$lockstep" "${big[@]}" --out disk/run --resume auto
        expect_exit 0
        expect_same_run disk/run roomy
        rm -r disk/run
        mount -o remount,size=600k disk
    done
    # Full before the first checkpoint: no room for another line of metrics.jsonl.
    mount -o remount,size=28k disk
    talkative=(train -c small.toml --set log.every=1 --set train.epochs=40 --progress none)
    run mpi 3 "$lockstep" "${talkative[@]}" --out disk/run
    expect_exit 1
    [[ $(lockstep_said | tail -n +2) == "lockstep: rank 0 on $(uname -n) at "*"Z: cannot write disk/run/metrics.jsonl: No space left on device; free some space or write elsewhere (after step "*")" ]] ||
        fail "not one line about metrics.jsonl: $(lockstep_said)"
    mount -o remount,size=4m disk
    run mpi 2 "$lockstep" "${talkative[@]}" --out disk/run --resume auto
    expect_exit 0
    run "$lockstep" "${talkative[@]}" --out talked
    expect_same_run disk/run talked
    rm -r disk/run

    # The folder of checkpoints is removed, or sealed, under a run: told at the next save. With the whole folder gone a new one
    # is made; what is there is not touched.
    for ranks in 1 3; do
        rm -rf disk/run
        "$lockstep" train -c small.toml --set checkpoint.every_steps=5 --set train.epochs=1 --out disk/run -q
        [[ $(cat disk/run/checkpoints/latest) == step-00000009 ]] || fail "no checkpoint to begin with"
        chattr +i disk/run/checkpoints 2> /dev/null || mount -o bind,ro disk/run/checkpoints disk/run/checkpoints 2> /dev/null || break
        run mpi $ranks "$lockstep" train -c small.toml --set checkpoint.every_steps=5 --set train.epochs=2 --progress none --out disk/run --resume auto
        chattr -i disk/run/checkpoints 2> /dev/null || umount disk/run/checkpoints
        expect_exit 1
        [[ $(lockstep_said | tail -n 1) == *"disk/run/checkpoints/"* ]] || fail "the sealed folder is not named: $(lockstep_said)"
        run "$lockstep" inspect disk/run/checkpoints/step-00000009
        expect_exit 0
    done
    rm -rf disk/run
    mkdir disk/empty
    mount -o remount,ro disk
    refused 1 "disk/run: cannot create the run directory: Read-only file system" -- train -c small.toml --out disk/run
    refused 1 "disk/empty: the run directory cannot be written to" -- train -c small.toml --out disk/empty
    refused_as 0 1 "cannot write disk/weights.npz: Read-only file system" -- export --run done --format npz --out disk/weights.npz
    refused_as 0 1 "cannot write disk/p.csv: Read-only file system" -- predict --run done --out disk/p.csv
else
    echo "skipped: full and read-only disks (a tmpfs cannot be mounted here; that needs root)"
    if ((EUID != 0)); then
        mkdir sealed
        chmod 555 sealed
        refused 1 "sealed: the run directory cannot be written to" -- train -c small.toml --out sealed
    fi
fi

# A limit on the size of files is a failed write, too, and not a death by SIGXFSZ (153).
run bash -c '(ulimit -f 0; exec "$0" train -c small.toml --out limited) 2>&1 | cat >&2; exit "${PIPESTATUS[0]}"' "$lockstep"
expect_exit 1
expect_in_stderr "cannot write limited/"
echo "bad checkpoints and disks: all refused as it should be"
