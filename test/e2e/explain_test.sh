#!/usr/bin/env bash
# What: lockstep explain and lockstep config import through the executable: the figures of two public reports, the model
# of two weights, a run under other rules, pasted command lines, refusals; and that no trainer reaches any of it.
# Usage: explain_test.sh PATH_TO_LOCKSTEP SOURCE_FOLDER
# Needs: mpirun; works in a temporary folder.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/assertions.sh"
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"
lockstep=$1
sources=$2
cd "$(mktemp -d)"
trap 'rm -rf "$PWD"' EXIT
unset "${!LOCKSTEP_@}"
small_config > small.toml

explain() { run timeout 100 "$lockstep" explain "$@"; }
import() { run timeout 20 "$lockstep" config import --from "$@"; }

# The first report: 650,000 examples, batch 128.
for case in 1:5079 5:25395 6:30474; do
    explain --scheme estimator --workers "${case%:*}" --samples 650000 --batch 128 --json
    expect_exit 0
    expect_stderr ""
    [[ $(wc -l < stdout) == 1 ]] || fail "the JSON is more than one line"
    expect_in_stdout "{\"scheme\":\"estimator\",\"workers\":${case%:*},"
    expect_in_stdout "\"steps_per_epoch\":${case#*:},"
    expect_in_stdout '"lockstep":{"steps_per_epoch":5079,'
done
expect_in_stdout '"samples_per_epoch":3900000,"passes_per_epoch":6.0,'
expect_in_stdout '"effective_batch":768,"gradient_scale":1.0,"optimizer_steps_per_batch":6,'
# As a table, with the reason of each line; the job may come from a config, and parts of it from elsewhere.
explain --scheme ddp --workers 2 -c small.toml
expect_exit 0
expect_in_stdout "203 samples, batch 24, 2 epochs, 2 workers"
expect_in_stdout "the sampler makes parts equal by reading the first samples again"
expect_in_stdout "To get what was meant, on any number of ranks:  batch.size = 24  optimizer.lr = 0.05  train.epochs = 2"
explain --scheme ddp --workers 2 -c small.toml --samples 1000 --json
expect_in_stdout '"samples":1000,'
# What the command line says of the batch and the length goes into all that follows from them.
explain --scheme ddp --workers 2 -c small.toml --set model.name=resnet20 --set batch.shards=4 --batch 48 --json
expect_in_stdout '"batch_norm_samples":24,'
expect_in_stdout '"batch_norm_samples":12,'
explain --scheme ddp --workers 2 -c small.toml --set train.steps=5
expect_in_stdout "203 samples, batch 24, 5 steps, 2 workers"
expect_in_stdout "train.steps = 5"
explain --scheme ddp --workers 2 -c small.toml --set train.steps=5 --epochs 3
expect_in_stdout "203 samples, batch 24, 3 epochs, 2 workers"
grep -qE '^ *steps in all +27 +27 *$' stdout || fail "3 epochs of 9 steps are not 27"
# A worker that is to take more than it has takes what it has, and the table says so.
explain --scheme ddp --workers 4 --samples 1003 --batch 64 --worker-batch 5000
expect_exit 0
grep -qE '^ *effective batch +1,004 +64 ' stdout || fail "four parts of 251 are not 1,004"
expect_in_stdout "a worker's batch of 5,000 is more than it reads in an epoch: all 251 in one step"

# The model of two weights, to the last digit that the reference gives.
example() { explain --example --json --scheme "$1" --workers "$2" --set optimizer.name="$3"; }
example tf-distributed-replicated 2 sgd
expect_exit 0
expect_in_stdout '"losses":[[1.15625,-0.78606224060'
expect_in_stdout ',[17.15625,-2.2968044281'
example tf-replicated 1 nesterov
expect_in_stdout '"losses":[[1.15625,6.3540975379'
example tf-parameter-server 1 rmsprop
expect_in_stdout '"losses":[[1.15625,8.6083341633'
example ddp 2 nesterov
expect_in_stdout '"mean_losses":[9.15625,-0.8733689260'

# The help says what is needed, and whose rules each scheme has.
explain --help
expect_exit 0
expect_in_stdout "of -c FILE (or --set), of --samples with --batch, or --example: one is needed"
expect_in_stdout "  ddp-drop-last              the same with drop_last=True"
# Without batch norm there is no batch of it.
explain --scheme ddp --workers 2 -c small.toml
grep -qE '^ *batch-norm batch +- +- +this model has no batch norm$' stdout || fail "a batch-norm batch of a model without"

# A run under other rules beside Lockstep's own, whose numbers are those of train.
explain --scheme tf-distributed-replicated --workers 2 -c small.toml --run --json
expect_exit 0
cp stdout compared
expect_in_stdout '"run":{"evaluated":"test","lockstep":{"name":"lockstep",'
expect_in_stdout '"causes":[{"name":"shift ratio 0",'
expect_in_stdout '{"name":"sum for mean",'
expect_in_stdout '{"name":"optimizer stepped W times",'
expect_in_stdout '"scheme":{"name":"tf-distributed-replicated","why":"all together","updates":34,'
expect_in_stdout '"without_effect":["batch norm over B/W: mlp has none"]'
run "$lockstep" train -c small.toml --out own --progress none
expect_exit 0
loss=$(sed -n '/"event":"eval"/s/.*"loss":\([0-9.e+-]*\).*/\1/p' own/metrics.jsonl | tail -n 1)
[[ $(cat compared) == *"{\"epoch\":2,\"loss\":$loss,"* ]] || fail "Lockstep's own loss is not that of train, $loss"
sum=$(sha256sum < own/model.safetensors | cut -d ' ' -f 1)
[[ $(cat compared) == *"\"worlds\":[1,2],\"sha256\":\"$sum\""* ]] || fail "Lockstep's own weights are not those of train"
# Under mpirun one rank answers.
run mpi 2 "$lockstep" explain --scheme ddp --workers 2 --samples 100 --batch 10 --json
expect_exit 0
[[ $(wc -l < stdout) == 1 ]] || fail "more than one rank answered"

# Both commands of the second report, as they were posted: one job.
one='python tf_cnn_benchmarks.py --local_parameter_device=gpu --num_gpus=1 --batch_size=64 --model=resnet50 --variable_update=replicated --data_name=imagenet --data_dir=D/imagenet --init_learning_rate=0.010000 --optimizer=momentum --num_epochs=5 --summary_verbosity=1 --train_dir=O/single_machine'
two='python tf_cnn_benchmarks.py --local_parameter_device=gpu --num_gpus=1 --batch_size=32 --model=resnet50 --variable_update=distributed_replicated --data_name=imagenet --data_dir=D/imagenet --job_name=worker --ps_hosts=host0:2223,host1:2223 --worker_hosts=host0:2224,host1:2224 --init_learning_rate=0.010000 --optimizer=momentum --num_epochs=5 --train_dir=O/two-machines --summary_verbosity=1 --task_index=0'
settings() { sed -E '/^#/d; s/ +# .*//' stdout; }
# shellcheck disable=SC2086 # words
import tf_cnn_benchmarks -- $one
expect_exit 0
expect_stderr_lines 1
expect_in_stderr "lockstep: warning: evaluation: a resize and a crop of the centre there"
expect_in_stdout 'scope = "global"'
expect_in_stdout 'l2 = 4e-05'
settings > one.toml
# shellcheck disable=SC2086
import tf_cnn_benchmarks -- ${two#python tf_cnn_benchmarks.py }
expect_exit 0
settings > two.toml
expect_in_stdout "size = 64"
diff one.toml two.toml || fail "the two machines' job is not the one machine's"
run "$lockstep" config check -c two.toml
expect_exit 0
# Each of its networks without data is a job at once.
for model in lenet resnet20; do
    import tf_cnn_benchmarks -- --model=$model --optimizer=rmsprop
    cp stdout job.toml
    run "$lockstep" plan -c job.toml --json --ranks 2
    expect_exit 0
    expect_in_stdout '"steps":100,'
done
expect_in_stdout '"parameters":269787,'
# So is each of torchvision's: made-up pictures of the size that it takes.
for model in vgg11 alexnet googlenet resnet18; do
    import ddp -- torchrun --nproc_per_node=2 train.py --model $model --batch-size 4 --epochs 1
    expect_exit 0
    expect_in_stdout "shape = [224, 224, 3]"
    cp stdout job.toml
    run "$lockstep" plan -c job.toml --json --ranks 2
    expect_exit 0
    expect_in_stdout '"samples":1003,"batch":8,'
done
# The epochs at which torchvision's rate falls behind a warm-up, as its scheduler has them: 126 updates an epoch.
import ddp -- torchrun --nproc_per_node=2 train.py --model resnet18 --batch-size 4 --lr 0.5 --epochs 40 --lr-warmup-epochs 2 --lr-warmup-method linear --lr-warmup-decay 0.1
cp stdout job.toml
run "$lockstep" plan -c job.toml --json --ranks 1 --set 'data.shape=[32,32,3]' --lr-at 126,127,253,4032,4033
expect_exit 0
for point in 126:0.05 127:0.275 253:0.5 4032:0.5 4033:0.05; do
    expect_in_stdout "{\"step\":${point%:*},\"lr\":${point#*:}}"
done
# Foreign text makes no line of the config.
import tf_cnn_benchmarks -- --model=lenet $'--zoo=1\n[train]\nsteps = 3\r\e[31m'
expect_exit 0
expect_in_stdout '# cannot be honoured: --zoo=1\x0a[train]\x0asteps = 3\x0d\x1b[31m: not known here'
expect_stderr_lines 1
cp stdout job.toml
run "$lockstep" config show -c job.toml
expect_in_stdout "steps = 100 "

# What can be trained today goes all the way; a flag that cannot be honoured is named, and the rest stands.
import ddp -- torchrun --nproc_per_node=2 train.py --batch-size 16 --lr 0.1 --epochs 1 --lr-step-size 1 --mixup-alpha 0.2
expect_exit 0
expect_in_stderr "lockstep: warning: --mixup-alpha 0.2: there is no such thing in [augment] or [train]"
cp stdout job.toml
run "$lockstep" config check -c job.toml
expect_exit 0
run "$lockstep" plan -c job.toml --json --ranks 1
expect_in_stdout '"samples":1003,"batch":32,'
import horovod -- horovodrun -np 4 python train.py --batch-size 8 --lr 0.01 --epochs 1 --warmup-epochs 0.5
expect_exit 0
cp stdout job.toml
run "$lockstep" plan -c job.toml --json --ranks 1 --lr-at 16
expect_in_stdout '"batch":32,'
expect_in_stdout '{"step":16,"lr":0.04}'
# Accumulated batches of a network with batch norm over the whole batch: no passes, which train and plan would refuse.
import horovod -- horovodrun -np 4 python train.py --model resnet18 --batch-size 8 --batches-per-allreduce 2
expect_exit 0
expect_in_stdout "# --batches-per-allreduce: no batch.micro = 8, since batch norm's statistics are of the whole batch"
cp stdout job.toml
run "$lockstep" plan -c job.toml --json --ranks 1
expect_exit 0
expect_in_stdout '"batch":64,'
run "$lockstep" plan -c job.toml --set batch.micro=8 --json --ranks 1
expect_exit 2
# PyTorch's example as its README starts it, and workers that only a launcher names.
import ddp -- python main.py -a resnet50 --dist-url 'tcp://127.0.0.1:FREEPORT' --dist-backend 'nccl' --multiprocessing-distributed --world-size 1 --rank 0 '[imagenet-folder]'
expect_exit 0
expect_in_stderr "lockstep: warning: batch norm: over its own samples for each GPU there"
expect_in_stdout "size = 256 "
import tf_cnn_benchmarks -- mpirun -np 4 python tf_cnn_benchmarks.py --variable_update=horovod --model=resnet50 --batch_size=64 --data_dir=D
expect_exit 0
expect_in_stderr "lockstep: warning: batch norm: over 64 samples of its own for each GPU there"
expect_in_stdout "size = 256 "
import ddp -- srun -N 2 --ntasks-per-node=4 python -u train.py --model vgg11 --batch-size 4 -n 99
expect_exit 0
expect_in_stderr "lockstep: warning: -n 99: not known here"
expect_in_stdout "size = 32 "
import estimator -- gcloud ml-engine local train --distributed --worker-count 2 -- --train-files a.csv --train-batch-size 64
expect_exit 0
expect_in_stdout "size = 64 "
expect_in_stdout "# 3 workers there"
import estimator -- '--hidden_units=[100,75]'
expect_exit 0
expect_in_stdout "hidden = [100, 75]"

# Refusals: one line, exit 2.
refused() {
    expect_exit 2
    expect_stdout ""
    expect_stderr_lines 1
    expect_in_stderr "$1"
}
explain --scheme hovorod-sum --samples 1 --batch 1
refused "--scheme hovorod-sum: no such scheme; did you mean horovod-sum?"
explain --scheme ddp
refused "Name a config (-c FILE), or --samples and --batch, or --example"
explain --samples 10 --batch 2
refused "--scheme"
explain --scheme ddp --workers 0 --samples 10 --batch 2
refused "--workers"
explain --scheme ddp --workers 5 --samples 10 --batch 2
refused "a batch of 2 leaves 5 workers"
explain --scheme ddp --workers 5 -c small.toml --run
refused "batch.size = 24 is no multiple of 5 workers"
explain --scheme ddp --samples 10 --batch 2 --run
refused "explain --run trains a config"
explain --scheme ddp --example --set optimizer.name=lamb
refused "lamb"
explain --scheme ddp --example -c small.toml --epochs 3 --run --set batch.size=4 --set optimizer.lr=0.1
refused "takes --set optimizer.KEY=VALUE alone: leave out -c, --epochs, --run, --set batch.size=4"
explain --scheme ddp --workers 2 -c small.toml --shift-ratio real
refused "--shift-ratio real: workers of ddp have none"
explain --scheme estimator --workers 4096 --samples 1099511627776 --batch 1 --epochs 1000000
refused "beyond 64 bits"
import keras -- --batch_size=3
refused "--from keras: it is tf_cnn_benchmarks, estimator, horovod or ddp"
import tf_cnn_benchmarks -- --model=inception3
refused "--model=inception3: Lockstep has no such network"
import ddp -- --lr 0.1
refused "torchrun --nproc_per_node=P"
import ddp -- srun python train.py -n 4
refused "how many processes? Write srun --ntasks=P"
import tf_cnn_benchmarks -- --model=lenet --data_dir --batch_size 64
refused "--data_dir: no value stands behind it"
import tf_cnn_benchmarks -- --model=lenet --weight_decay=-1
refused "--weight_decay=-1: optimizer.l2 must be at least 0"
import estimator -- --hidden_units 100,abc
refused "--hidden_units 100,abc: the value is no list of whole numbers"
import horovod -- horovodrun -np 4 python train.py --lr 1e308
refused "--lr 1e308: optimizer.lr must be finite, got inf"
import ddp -- torchrun --nproc_per_node=2 train.py --batch-size 9223372036854775807
refused "batch.size can be at most"

# Nothing but the executable knows of other trainers' rules.
if grep -rlE --include=*.hpp --include=*.cpp --include=*.cu --include=*.h '"explain/' "$sources/lib" "$sources/cuda" | grep -v "^$sources/lib/explain/"; then
    fail "a library includes lib/explain"
fi
