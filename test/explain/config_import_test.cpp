// What config import makes of the command lines of other trainers.
#include "explain/config_import.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "explain/import_line.hpp"

namespace lockstep {
namespace {

// Both commands of a public report, as they were posted.
constexpr const char* kOneMachine =
    "python tf_cnn_benchmarks.py --local_parameter_device=gpu --num_gpus=1 --batch_size=64 --model=resnet50 "
    "--variable_update=replicated --data_name=imagenet --data_dir=D/imagenet --init_learning_rate=0.010000 "
    "--optimizer=momentum --num_epochs=5 --summary_verbosity=1 --train_dir=O/single_machine";
constexpr const char* kTwoMachines =
    "python tf_cnn_benchmarks.py --local_parameter_device=gpu --num_gpus=1 --batch_size=32 --model=resnet50 "
    "--variable_update=distributed_replicated --data_name=imagenet --data_dir=D/imagenet --job_name=worker "
    "--ps_hosts=host0:2223,host1:2223 --worker_hosts=host0:2224,host1:2224 --init_learning_rate=0.010000 "
    "--optimizer=momentum --num_epochs=5 --train_dir=O/two-machines --summary_verbosity=1 --task_index=0";

toml::table table_of(const ImportedConfig& config) {
    INFO(config.toml);
    return toml::parse(config.toml);
}

/// The lines of TOML without comments.
std::string settings(const std::string& toml) {
    std::string kept;
    for (const std::string& line : parts_of(toml, '\n')) {
        const std::string setting = line.substr(0, line.find("  #"));
        if (!setting.starts_with('#')) kept += setting.substr(0, setting.find_last_not_of(' ') + 1) + "\n";
    }
    return kept;
}

TEST_CASE("both commands of the report are one job: the same settings but for what they say") {
    const ImportedConfig one = import_line("tf_cnn_benchmarks", kOneMachine);
    const ImportedConfig two = import_line("tf_cnn_benchmarks", kTwoMachines);
    CHECK(one.refused.empty());
    CHECK(two.refused.empty());
    CHECK(settings(one.toml) == settings(two.toml));
    const toml::table t = table_of(two);
    CHECK(t["batch"]["size"].value<int64_t>() == 64);
    CHECK(t["model"]["name"].value<std::string>() == "resnet50");
    CHECK(t["model"]["flavor"].value<std::string>() == "tf");
    CHECK(t["optimizer"]["name"].value<std::string>() == "nesterov");
    CHECK(t["optimizer"]["lr"].value<double>() == 0.01);
    CHECK(t["optimizer"]["momentum"].value<double>() == 0.9);
    CHECK(t["optimizer"]["l2"].value<double>() == 4e-5);
    CHECK(t["batch_norm"]["scope"].value<std::string>() == "global");
    CHECK(t["train"]["epochs"].value<int64_t>() == 5);
    CHECK(t["data"]["format"].value<std::string>() == "tfrecord");
    CHECK(t["data"]["train"].value<std::string>() == "D/imagenet/train-*");
    CHECK_THAT(two.toml, Catch::Contains("2 workers updated the weights in turn: lr acted as 2 times"));
    CHECK_THAT(one.toml, Catch::Contains("one GPU, nothing to share"));
}

TEST_CASE("every line that was translated says why") {
    for (const char* line : {kOneMachine, kTwoMachines}) {
        const ImportedConfig config = import_line("tf_cnn_benchmarks", line);
        for (const std::string& setting : parts_of(config.toml, '\n')) {
            CAPTURE(setting);
            if (!setting.starts_with('#') && !setting.starts_with('['))
                CHECK(setting.find("  # ") != std::string::npos);
        }
    }
}

TEST_CASE("the command alone, its flags alone, and flags with spaces are the same") {
    const std::string line = kTwoMachines;
    const std::string flags = line.substr(line.find("--local"));
    const std::string expected = import_line("tf_cnn_benchmarks", line).toml;
    CHECK(import_line("tf_cnn_benchmarks", flags).toml == expected);
    CHECK(import_line("tf_cnn_benchmarks", line.substr(line.find("tf_cnn"))).toml == expected);
    std::string spaced = flags;
    for (char& c : spaced) c = c == '=' ? ' ' : c;
    CHECK(settings(import_line("tf_cnn_benchmarks", spaced).toml) == settings(expected));
}

TEST_CASE("a flag that nobody can honour is named, in the config and to the caller") {
    const ImportedConfig config = import_line("tf_cnn_benchmarks", "--model=resnet20 --gradient_clip=2 --frobnicate=7");
    REQUIRE(config.refused.size() == 2);
    CHECK_THAT(config.refused[0], Catch::StartsWith("--gradient_clip=2: "));
    CHECK_THAT(config.refused[1], Catch::StartsWith("--frobnicate=7: not known"));
    CHECK_THAT(config.toml, Catch::Contains("# cannot be honoured: --frobnicate=7"));
}

TEST_CASE("schedules of tf_cnn_benchmarks become schedules by epochs, with the steps of both") {
    const toml::table t =
        table_of(import_line("tf_cnn_benchmarks",
                             "--model=resnet50 --batch_size=32 --data_dir=D --num_epochs=6 "
                             "--piecewise_learning_rate_schedule=1;3;.1;5;.01 --num_learning_rate_warmup_epochs=5"));
    CHECK(t["optimizer"]["lr"].value<double>() == 1.0);
    CHECK(t["schedule"]["name"].value<std::string>() == "piecewise");
    CHECK(t["schedule"]["boundaries"][1].value<double>() == 5.0);
    CHECK(t["schedule"]["values"][2].value<double>() == 0.01);
    CHECK(t["schedule"]["warmup_epochs"].value<double>() == 5.0);
    const ImportedConfig own = import_line("tf_cnn_benchmarks", "--model=resnet50 --batch_size=256 --num_epochs=90");
    CHECK_THAT(own.toml, Catch::Contains("150137 -> 150151"));  // 30 epochs of 5,005 updates, from 1
    CHECK(table_of(own)["optimizer"]["lr"].value<double>() == 0.128);
    CHECK(table_of(own)["schedule"]["warmup_epochs"].value<double>() == 5.0);
    const toml::table step = table_of(
        import_line("tf_cnn_benchmarks",
                    "--model=lenet --init_learning_rate=.5 --num_epochs_per_decay=2 --learning_rate_decay_factor=.9"));
    CHECK(step["schedule"]["name"].value<std::string>() == "step");
    CHECK(step["schedule"]["every_epochs"].value<double>() == 2.0);
    CHECK(step["train"]["steps"].value<int64_t>() == 100);
}

TEST_CASE("what a sum over GPUs did to the learning rate is said, but for the rate that was divided by as many") {
    const auto said = [](const char* flags) {
        return import_line("tf_cnn_benchmarks", std::string("--num_gpus=4 --variable_update=replicated ") + flags).toml;
    };
    CHECK_THAT(said("--model=resnet50"), Catch::Contains("divided its own learning rate by 4: as here"));
    CHECK_THAT(said("--model=resnet50 --init_learning_rate=.1"), Catch::Contains("lr acted as 4 times"));
    CHECK_THAT(said("--model=resnet20"), Catch::Contains("lr acted as 4 times"));
    CHECK_THAT(said("--model=lenet"), Catch::Contains("lr acted as 4 times"));
}

TEST_CASE("RMSProp keeps that program's form") {
    const toml::table t = table_of(import_line("tf_cnn_benchmarks", "--model=vgg16 --optimizer=rmsprop"));
    CHECK(t["optimizer"]["epsilon"].value<double>() == 1.0);
    CHECK(t["optimizer"]["epsilon_inside"].value<bool>() == true);
    CHECK(t["optimizer"]["initial"].value<double>() == 1.0);
    CHECK(t["optimizer"]["rmsprop_momentum"].value<double>() == 0.9);
}

TEST_CASE("an estimator's batch is every worker's there and the job's here") {
    const ImportedConfig config = import_line(
        "estimator",
        "--scale-tier STANDARD_1 --train-files adult.data --eval-files adult.test --train-batch-size=128 "
        "--num-epochs=1 --first-layer-size=100 --num-layers=4 --scale-factor=0.7 --eval-steps=100 --job-dir=gs://x");
    CHECK(config.refused.empty());
    const toml::table t = table_of(config);
    CHECK(t["batch"]["size"].value<int64_t>() == 128);
    CHECK(t["train"]["epochs"].value<int64_t>() == 1);
    CHECK(t["optimizer"]["name"].value<std::string>() == "adam");
    CHECK(t["data"]["format"].value<std::string>() == "csv");
    CHECK(t["data"]["train"][0].value<std::string>() == "adult.data");
    CHECK(t["model"]["name"].value<std::string>() == "wide_deep");
    CHECK(t["model"]["hidden"][1].value<int64_t>() == 70);
    CHECK_THAT(config.toml, Catch::Contains("5 times the steps an epoch"));
}

TEST_CASE("Horovod's batch and learning rate are a worker's, and both grow with the workers") {
    const ImportedConfig config = import_line(
        "horovod",
        "horovodrun -np 4 -H a:2,b:2 python pytorch_imagenet_resnet50.py --train-dir T --val-dir V --batch-size 64 "
        "--base-lr 0.0125 --epochs 90 --warmup-epochs 5 --wd 0.00005 --fp16-allreduce");
    const toml::table t = table_of(config);
    CHECK(t["batch"]["size"].value<int64_t>() == 256);
    CHECK(t["optimizer"]["lr"].value<double>() == 0.05);
    CHECK(t["schedule"]["warmup_epochs"].value<double>() == 5.0);
    CHECK(t["schedule"]["values"][0].value<double>() == 0.05);
    CHECK(t["batch_norm"]["scope"].value<std::string>() == "global");
    CHECK(t["data"]["train"].value<std::string>() == "T");
    REQUIRE(config.refused.size() == 1);
    CHECK_THAT(config.refused[0], Catch::StartsWith("--fp16-allreduce: "));
    CHECK_THAT(config.toml, Catch::Contains("-H a:2,b:2: the launcher's"));
    CHECK_THROWS_WITH(import_line("horovod", "python train.py --batch-size 64"), Catch::Contains("horovodrun -np W"));
}

TEST_CASE("DDP's batch is a process's, and its learning rate the job's") {
    const ImportedConfig config = import_line(
        "ddp",
        "torchrun --nnodes=2 --nproc_per_node=4 train.py --model resnet50 --data-path D --batch-size 32 --lr 0.5 "
        "--lr-scheduler cosineannealinglr --lr-warmup-epochs 5 --lr-warmup-method linear --epochs 100 "
        "--norm-weight-decay 0 --label-smoothing "
        "0.1 "
        "--mixup-alpha 0.2");
    const toml::table t = table_of(config);
    CHECK(t["batch"]["size"].value<int64_t>() == 256);
    CHECK(t["optimizer"]["lr"].value<double>() == 0.5);
    CHECK(t["optimizer"]["name"].value<std::string>() == "momentum");
    CHECK(t["optimizer"]["decay"].value<std::string>() == "weights");
    CHECK(t["schedule"]["name"].value<std::string>() == "cosine");
    CHECK(t["model"]["flavor"].value<std::string>() == "torchvision");
    CHECK(t["train"]["label_smoothing"].value<double>() == 0.1);
    REQUIRE(config.refused.size() == 1);
    CHECK_THAT(config.refused[0], Catch::StartsWith("--mixup-alpha 0.2: "));
    CHECK(std::count(config.changed.begin(), config.changed.end(),
                     "--norm-weight-decay 0: biases do not decay either, here") == 1);
    // PyTorch's own example: short names, the folder without a flag.
    const toml::table own = table_of(import_line(
        "ddp", "torchrun --nproc_per_node=2 main.py -a resnet18 -b 128 -j 8 --lr 0.1 --epochs 90 /data/imagenet"));
    CHECK(own["batch"]["size"].value<int64_t>() == 256);
    CHECK(own["model"]["name"].value<std::string>() == "resnet18");
    CHECK(own["data"]["train"].value<std::string>() == "/data/imagenet/train");
    CHECK(own["schedule"]["every_epochs"].value<double>() == 30.0);
}

TEST_CASE("accumulated batches are passes, but not where batch norm wants the whole batch at once") {
    const auto imported = [](const char* from, const char* line) { return import_line(from, line).toml; };
    const std::string horovod = imported("horovod",
                                         "horovodrun -np 4 python pytorch_imagenet_resnet50.py --train-dir T --val-dir "
                                         "V --batch-size 8 --batches-per-allreduce 2");
    CHECK_THAT(horovod, Catch::Contains("size = 64 ") && Catch::Contains("scope = \"global\"") &&
                            !Catch::Contains("\nmicro = ") &&
                            Catch::Contains("# --batches-per-allreduce: no batch.micro = 8, since batch norm's"));
    const std::string ddp =
        imported("ddp", "torchrun --nproc_per_node=2 train.py --model resnet18 --batch-size 8 --accumulate 4");
    CHECK_THAT(ddp, Catch::Contains("size = 64 ") && !Catch::Contains("\nmicro = ") &&
                        Catch::Contains("# --accumulate: no batch.micro = 8") &&
                        Catch::Contains("batch_norm.scope = \"shard\", with batch.micro"));
    CHECK_THAT(imported("ddp", "torchrun --nproc_per_node=2 train.py --sync-bn --batch-size 8 --accumulate 4"),
               !Catch::Contains("\nmicro = "));
    for (const char* network : {"alexnet", "vgg11"}) {  // without batch norm
        CAPTURE(network);
        const std::string model = std::string(" --model ").append(network);
        CHECK_THAT(import_line("ddp", "torchrun --nproc_per_node=2 x.py --batch-size 8 --accumulate 4" + model).toml,
                   Catch::Contains("\nmicro = 8 "));
        CHECK_THAT(
            import_line("horovod", "horovodrun -np 2 python x.py --batch-size 8 --batches-per-allreduce 4" + model)
                .toml,
            Catch::Contains("\nmicro = 8 "));
    }
    // GoogLeNet of torchvision's has batch norm as its ResNets have, with an epsilon of its own.
    const toml::table inception =
        table_of(import_line("ddp", "torchrun --nproc_per_node=2 train.py --model googlenet"));
    CHECK(inception["batch_norm"]["scope"].value<std::string>() == "global");
    CHECK(inception["batch_norm"]["unbiased"].value<bool>() == true);
    CHECK(inception["batch_norm"]["epsilon"].value<double>() == 1e-3);
}

TEST_CASE("the processes of a launcher are workers for tf_cnn_benchmarks' Horovod, and named in its other modes") {
    for (const char* launcher : {"mpirun -np 4", "horovodrun -np 4 -H a:2,b:2", "mpirun -n 4"}) {
        CAPTURE(launcher);
        const std::string line =
            std::string(launcher).append(" python tf_cnn_benchmarks.py --variable_update=horovod --batch_size=64 ");
        const ImportedConfig config =
            import_line("tf_cnn_benchmarks", line + "--model=resnet50 --num_epochs=1.5 --data_dir=D");
        const toml::table t = table_of(config);
        CHECK(config.refused.empty());
        CHECK(t["batch"]["size"].value<int64_t>() == 256);
        CHECK(t["optimizer"]["lr"].value<double>() == 0.128);          // its own, for 256
        CHECK(t["train"]["steps"].value<int64_t>() == 7507);           // 1.5 x 1,281,167 / 256, rounded up
        CHECK_THAT(config.toml, Catch::Contains("150137 -> 150151"));  // as of a batch of 256
        CHECK_THAT(config.toml, Catch::Contains("--batch_size=64 x 1 GPU x 4 workers"));
        CHECK_THAT(config.toml, Catch::Contains("added 4 workers' gradients: lr acted as 4 times"));
        CHECK_THAT(config.toml, !Catch::Contains("# nothing to do here: -n"));
        CHECK(table_of(import_line("tf_cnn_benchmarks", line + "--num_gpus=2"))["batch"]["size"].value<int64_t>() ==
              512);
    }
    const ImportedConfig other = import_line(
        "tf_cnn_benchmarks", "mpirun -np 4 python tf_cnn_benchmarks.py --model=lenet --batch_size=64 --num_gpus=2");
    CHECK(table_of(other)["batch"]["size"].value<int64_t>() == 128);
    REQUIRE(other.refused.size() == 1);
    CHECK_THAT(other.refused[0], Catch::StartsWith("-np 4: without --variable_update=horovod the same command"));
    CHECK(import_line("tf_cnn_benchmarks", "mpirun -np 1 python tf_cnn_benchmarks.py --model=lenet").refused.empty());
}

TEST_CASE("with --multiprocessing-distributed the batch is a node's, with torchrun in front or without") {
    const auto size_of = [](const std::string& line) {
        const ImportedConfig config = import_line("ddp", line);
        CHECK(config.refused.empty());
        return *table_of(config)["batch"]["size"].value<int64_t>();
    };
    // As its README starts it.
    const std::string readme =
        "python main.py -a resnet50 --dist-url 'tcp://127.0.0.1:FREEPORT' --dist-backend 'nccl' "
        "--multiprocessing-distributed --rank 0 --world-size ";
    CHECK(size_of(readme + "1 [imagenet-folder]") == 256);  // its own batch
    CHECK(size_of(readme + "2 -b 192 [imagenet-folder]") == 384);
    CHECK(size_of("torchrun --nproc_per_node=4 main.py -a resnet50 --multiprocessing-distributed -b 256 DIR") == 256);
    CHECK(size_of("torchrun --nnodes=2 --nproc_per_node=4 main.py --multiprocessing-distributed -b 256 DIR") == 512);
    CHECK(size_of("torchrun --nproc_per_node=4 main.py -a resnet50 -b 256 DIR") == 1024);  // a process's
    const ImportedConfig config = import_line("ddp", readme + "2 -b 192 DIR");
    CHECK(table_of(config)["data"]["train"].value<std::string>() == "DIR/train");
    CHECK_THAT(config.toml, Catch::Contains("--batch-size=192 is a node's: x 2 nodes"));
    // A switch takes no word that follows.
    const ImportedConfig last = import_line("ddp", "python main.py --multiprocessing-distributed DIR");
    CHECK(table_of(last)["model"]["name"].value<std::string>() == "resnet18");  // its own
    CHECK(table_of(last)["data"]["train"].value<std::string>() == "DIR/train");
}

TEST_CASE("a list of units is read as Python writes it, too") {
    for (const char* list : {"=[100,75]", " [100,75]", "=[100, 75]", " [100, 75]", "=(100,75)", "=100,75", " 100 75"}) {
        CAPTURE(list);
        const std::string line = std::string("--hidden_units").append(list) + " --dropout=0.5";
        const toml::table t = table_of(import_line("estimator", line));
        CHECK(t["model"]["hidden"].as_array()->size() == 2);
        CHECK(t["model"]["hidden"][1].value<int64_t>() == 75);
        CHECK(t["model"]["dropout"].value<double>() == 0.5);
    }
}

TEST_CASE("a product of short decimals is a short decimal, and what was written stays as it was") {
    const ImportedConfig products = import_line(
        "horovod", "horovodrun -np 4 python train.py --train-dir T --val-dir V --batch-size 8 --base-lr 0.0125");
    CHECK_THAT(products.toml, Catch::Contains("values = [0.05, 0.005, 5e-04, 5e-05]"));
    CHECK_THAT(import_line("ddp", "torchrun --nproc_per_node=2 train.py --lr 0.12345678901234566").toml,
               Catch::Contains("lr = 0.12345678901234566 "));
}

TEST_CASE("half precision is told to the caller, who may have other machines") {
    const ImportedConfig amp = import_line("ddp", "torchrun --nproc_per_node=2 train.py --model alexnet --amp");
    REQUIRE(amp.changed.size() == 1);
    CHECK_THAT(amp.changed[0], Catch::StartsWith("--amp: here matrix products in fp16"));
    CHECK_THAT(amp.toml, Catch::Contains("# done otherwise: --amp: ") && Catch::Contains("precision = \"fp16\""));
    CHECK(import_line("tf_cnn_benchmarks", "--model=lenet --use_fp16").changed.size() == 1);
    CHECK(import_line("tf_cnn_benchmarks", "--model=lenet").changed.empty());
}

}  // namespace
}  // namespace lockstep
