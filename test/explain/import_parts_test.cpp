// What config import makes of a network that nobody names, of the parts that workers had of a batch, and of evaluation.
#include <catch2/catch.hpp>
#include <string>

#include "explain/import_line.hpp"

namespace lockstep {
namespace {

std::string changes(const ImportedConfig& config) {
    std::string all;
    for (const std::string& line : config.changed) all += line + "\n";
    return all;
}

TEST_CASE("the scripts' own network stands where their flags or a folder are seen, else its lack is told") {
    for (const char* line : {"train.py --data-path D", "main.py -b 64 D", "train.py --lr-step-size 30",
                             "main.py --print-freq 10", "train.py --val-resize-size 232 --seed 1"}) {
        CAPTURE(line);
        const ImportedConfig config = import_line("ddp", std::string("torchrun --nproc_per_node=2 ").append(line));
        CHECK_THAT(config.toml, Catch::Contains("name = \"resnet18\"") &&
                                    Catch::Contains("# no --model: the default of torchvision's and PyTorch's own"));
        CHECK_THAT(changes(config), !Catch::Contains("NOT yours"));
    }
    for (const auto& [from, line] : {std::pair{"ddp", "torchrun --nproc_per_node=2 mine.py --lr 0.1 --epochs 2"},
                                     std::pair{"horovod", "horovodrun -np 2 python mine.py --base-lr 0.1"}}) {
        const ImportedConfig other = import_line(from, line);
        CHECK_THAT(other.toml, !Catch::Contains("\n[model]"));
        CHECK_THAT(changes(other),
                   Catch::Contains("no --model: the network of the config's defaults (mlp) is NOT yours; "
                                   "write [model]\n"));
        CHECK_THAT(other.toml, Catch::Contains("# done otherwise: no --model: "));
    }
}

TEST_CASE("more workers than the default's shards are as many shards, from every trainer") {
    const auto imported = [](const char* from, const char* line) { return import_line(from, line).toml; };
    CHECK_THAT(imported("ddp", "torchrun --nnodes=16 --nproc_per_node=4 train.py --model resnet18"),
               Catch::Contains("\nshards = 64 ") && Catch::Contains("# 64 processes; a rank computes whole shards"));
    CHECK_THAT(imported("horovod", "horovodrun -np 9 python x.py --model resnet18"),
               Catch::Contains("\nshards = 9 ") && Catch::Contains("# 9 workers; "));
    CHECK_THAT(
        imported("tf_cnn_benchmarks", "--model=lenet --num_gpus=8 --worker_hosts=a:1,b:1 --variable_update=replicated"),
        Catch::Contains("\nshards = 16 ") && Catch::Contains("# 16 GPUs; "));
    CHECK_THAT(imported("estimator", "--scale-tier PREMIUM_1"), Catch::Contains("\nshards = 20 "));
    // No more than the batch has samples.
    CHECK_THAT(imported("estimator", "--workers 20 --batch_size 10"),
               Catch::Contains("\nshards = 10 ") && Catch::Contains("# 20 workers, at most 10 here; "));
    // As many as the default has, or fewer: its own.
    CHECK_THAT(imported("ddp", "torchrun --nnodes=2 --nproc_per_node=4 train.py --model resnet18"),
               !Catch::Contains("\nshards = "));
    // Nodes that start their processes themselves do not tell how many.
    CHECK_THAT(imported("ddp", "python main.py --multiprocessing-distributed --world-size 4 D"),
               !Catch::Contains("\nshards = ") && Catch::Contains("with more than 8 in all write batch.shards"));
}

TEST_CASE("a pass of a worker is a shard, which batch.micro then holds") {
    CHECK_THAT(import_line("ddp", "torchrun --nproc_per_node=4 x.py --model vgg11 --batch-size 8 --accumulate 16").toml,
               Catch::Contains("size = 512 ") && Catch::Contains("\nmicro = 8 ") && Catch::Contains("\nshards = 64 ") &&
                   Catch::Contains("# 4 processes x 16 passes; "));
    // Without passes here, since batch norm is over the whole batch, shards are the workers'.
    CHECK_THAT(
        import_line("ddp", "torchrun --nproc_per_node=16 x.py --model resnet18 --batch-size 8 --accumulate 4").toml,
        Catch::Contains("\nshards = 16 ") && !Catch::Contains("\nmicro = "));
}

TEST_CASE("batch norm of each worker's samples is told to be done otherwise, and how to come near it") {
    const auto said = [](const char* from, const char* line) { return changes(import_line(from, line)); };
    CHECK_THAT(said("ddp", "torchrun --nproc_per_node=4 train.py --model resnet18 --batch-size 16"),
               Catch::Contains("batch norm: over 16 samples of its own for each process there, over the whole batch "
                               "here") &&
                   Catch::Contains("batch_norm.scope = \"shard\" with batch.shards = 4"));
    CHECK_THAT(said("horovod", "horovodrun -np 2 python x.py --model resnet18 --batches-per-allreduce 3"),
               Catch::Contains("over 32 samples of its own") && Catch::Contains("with batch.shards = 6"));
    CHECK_THAT(said("tf_cnn_benchmarks", "--model=resnet50 --num_gpus=2"), Catch::Contains("with batch.shards = 2"));
    CHECK_THAT(said("ddp", "python main.py --multiprocessing-distributed --world-size 1"),
               Catch::Contains("for each GPU there") && Catch::Contains("with batch.shards = the number of GPUs"));
    for (const char* line : {"torchrun --nproc_per_node=4 train.py --model resnet18 --sync-bn",
                             "torchrun --nproc_per_node=1 train.py --model resnet18",
                             "torchrun --nproc_per_node=4 train.py --model alexnet"}) {
        CAPTURE(line);
        CHECK(said("ddp", line) == "");
    }
}

TEST_CASE("what counts or decides is not told to be nothing") {
    const ImportedConfig nodes =
        import_line("ddp", "python main.py --multiprocessing-distributed --world-size 2 --rank 0 D");
    CHECK_THAT(nodes.toml, Catch::Contains("size = 512 ") && !Catch::Contains("--world-size 2: "));
    CHECK_THAT(import_line("ddp", "torchrun --nproc_per_node=2 train.py --world-size 2").toml,
               Catch::Contains("# --world-size 2: torchrun says how many processes there are"));
    const ImportedConfig crop = import_line(
        "ddp", "torchrun --nproc_per_node=1 train.py --data-path D --val-resize-size 256 --val-crop-size 224");
    CHECK_THAT(changes(crop), Catch::StartsWith("--val-resize-size 256, --val-crop-size 224, of evaluation: a resize "
                                                "and a crop of the centre there") &&
                                  Catch::Contains("the whole picture resized to 224 x 224 here"));
    CHECK_THAT(crop.toml, !Catch::Contains("# nothing to do here: --val"));
    CHECK_THAT(changes(import_line("horovod", "horovodrun -np 1 python x.py --train-dir T --val-dir V")),
               Catch::StartsWith("evaluation: a resize and a crop of the centre there"));
}

}  // namespace
}  // namespace lockstep
