#!/usr/bin/env bash
# What: the census experiments and a regression through the executable: raw files from a short config, what plan and
#       inspect say of them, equal bytes on 1 to 4 ranks, and evaluation against the predictions counted by hand.
# Usage: census_test.sh PATH_TO_LOCKSTEP CONFIGS FILES
# Needs: mpirun, awk, gzip. Works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
configs=$2
files=$3
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
gzip -c "$files/adult.data" > adult.data.gz

census=(-c "$configs/census_wide_deep.toml" --set "data.train=$PWD/adult.data.gz" --set "data.test=$files/adult.test"
        --set train.epochs=5 --set optimizer.lr=0.01 --set device.threads=1)

# --- What was taken for what ------------------------------------------------------------------------------------------
run "$lockstep" plan "${census[@]}" --ranks 1,2
expect_exit 0
expect_in_stdout "2,000 samples of 1x1x13, 2 classes; 1,000 to test"
expect_in_stdout "workclass: 7 categories (Federal-gov, Local-gov, Private, Self-emp-inc, "
expect_in_stdout "hashed into 1000"
expect_in_stdout "income: label, 2 classes (<=50K, >50K)"
run "$lockstep" inspect "$files/california_housing.csv"
expect_exit 0
expect_in_stdout "samples: 1032"
expect_in_stdout "read_as: total_bedrooms: numeric, (x - "
expect_in_stdout "read_as: ocean_proximity: label, "
run "$lockstep" inspect "$files/npy/xy_stored.npz" --json
expect_exit 0
expect_in_stdout '"classes": 3'

# --- The same bytes on any number of ranks, and a result that was learned ------------------------------------------------
run "$lockstep" train "${census[@]}" --out alone
expect_exit 0
for ranks in 2 3 4; do
    run mpi $ranks "$lockstep" train "${census[@]}" --out "ranks-$ranks"
    expect_exit 0
    expect_same_run alone "ranks-$ranks"
done
accuracy=$(sed -nE 's/.*"event":"eval".*"accuracy":([0-9.]+).*/\1/p' alone/metrics.jsonl | tail -n 1)
awk -v a="$accuracy" 'BEGIN { exit !(a > 0.8) }' || fail "an accuracy of $accuracy: nothing was learned"

# --- Evaluation and prediction tell the same ------------------------------------------------------------------------------
run mpi 3 "$lockstep" predict --run alone --out predictions.csv
expect_exit 0
[[ $(head -n 1 predictions.csv) == index,label,class,p0,p1 ]] || fail "the header is $(head -n 1 predictions.csv)"
[[ $(wc -l < predictions.csv) == 1001 ]] || fail "$(wc -l < predictions.csv) lines, 1001 were expected"
awk -F, 'NR > 1 { right += $2 == $3; if (($5 > 0.5) != $3) exit 1 } END { printf "%.10g\n", right / (NR - 1) }' predictions.csv > counted ||
    fail "a class is not that of the larger probability"
run "$lockstep" eval --run alone --json
expect_exit 0
expect_in_stdout "\"accuracy\":$(cat counted),"

# --- Regression ---------------------------------------------------------------------------------------------------------
cat > housing.toml <<TOML
[data]
format = "csv"
train = "$files/california_housing.csv"
test = "$files/california_housing.csv"
[[data.columns]]
name = "median_income"
scale = "standard"
type = "numeric"
[[data.columns]]
name = "total_bedrooms"
[[data.columns]]
name = "ocean_proximity"
[[data.columns]]
name = "median_house_value"
type = "target"
scale = "standard"
[model]
hidden = [16]
[batch]
size = 50
[train]
epochs = 5
TOML
run "$lockstep" train -c housing.toml --out housing
expect_exit 0
run mpi 3 "$lockstep" train -c housing.toml --out housing-3
expect_exit 0
expect_same_run housing housing-3
grep -q '"mse":0\.[1-5]' housing/metrics.jsonl || fail "no mean squared error below that of the mean (1): $(tail -n 2 housing/metrics.jsonl)"
run "$lockstep" predict --run housing --out housing.csv
expect_exit 0
[[ $(head -n 1 housing.csv) == index,target,prediction ]] || fail "the header is $(head -n 1 housing.csv)"

# --- Learned columns are those of the run, or none -------------------------------------------------------------------------
cp "$files/california_housing.csv" changed.csv
run "$lockstep" train -c housing.toml --set "data.train=$PWD/changed.csv" --out learned
run "$lockstep" eval --run learned --set data.validation=0.2 # other rows have other means
expect_exit 2
expect_in_stderr "is no longer what the run was trained on (csv"
run mpi 2 "$lockstep" train -c housing.toml --set "data.train=$PWD/changed.csv" --set data.validation=0.2 --out held
run "$lockstep" eval --run held --split validation --json
expect_exit 0
expect_in_stdout '"count":206'
run "$lockstep" eval --run held --set seed=2
expect_exit 2
sed -i '$d' changed.csv
for command in eval predict; do
    run mpi 2 "$lockstep" $command --run learned
    expect_exit 2
    expect_in_stderr "columns and classes are learned from data.train, which is no longer what the run was trained on (csv"
done
rm -r learned/checkpoints
run "$lockstep" eval --run learned
expect_exit 0

# --- What is wrong is told by file and line, by one line ---------------------------------------------------------------------
sed 's/ Private,/ Private/' "$files/adult.test" > ragged
run mpi 2 "$lockstep" train "${census[@]}" --set "data.test=$PWD/ragged" --out refused
expect_exit 3
expect_in_stderr "ragged:2: 14 fields, but the first record of the training data has 15"
run "$lockstep" train "${census[@]}" --set 'model.name="mlp"' --set 'data.columns=[{name="age",typ="numeric"}]' --out refused
expect_exit 2
expect_in_stderr "data.columns[0].typ: unknown key; did you mean "
