#!/usr/bin/env bash
# What: predict for people: names of classes and files behind the figures, pictures that nobody labelled, the same file
# at any number of ranks; and the weights that other programs wrote for a network, refused with what to do.
# Usage: predict_test.sh PATH_TO_LOCKSTEP FOLDER_OF_TEST_FILES
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

# Two classes of names that a table must quote, of four pictures each.
pictures=("$files"/pictures/cifar10_png/*/*.png)
mkdir -p 'photos/cat, wild' 'photos/dog "tame"' flat/below
for i in 0 1 2 3; do
    cp "${pictures[i]}" "photos/cat, wild/$i.png"
    cp "${pictures[i + 4]}" "photos/dog \"tame\"/$i.png"
done
cp "${pictures[0]}" flat/b.png
cp "${pictures[4]}" flat/a.png
cp "${pictures[8]}" flat/below/c.png
echo "no picture" > flat/notes.txt
cat > photos.toml <<TOML
data = { format = "image_folder", train = "photos", test = "photos", shape = [12, 12, 3] }
model = { hidden = [5] }
batch = { size = 4, shards = 4 }
train = { epochs = 1 }
TOML
run "$lockstep" train -c photos.toml --out run
expect_exit 0

run "$lockstep" predict --run run
expect_exit 0
[[ $(head -n 1 stdout) == index,label,class,p0,p1 ]] || fail "another header: $(head -n 1 stdout)"
cp stdout plain.csv
run "$lockstep" predict --run run --names --out named.csv
expect_exit 0
[[ $(head -n 1 named.csv) == index,label,class,p0,p1,label_name,class_name,file ]] || fail "another header: $(head -n 1 named.csv)"
diff plain.csv <(sed -E 's/^(([^,]*,){4}[^,]*),.*/\1/' named.csv) || fail "the figures are others with names"
grep -q "^0,0,.*,\"cat, wild\",.*,\"$PWD/photos/cat, wild/0.png\"$" named.csv || fail "the first row has not its names"
grep -q "^7,1,.*,\"dog \"\"tame\"\"\",.*,\"$PWD/photos/dog \"\"tame\"\"/3.png\"$" named.csv || fail "the last row has not its names"
run mpi 3 "$lockstep" predict --run run --names --out named-3.csv
expect_exit 0
cmp named.csv named-3.csv

# Pictures of a flat folder, in byte order, and one file; each as it is with a label.
run "$lockstep" predict --run run --input flat --input "photos/cat, wild/0.png" --names --out flat.csv
expect_exit 0
[[ $(cut -d , -f 1,2 flat.csv | tr '\n' ' ') == "index,label 0, 1, 2, 3, " ]] || fail "rows or labels"
grep -q "^0,,.*,,.*,flat/a.png$" flat.csv || fail "the first is not a.png"
figures() { sed -n "$1p" "$2" | cut -d , -f 3-5; }
[[ $(figures 2 flat.csv) == $(figures 6 plain.csv) ]] || fail "a.png is not the first dog"
[[ $(figures 3 flat.csv) == $(figures 2 plain.csv) && $(figures 5 flat.csv) == $(figures 2 plain.csv) ]] || fail "b.png is not the first cat"
[[ $(figures 2 flat.csv) != $(figures 3 flat.csv) ]] || fail "all pictures are one"
run mpi 3 "$lockstep" predict --run run --input flat --input "photos/cat, wild/0.png" --names --out flat-3.csv
expect_exit 0
cmp flat.csv flat-3.csv
# What is predicted stands in the place of the test set, which need not be there.
mv photos moved
run "$lockstep" predict --run run --input flat
expect_exit 3
mv moved photos
cp -r photos tests
run "$lockstep" train -c photos.toml --set 'data.test="tests"' --out apart
expect_exit 0
rm -r tests
run "$lockstep" predict --run apart --input flat
expect_exit 0
run "$lockstep" predict --run apart
expect_exit 3
mkdir empty
run "$lockstep" predict --run run --input empty
expect_exit 3
expect_in_stderr "--input: empty holds no file named .jpg, .jpeg or .png"
run "$lockstep" predict --run run --input nowhere.png
expect_exit 3
run "$lockstep" predict --run run --input flat/notes.txt
expect_exit 3
# Of a table the labels' words; it takes no pictures.
cat > flowers.toml <<TOML
data = { format = "csv", train = "$files/penguins.csv", test = "$files/penguins.csv", label_column = "species", missing = ["NA"] }
model = { name = "logistic" }
train = { epochs = 1 }
TOML
run "$lockstep" train -c flowers.toml --out flowers
expect_exit 0
run "$lockstep" predict --run flowers --names
expect_exit 0
expect_in_stdout "label_name,class_name"
expect_in_stdout ",Adelie,"
run "$lockstep" predict --run flowers --input flat
expect_exit 2
expect_in_stderr '--input: takes pictures, for a network trained on data.format = "idx", "cifar", "image_folder", "tfrecord"; data.train is in format "csv"'

# --- Weights of other programs ------------------------------------------------------------------------------------------
# As torch.save begins: a zip of an archive's pickle, and before version 1.6 the pickle.
{ printf 'PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x00\x00\x00'
    printf 'archive/data.pkl\x80\x02ccollections\nOrderedDict\nq\x00'; } > model.pth
printf '\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.' > old.pt
for file in model.pth old.pt; do
    for command in "plan" "config check" "train --out no"; do
        run timeout 20 "$lockstep" $command -c photos.toml --set model.weights=$file
        expect_exit 3
        expect_stderr_lines 1
        expect_in_stderr "$file: a pickle of torch.save, which Python alone can read; convert it there:"
        expect_in_stderr "safetensors.torch.save_file(torch.load(\"$file\", map_location=\"cpu\"), \"weights.safetensors\")"
    done
    [[ ! -e no ]] || fail "a run directory"
    run "$lockstep" inspect $file
    expect_exit 3
    expect_in_stderr "$file: a pickle of torch.save"
done
# Names behind those of a wrapper: the header is rewritten, its length with it.
wrapped() {
    local length header
    length=$(od -An -tu4 -N4 run/model.safetensors)
    header=$(head -c $((8 + length)) run/model.safetensors | tail -c +9 | sed -E 's/"(fc[0-9.a-z]+)":/"module.\1":/g; s/ *$//')
    while ((${#header} % 8)); do header+=" "; done
    printf "\\x$(printf %02x $((${#header} & 255)))\\x$(printf %02x $((${#header} >> 8)))\\0\\0\\0\\0\\0\\0%s" "$header"
    tail -c +$((9 + length)) run/model.safetensors
}
wrapped > wrapped.safetensors
for command in "plan" "train --out no"; do
    run timeout 20 "$lockstep" $command -c photos.toml --set model.weights=wrapped.safetensors
    expect_exit 2
    [[ $(grep -c "model.weights" stderr) == 1 ]] || fail "more than one line"
    expect_in_stderr "wrapped.safetensors: its tensors have the model's names behind \"module.\""
    expect_in_stderr "model.module.state_dict()"
    [[ ! -e no/run.json ]] || fail "a refused start leaves a run"
done
run mpi 2 "$lockstep" train -c photos.toml --set model.weights=flowers/model.safetensors --out no
expect_exit 2
run "$lockstep" train -c photos.toml --set model.weights=run/model.safetensors --out no
expect_exit 0
run "$lockstep" plan -c photos.toml --set model.weights=run/model.safetensors
expect_exit 0
run "$lockstep" plan -c photos.toml --set model.weights=flowers/model.safetensors
expect_exit 2
expect_in_stderr "which the model needs"
run "$lockstep" plan -c photos.toml --set model.weights=nowhere.safetensors
expect_exit 3
echo "predict: names, pictures without labels, weights of other programs"
