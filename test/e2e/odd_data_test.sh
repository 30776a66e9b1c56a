#!/usr/bin/env bash
# What: data that can be read and are not what was meant: files named twice, labels among the features, keys that say
#       nothing, categories before networks for pictures, names of files that break lines; and what inspect makes of
#       files by what is in them.
# Usage: odd_data_test.sh PATH_TO_LOCKSTEP FILES
# Needs: gzip; works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
files=$2
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
printf 'x,color,y\n1,red,no\n2,blue,yes\n3,blue,no\n' > small.csv
cat > small.toml <<'TOML'
data = { format = "csv", train = "small.csv" }
model = { name = "logistic" }
train = { epochs = 2 }
TOML

# --- The same file twice: a warning, since some mean it -------------------------------------------------------------------
ln -s small.csv link.csv
mkdir -p sub
plan() { run timeout 20 "$lockstep" plan -c small.toml "$@"; }
warned() {
    expect_exit 0
    expect_stderr_lines 1
    expect_stderr "lockstep: warning: data.train: $1: the samples in it count twice in every epoch"
    expect_in_stdout "$2"
}
plan --set 'data.train=["small.csv", "small.csv"]'
warned "$PWD/small.csv is named twice" "6 samples"
plan --set 'data.train=["small.csv", "link.csv"]'
warned "$PWD/small.csv and $PWD/link.csv are the same" "6 samples"
plan --set 'data.train=["small.csv", "*.csv"]'
warned "$PWD/small.csv and $PWD/link.csv are the same (and 1 more)" "9 samples"
cp small.csv sub/other.csv # alike is not the same
plan --set 'data.train=["small.csv", "sub/other.csv"]'
expect_exit 0
expect_stderr ""

# --- The answer among the questions ------------------------------------------------------------------------------------
column() { printf 'data.columns=[{name="x"},{name="color"},{name="y",type="label"},%s]' "$1"; }
refused() {
    plan --set "$2" "${@:3}"
    expect_exit 2
    expect_stdout ""
    expect_stderr_lines 1
    expect_in_stderr "$1"
}
leak="which is the label: the network would be told what it is to learn"
refused "z (cross) is made of y, $leak" "$(column '{name="z",of=["color","y"],type="cross"}')"
refused "z (guess) is made of y, $leak" "$(column '{name="z",of="y"}')"
refused "z (categorical) is made of y, $leak" "$(column '{name="z",of="y",type="categorical",hash=5}')"
# --- Keys that would be read by nobody
refused "x (numeric): embedding is for categories" 'data.columns=[{name="x",type="numeric",embedding=4},{name="y",type="label"}]'
refused "x (numeric): vocabulary is for categories and labels" 'data.columns=[{name="x",type="numeric",vocabulary=["1"]},{name="y",type="label"}]'
refused "x (numeric): boundaries are for a bucket" 'data.columns=[{name="x",type="numeric",boundaries=[1.5]},{name="y",type="label"}]'
# --- Categories are no magnitudes: one-hot in networks for tables, refused by networks for pictures
plan --set model.name=trivial
expect_exit 0
expect_in_stdout "trivial, 16,390 parameters" # 3 -> 1, 1 -> 4096, 4096 -> 2
plan --set model.name=resnet20
expect_exit 2
expect_stderr_lines 1
expect_in_stderr "model.name: resnet20 is for pictures and would read the categories of column color as magnitudes"

# --- Names that would make several lines of one ------------------------------------------------------------------------
cp small.csv $'two\nlines.csv'
for format in csv libsvm cifar tfrecord image_folder; do
    plan --set 'data.train="two\nlines.csv"' --set data.format=$format
    expect_exit 2
    expect_stderr "lockstep: data.train: $PWD/two\\x0alines.csv: a control character in the name of a file; rename it"
done
plan --set 'data.train="small.csv\u0000.gz"' # the system would open small.csv
expect_exit 2
expect_in_stderr 'small.csv\x00.gz: a control character in the name of a file; rename it'
plan --set 'data={format="idx",train={images="a\nb",labels="c"}}'
expect_exit 2
expect_stderr_lines 1

# --- inspect goes by what is in a file -----------------------------------------------------------------------------------
inspect() { run timeout 20 "$lockstep" inspect "$@"; }
inspect "$files/npy/f4_2x3.npy"
expect_exit 0
expect_in_stdout "kind: npy"
expect_in_stdout "type: f4"
expect_in_stdout "shape: [2,3]"
cp "$files/npy/f4_2x3.npy" renamed.txt
inspect renamed.txt
expect_in_stdout "kind: npy"
cp "$files/npy/xy_stored.npz" renamed.zip
inspect renamed.zip
expect_in_stdout "arrays: x, y"
expect_in_stdout "classes: 3"
cp small.csv small.data
inspect small.data
expect_exit 3
expect_stderr_lines 1
expect_in_stderr "small.data: its first bytes are of no kind of file known here"
inspect $'two\nlines'
expect_exit 3
expect_stderr_lines 1

# --- A word in a column of numbers makes categories of them: said --------------------------------------------------------
{ echo x,y; for i in {1..30}; do echo "$i.5,$((i % 2))"; done; echo oops,1; } > word.csv
inspect word.csv
expect_exit 0
expect_in_stderr 'column x is taken for categories, as 1 of its 31 values are no numbers (the first: "oops")'
sed 's/oops/nan/' word.csv > nan.csv
inspect nan.csv
expect_exit 0
expect_stderr_lines 0

# --- A column of names of the rows: said once, with the key that leaves it out ------------------------------------------
{ echo id,x,y; for i in {1..60}; do echo "r$i,$i.5,$((i % 2))"; done; } > ids.csv
inspect ids.csv
expect_exit 0
expect_stderr "lockstep: warning: ids.csv: column id is taken for categories, 60 of them in 60 rows: if they name or number the rows, leave them out with type = \"skip\" in data.columns; hash or embedding makes fewer values of them"
plan --set data.train=ids.csv
expect_exit 0
expect_stderr_lines 1
plan --set data.train=ids.csv --set 'data.columns=[{name="id",type="skip"}]'
expect_exit 0
expect_stderr_lines 0
expect_in_stdout "60 samples of 1x1x1, 2 classes"
{ echo id,other,x,y; for i in {1..60}; do echo "r$i,o$((i / 2)),$i.5,$((i % 2))"; done; } > ids.csv
inspect ids.csv
expect_stderr_lines 1
expect_in_stderr "60 rows (and 1 more such column): if they"
for i in {1..60}; do sed -i "s/o$i,/o$((i % 15)),/" ids.csv; done # four rows a category: no id
inspect ids.csv
expect_stderr_lines 1
expect_in_stderr "in 60 rows: if they"

# --- Files under the names that they come with, and folders of them ------------------------------------------------------
for name in a9a a9a.t heart.txt heart_scale; do
    cp "$files/heart_scale" "$name"
    inspect "$name"
    expect_exit 0
    expect_in_stdout "kind: libsvm"
    expect_in_stdout "samples: 270"
done
mkdir records cifar
cp "$files"/tfrecord/validation-0000* records
inspect records
expect_exit 3 # of two files one
expect_in_stderr "validation-00001-of-00002; fetch them"
mv records/validation-00000-of-00002 records/one.tfrecord
inspect records
expect_exit 0
expect_in_stdout "kind: tfrecord"
expect_in_stdout "files: 1"
expect_in_stdout "records: 64"
expect_in_stdout "features.image/encoded: bytes"
gzip -c records/one.tfrecord > packed.gz
inspect packed.gz
expect_exit 0
expect_in_stdout "records: 64"
cp "$files/pictures/cifar10_test_first20.bin" cifar/data_batch_1.bin
inspect cifar
expect_exit 0
expect_in_stdout "kind: cifar"
expect_in_stdout "samples: 20"
truncate -s 5000 cifar/data_batch_1.bin
for path in cifar cifar/data_batch_1.bin; do
    inspect $path
    expect_exit 3
    expect_stderr_lines 1
    expect_in_stderr "cifar/data_batch_1.bin: 5000 bytes: a CIFAR-10 file has records of 3073 bytes"
done
inspect "$files/npy/xy_deflated.npz"
expect_exit 0
expect_in_stdout "  x                                f4 [20, 4]"
inspect "$files/npy/xy_stored.npz" --json
expect_in_stdout '"dtype": "f4"'

# --- What is no data is called what it is, by name -----------------------------------------------------------------------
said() { # FILE WORDS [EXIT]
    inspect "$1"
    expect_exit "${3:-3}"
    expect_stdout ""
    expect_stderr_lines 1
    expect_in_stderr "$1"
    expect_in_stderr "$2"
}
head -c 5000 /dev/zero > zeros.csv
said zeros.csv "no text: a byte 00 at 0x0"
printf 'Call me Ishmael.\nSome years ago\n' > prose.csv
said prose.csv ':1: one field alone, "Call me Ishmael.", where a table has two at least'
printf 'BZh91AY&SY' > packed.csv
said packed.csv "packed with bzip2: run bunzip2 on it"
for name in empty.csv empty.libsvm empty.npz empty.npy empty.bin empty.jpg empty.tfrecord empty; do
    : > $name
    said $name "$name: empty"
done
ln -s loop loop
said loop "Too many levels of symbolic links"
ln -s nothing dangling.csv
mkdir links
ln -s ../nothing links/a.csv
cp small.csv links/b.csv
for train in links 'links/*.csv' dangling.csv loop; do
    plan --set "data.train=\"$train\""
    expect_exit 3
    expect_stderr_lines 1
done
