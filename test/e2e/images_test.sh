#!/usr/bin/env bash
# What: pictures through the executable: CIFAR, image folders and TFRecords give the same files at any number of ranks;
# plan, eval, predict and verify read them; a set larger than the memory that a process may have trains from disk; what
# is wrong is told in one line with exit 3 or 2.
# Usage: images_test.sh PATH_TO_LOCKSTEP FOLDER_OF_TEST_FILES
# Needs: mpirun. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
files=$(realpath "$2")
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
export LOCKSTEP_DEVICE_CACHE=$PWD/cache LOCKSTEP_DEVICE_BACKEND=cpu

# picture_config FORMAT TRAIN TEST SHAPE: a run of a second in which samples are varied in every way.
picture_config() {
    cat <<TOML
[data]
format = "$1"
train = $2
test = $3
shape = $4
[augment]
pad_crop = 2
flip = true
resized_crop = true
brightness = 0.2
contrast = 0.2
saturation = 0.2
cutout = 3
[model]
hidden = [11]
[batch]
size = 16
[train]
epochs = 2
TOML
}
records=$files/tfrecord
picture_config cifar "\"$files/pictures/cifar10_test_first20.bin\"" "\"$files/pictures/cifar10_test_*20.bin\"" "[16, 16, 3]" > cifar.toml
picture_config image_folder "\"$files/pictures/cifar10_png\"" "\"$files/pictures/cifar10_png\"" "[12, 12, 1]" > image_folder.toml
picture_config tfrecord "[\"$records/train-00000-of-00008\", \"$records/train-00001-of-00008\"]" \
    "\"$records/validation-00000-of-00002\"" "[10, 12, 3]" > tfrecord.toml

for format in cifar image_folder tfrecord; do
    run "$lockstep" train -c $format.toml --out $format-1
    expect_exit 0
    for ranks in 2 3 4 8; do
        run mpi $ranks "$lockstep" train -c $format.toml --out $format-$ranks --set device.input_threads=$((ranks % 3))
        expect_exit 0
        expect_same_run $format-$ranks $format-1
    done
    # The twin: without augmentation the weights are others, so the comparison can fail.
    run "$lockstep" train -c $format.toml --out $format-plain --set augment.flip=false
    (expect_same_run $format-plain $format-1) 2> /dev/null && fail "$format: augmentation changes nothing"
    run mpi 3 "$lockstep" predict --run $format-1 --out predicted-3.csv
    expect_exit 0
    run "$lockstep" predict --run $format-1 --out predicted-1.csv
    expect_exit 0
    cmp predicted-1.csv predicted-3.csv || fail "$format: predictions differ"
done
for case in "cifar 20 2 20" "image_folder 20 2 20" "tfrecord 128 8 64"; do
    read -r format samples steps tested <<< "$case"
    run "$lockstep" plan -c "$format.toml" --json
    expect_exit 0
    expect_in_stdout "{\"samples\":$samples,\"batch\":16,\"shards\":8,\"layout\":\"batch\",\"steps_per_epoch\":$steps,"
    expect_in_stdout "\"test_samples\":$tested,"
done
run mpi 3 "$lockstep" verify -c tfrecord.toml --steps 5
expect_exit 0

run "$lockstep" inspect "$files/pictures/cifar10_png"
expect_exit 0
expect_in_stdout "class_names: 0, 1, 3, 5, 6, 7, 8, 9"

# The index is made once: a second start finds it, and a damaged one is made anew.
[[ $(find cache -name '*.index' | wc -l) == 3 ]] || fail "the cache should hold three indices: $(ls cache)"
for index in cache/*.index; do echo spoiled > "$index"; done
run "$lockstep" train -c tfrecord.toml --out again
expect_exit 0
expect_same_run again tfrecord-1

# --- What is wrong ----------------------------------------------------------------------------------------------------
for case in "bad_data_crc.tfrecord|record 1 at byte 899" "bad_length_crc.tfrecord|record 1 at byte 899" \
    "truncated_3_bytes.tfrecord|record 2 starts at byte 1798" "tf221_missing_label.tfrecord|record 1 at byte" \
    "train-*|6 of 8 files are missing"; do
    run mpi 2 "$lockstep" train -c tfrecord.toml --out bad --set data.train="\"$records/${case%%|*}\""
    expect_exit 3
    expect_in_stderr "${case##*|}"
    [[ $(lockstep_said | grep -c "${case##*|}") == 1 ]] || fail "told more than once"
    [[ ! -e bad/model.safetensors ]] || fail "trained on ${case%%|*}"
done
mkdir -p odd/a odd/b
cp "$files/pictures/cifar10_png/3/00.png" odd/a/0.png
head -c 1000 "$files/pictures/cifar10_png/3/08.png" > odd/b/cut.png
run mpi 2 "$lockstep" train -c image_folder.toml --out bad --set data.train='"odd"' --set data.test='"odd"'
expect_exit 3
expect_in_stderr "odd/b/cut.png: truncated"
expect_in_stderr "replace or remove this picture"
expect_in_stderr "of epoch 0); lockstep inspect --deep names all that are damaged"
# All of them at once, before a training: the files beside them are read on.
cp odd/b/cut.png odd/a/cut.png
run "$lockstep" inspect odd
expect_exit 0
run "$lockstep" inspect odd --deep
expect_exit 3
expect_stderr_lines 2
expect_in_stderr "odd/a/cut.png: truncated"
expect_in_stderr "odd/b/cut.png: truncated"
expect_in_stdout "samples_read: 3"
rm odd/a/cut.png
run "$lockstep" inspect "$files/pictures/cifar10_png" --deep --json
expect_exit 0
expect_in_stdout '"samples_read": 20'
run "$lockstep" inspect "$records/bad_data_crc.tfrecord" --deep
expect_exit 3
cp "$files/../../io/files/pictures/jpeg/pillow_hopper.jpg" odd/b/cut.png
sed '/^shape/d' image_folder.toml > any_size.toml
run "$lockstep" train -c any_size.toml --out bad --set data.train='"odd"' --set data.test='"odd"'
expect_exit 2
expect_in_stderr "set data.shape = [height, width, channels]"

# --- Larger than memory -----------------------------------------------------------------------------------------------
# 1.2 GB of zeros that take no room on the disk, under a limit of 700 MB of addresses. What is held in memory whole (IDX)
# does not fit there, so the limit is one.
truncate -s $((3073 * 400000)) large.bin
picture_config cifar '"large.bin"' '"large.bin"' "[4, 4, 3]" | sed '/^test/d; s/^epochs.*/steps = 3/' > large.toml
limited() { (ulimit -v 700000 && exec "$@"); }
run limited "$lockstep" train -c large.toml --out large --set device.threads=1
expect_exit 0
# NumPy's arrays on their own: 1.2 GB of floats.
npy_header() { # TYPE SHAPE
    local words="{'descr': '$1', 'fortran_order': False, 'shape': $2, }"
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "$words"
}
npy_header '<f4' '(400000, 768)' > x.npy
truncate -s $((128 + 4 * 768 * 400000)) x.npy
npy_header '|u1' '(400000,)' > y.npy
truncate -s $((128 + 400000)) y.npy
sed 's/^format.*/format = "npz"/; s/^train = .*/train = { images = "x.npy", labels = "y.npy" }/; /^shape/d; /^resized_crop/d' large.toml > npy.toml
sed -i '/^\[augment\]/,/^\[model\]/{/^\[model\]/!d}' npy.toml
run limited "$lockstep" train -c npy.toml --out npy --set device.threads=1
expect_exit 0
{ printf '\x00\x00\x08\x04\x00\x06\x1a\x80\x00\x00\x00\x20\x00\x00\x00\x20\x00\x00\x00\x03'; } > large.idx
truncate -s $((20 + 3072 * 400000)) large.idx
{ printf '\x00\x00\x08\x01\x00\x06\x1a\x80'; } > labels.idx
truncate -s $((8 + 400000)) labels.idx
sed 's/^format.*/format = "idx"/; s/^train = .*/train = { images = "large.idx", labels = "labels.idx" }/; /^shape/d' large.toml > idx.toml
run limited "$lockstep" train -c idx.toml --out idx --set device.threads=1
expect_exit 1
echo "pictures: the same bytes at 1, 2, 3, 4 and 8 ranks"
