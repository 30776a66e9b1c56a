// Command lines as the public example scripts of each trainer are started, with what each means on one machine.
#include <toml++/toml.h>
#include <catch2/catch.hpp>

#include "explain/import_line.hpp"

namespace lockstep {
namespace {

struct Example {
    const char* line;
    std::vector<const char*> holds;      // of the config
    std::vector<const char*> refused{};  // the beginnings of what cannot be honoured, all of it
};

void check(const char* from, const std::vector<Example>& examples) {
    for (const Example& example : examples) {
        CAPTURE(example.line);
        const ImportedConfig config = import_line(from, example.line);
        CAPTURE(config.toml);
        CHECK_NOTHROW(toml::parse(config.toml));
        for (const char* text : example.holds) CHECK_THAT(config.toml, Catch::Contains(text));
        CHECK(config.refused.size() == example.refused.size());
        for (std::size_t i = 0; i < std::min(config.refused.size(), example.refused.size()); ++i)
            CHECK_THAT(config.refused[i], Catch::StartsWith(example.refused[i]));
    }
}

TEST_CASE("torchvision's training script") {
    check("ddp",
          {{"torchrun --nproc_per_node=8 train.py --model resnet50 --data-path D",
            {"\nsize = 256 ", "\nlr = 0.1 ", "every_epochs = 30.0", "weight_decay = 1e-04", "\"D/train\"",
             "\nepochs = 90 "}},
           {"python -m torch.distributed.launch --nproc_per_node=8 --use_env train.py --model vgg16 --lr 1e-2",
            {"\nsize = 256 ", "\nlr = 0.01 ", "shape = [224, 224, 3]", "classes = 1000", "dropout = 0.5"}},
           {"torchrun --nproc_per_node=8 train.py --model resnet50 --batch-size 128 --lr 0.5 --lr-scheduler "
            "cosineannealinglr "
            "--lr-warmup-epochs 5 --lr-warmup-method linear --auto-augment ta_wide --epochs 600 --random-erase 0.1 "
            "--weight-decay 0.00002 --norm-weight-decay 0.0 --label-smoothing 0.1 --mixup-alpha 0.2 --cutmix-alpha 1.0 "
            "--train-crop-size 176 --model-ema --val-resize-size 232 --ra-sampler --ra-reps 4",
            {"\nsize = 1024 ", "name = \"cosine\"", "warmup_epochs = 5.0", "decay = \"weights\"",
             "label_smoothing = 0.1", "shape = [176, 176, 3]"},
            {"--mixup-alpha", "--cutmix-alpha", "--auto-augment", "--random-erase", "--ra-sampler", "--model-ema"}},
           {"torchrun --nproc_per_node=8 train.py --model googlenet --opt RMSprop --lr 0.08 -b64 -j8 --amp",
            {"\nsize = 512 ", "name = \"rmsprop\"", "epsilon = 0.0316", "precision = \"fp16\"", "dropout = 0.2"}},
           {"srun -N 2 --ntasks-per-node=8 python -u train.py --model resnet34 --batch-size 32 --lr 0.1 --sync-bn",
            {"\nsize = 512 ", "name = \"resnet34\"", "--sync-bn: statistics of the whole batch"}},
           {"torchrun --standalone --nproc_per_node 4 train.py --model alexnet --lr 0.01 --opt sgd_nesterov --momentum "
            "0.8",
            {"\nsize = 128 ", "name = \"nesterov\"", "momentum = 0.8"}},
           {"torchrun --nproc_per_node=4 train.py --model resnet18 --opt adamw --lr 0.001 --wd 0.3 --clip-grad-norm 1",
            {"name = \"adamw\"", "weight_decay = 0.3", "clip_norm = 1.0"}},
           {"torchrun --nproc_per_node=8 train.py --model resnet50 --lr-step-size 1 --lr-gamma 0.98 --epochs 300 "
            "--resume c",
            {"every_epochs = 1.0", "factor = 0.98", "\nepochs = 300 "}},
           {"python train.py --model vgg11 --device cpu --batch-size 16 --print-freq 5",
            {"\nsize = 16 ", "every = 5 ", "train.py: no launcher stands in front, so this is one process"}},
           {"accelerate launch --num_processes 4 --mixed_precision bf16 train.py --model resnet18 --batch-size 8",
            {"\nsize = 32 ", "precision = \"bf16\""}}});
}

TEST_CASE("PyTorch's ImageNet example") {
    check(
        "ddp",
        {{"python main.py -a resnet18 D", {"\nsize = 256 ", "\"D/train\"", "\nlr = 0.1 ", "one process"}},
         {"python main.py -a alexnet --lr 0.01 D/", {"name = \"alexnet\"", "\nlr = 0.01 ", "\"D/val\""}},
         {"python main.py -a resnet50 --dist-url tcp://127.0.0.1:1 --dist-backend nccl --multiprocessing-distributed "
          "--world-size 1 --rank 0 D",
          {"\nsize = 256 ", "\"D/train\""}},
         {"python main.py -a resnet50 --dist-url tcp://h:1 --dist-backend nccl --multiprocessing-distributed "
          "--world-size "
          "2 --rank 1 -b 512 D",
          {"\nsize = 1024 "}},
         {"srun -N 2 python main.py -a resnet50 --multiprocessing-distributed -b 256 D", {"\nsize = 512 "}},
         {"python main.py -a resnet18 --dummy", {"samples = 1281167", "test_samples = 50000", "shape = [224, 224, 3]"}},
         {"torchrun --nproc_per_node=2 main.py -a resnet18 -b128 D", {"\nsize = 256 "}},
         {"torchrun --nproc_per_node=2 main.py -a resnet18 D", {"\nsize = 512 "}},  // its batch is 256 a process
         {"python main.py -a vgg16 --gpu 0 -j 8 -p 20 --epochs 3 --wd 5e-4 --momentum 0.95 D",
          {"every = 20 ", "weight_decay = 5e-04", "momentum = 0.95"}},
         {"python main.py --pretrained -e -a resnet50 D", {"\"D/train\""}, {"-e: ", "--pretrained"}},
         {"mpirun -np 4 python main.py -a resnet18 --world-size 4 --rank 0 -b 64 D", {"\nsize = 256 "}}});
}

TEST_CASE("Horovod's examples") {
    check(
        "horovod",
        {{"horovodrun -np 8 python pytorch_imagenet_resnet50.py --train-dir T --val-dir V",
          {"\nsize = 256 ", "\nlr = 0.1 ", "weight_decay = 5e-05", "values = [0.1, 0.01, 0.001, 1e-04]",
           "\nepochs = 90 "}},
         {"mpirun -np 16 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -mca pml ob1 -mca btl ^openib python "
          "pytorch_imagenet_resnet50.py --train-dir T --val-dir V --batches-per-allreduce 2 --fp16-allreduce",
          {"\nsize = 1024 ", "\nlr = 0.4 ", "\nshards = 16 "},
          {"--fp16-allreduce"}},
         {"horovodrun -np 4 python pytorch_mnist.py",
          {"\nsize = 256 ", "\nlr = 0.04 ", "momentum = 0.5", "\nepochs = 10 ", "MNIST/raw/train-images-idx3-ubyte"}},
         {"python pytorch_mnist.py --num-proc 2 --hosts localhost:2 --communication gloo --no-cuda --data-dir D",
          {"\nsize = 128 ", "D/MNIST/raw"}},
         {"horovodrun -np 4 python tensorflow2_keras_mnist.py",
          {"\nsize = 512 ", "\nlr = 0.004 ", "name = \"adam\"", "epsilon = 1e-07", "\nsteps = 3000 ",
           "warmup_epochs = 3.2", "kind = \"conv\", channels = 32"}},
         // 24 epochs of 500 // 8 = 62 steps; three of those are 3 x 62 x 1024 / 60,000 of ours.
         {"horovodrun -np 8 python tensorflow2_keras_mnist.py", {"\nsteps = 1488 ", "warmup_epochs = 3.1744"}},
         {"mpirun -np 2 -H a:1,b:1 python tensorflow2_mnist.py", {"\nsize = 256 ", "\nsteps = 5000 ", "\nlr = 0.002 "}},
         {"srun -n 4 python keras_imagenet_resnet50.py --train-dir T --val-dir V --wd 0.0001",
          {"l2 = 2e-04", "decay = \"weights\"", "\nlr = 0.05 "}},
         {"horovodrun -np 4 python pytorch_cifar10.py",
          {"\nsize = 512 ", "\nlr = 0.04 ", "weight_decay = 5e-04", "pad_crop = 4"}},
         {"horovodrun -np 4 python pytorch_synthetic_benchmark.py --model resnet50 --batch-size 64 --num-iters 5",
          {"\nsize = 256 ", "\nsteps = 60 ", "name = \"sgd\"", "\nlr = 0.04 ", "shape = [224, 224, 3]"}},
         {"horovodrun -np 4 python tensorflow2_synthetic_benchmark.py --model ResNet50",
          {"\nsize = 128 ", "\nsteps = 110 ", "\nlr = 0.01 "}},
         {"horovodrun -np 2 python mine.py --batch-size 8 --lr 0.1 --steps 400 --momentum 0",
          {"\nsize = 16 ", "\nsteps = 400 ", "name = \"sgd\"", "\nlr = 0.2 "}},
         {"horovodrun -np 2 python mine.py --batch-size 8 --lr 0.1 --steps-per-epoch 50 --epochs 4 --use-adasum",
          {"\nsteps = 200 ", "\nlr = 0.1 "},
          {"--use-adasum"}}});
    const ImportedConfig unknown = import_line("horovod", "horovodrun -np 2 python mine.py --model resnet18");
    CHECK(unknown.changed.front() ==
          "no --batch-size, --epochs, --lr: what stands in its place is a guess, not your script's");
    CHECK_THAT(unknown.toml, !Catch::Contains("weight_decay") && !Catch::Contains("warmup_epochs"));
}

TEST_CASE("tf_cnn_benchmarks") {
    check("tf_cnn_benchmarks",
          {{"python tf_cnn_benchmarks.py --num_gpus=1 --batch_size=32 --model=resnet50 "
            "--variable_update=parameter_server",
            {"\nsize = 32 ", "\nsteps = 100 ", "format = \"synthetic\"", "shape = [224, 224, 3]", "classes = 1001"}},
           {"python tf_cnn_benchmarks.py --local_parameter_device=cpu --num_gpus=8 --batch_size=64 --model=vgg16 "
            "--variable_update=replicated --all_reduce_spec=nccl --nodistortions --gradient_repacking=8",
            {"\nsize = 512 ", "name = \"vgg16\"", "dropout = 0.5"}},
           {"python3 tf_cnn_benchmarks.py --data_format=NHWC --device=cpu --mkl=true --model=alexnet --data_dir D "
            "--nodistortions "
            "--num_epochs 2",
            {"resized_crop = true", "flip = true", "\"D/train-*\"", "\nepochs = 2 "}},
           {"python tf_cnn_benchmarks.py --model=resnet20 --data_name=cifar10 --data_dir=D --distortions=False "
            "--num_epochs=1",
            {"format = \"cifar\"", "boundaries = [82.0, 123.0, 300.0]"}},
           {"mpirun -np 8 -H a:4,b:4 -bind-to none python tf_cnn_benchmarks.py --model resnet50 --batch_size 64 "
            "--variable_update horovod --use_fp16 --num_batches 500",
            {"\nsize = 512 ", "\nsteps = 500 ", "precision = \"fp16\""}},
           {"horovodrun -H a:4,b:4 python tf_cnn_benchmarks.py --model=googlenet --batch_size=16 "
            "--variable_update=horovod",
            {"\nsize = 128 "}},
           {"srun -n 4 python tf_cnn_benchmarks.py --model=resnet50_v1.5 --batch_size=256 --variable_update=horovod "
            "--num_epochs=90 --weight_decay=1e-4 --optimizer=momentum",
            {"\nsize = 1024 ", "name = \"resnet50_v1.5\"", "\nlr = 0.512 ", "l2 = 1e-04"}},
           {"python tf_cnn_benchmarks.py --model=resnet50 --batch_size=256 --resnet_base_lr=0.06 --num_epochs=90",
            {"\nlr = 0.06 "}},
           {"python tf_cnn_benchmarks.py --model=trivial --eval=false --noforward_only --gradient_clip=3",
            {"name = \"trivial\"", "# nothing to do here: --eval=false: off, there too"},
            {"--gradient_clip=3"}},
           {"python tf_cnn_benchmarks.py --model=lenet --optimizer=adam --init_learning_rate=0.001 --train_dir=/tmp/t "
            "--save_model_steps=50 --display_every=5 --trace_file=/tmp/x",
            {"name = \"adam\"", "every_steps = 50 ", "every = 5 "}}});
}

TEST_CASE("TensorFlow's census samples") {
    check("estimator",
          {{"python wide_deep.py --model_type=wide_deep",
            {"\nsize = 40 ", "\nepochs = 40 ", "name = \"adagrad\"", "\nlr = 0.05 ", "\"/tmp/census_data/adult.data\"",
             "every_epochs = 2 ", "hash = 1000", "hidden = [100, 75, 50, 25]"}},
           {"python wide_deep.py -dd D -md M -mt deep -te 10 -ebe 1 -bs 64 -hk LoggingTensorHook",
            {"\nsize = 64 ", "\nepochs = 10 ", "name = \"mlp\"", "\"D/adult.test\"", "every_epochs = 1 "}},
           {"python census_main.py --data_dir D --model_dir M --train_epochs 4 --download_if_missing",
            {"\nepochs = 4 ", "\"D/adult.data\""}},
           {"python wide_n_deep_tutorial.py --model_type=wide --train_steps=200 --train_data=a.csv --test_data=b.csv",
            {"\nsteps = 200 ", "name = \"logistic\"", "train = [\"a.csv\"]", "test = [\"b.csv\"]"}},
           {"gcloud ai-platform jobs submit training census --job-dir gs://o --runtime-version 1.4 --module-name "
            "trainer.task --package-path trainer/ --region us-central1 --scale-tier STANDARD_1 -- --train-files "
            "gs://b/adult.data.csv --eval-files gs://b/adult.test.csv --train-steps 1000 --verbosity DEBUG",
            {"\nsteps = 1000 ", "5 workers there", "train = [\"gs://b/adult.data.csv\"]", "hash = 1000"}},
           {"gcloud ml-engine local train --module-name trainer.task --package-path trainer/ --distributed "
            "--worker-count 3 -- "
            "--train-files a b --eval-files c --train-batch-size 64 --num-epochs 5 --learning-rate 0.01",
            {"\nsize = 64 ", "4 workers there", "train = [\"a\", \"b\"]", "\nlr = 0.01 "}},
           {"python -m trainer.task --train-files adult.data --eval-files adult.test --job-dir o --num-epochs 1 "
            "--train-batch-size "
            "128 --first-layer-size 100 --num-layers 4 --scale-factor 0.7 --eval-steps 100",
            {"\nsize = 128 ", "\nepochs = 1 ", "hidden = [100, 70, 48, 34]", "strip = \".\""}},
           {"python task.py --worker_hosts=a:1,b:1,c:1 --ps_hosts=d:1 --job_name=worker --task_index=0 --batch_size=32 "
            "--max_steps=500",
            {"\nsize = 32 ", "\nsteps = 500 ", "3 workers there"}},
           {"python train.py --train_data t.csv --test_data e.csv --optimizer=Adam --learning_rate=0.001 "
            "--hidden_units 64 32",
            {"test = [\"e.csv\"]", "hidden = [64, 32]"}},
           {"--scale-tier PREMIUM_1 --train-files x.csv --train-steps 10 --embedding-size 8",
            {"\nshards = 20 ", "\nsteps = 10 "},
            {"--embedding-size"}}});
}

TEST_CASE("the deep part of the census has no columns of the linear one") {
    const ImportedConfig deep = import_line("estimator", "python wide_deep.py -mt deep");
    CHECK_THAT(deep.toml, !Catch::Contains("type = \"cross\"") && !Catch::Contains("type = \"bucket\""));
    CHECK_THAT(deep.changed.front(), Catch::StartsWith("occupation: an embedding of 8 there"));
    for (const char* line : {"python wide_deep.py -mt wide", "python wide_deep.py"}) {
        CHECK_THAT(import_line("estimator", line).toml, Catch::Contains("type = \"cross\""));
    }
}

}  // namespace
}  // namespace lockstep
