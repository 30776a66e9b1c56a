// Pasted command lines taken apart: which words are a launcher's, which the script's, and how many processes start.
#include "explain/command_line.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "explain/launch.hpp"

namespace lockstep {
namespace {

CommandLine split(std::string_view line) {
    const std::vector<std::string> words = parts_of(line, ' ');
    return split_command_line(words);
}

TEST_CASE("each launcher's count of processes is read, alone and within another") {
    struct Row {
        const char* line;
        int64_t processes;
    };
    for (const Row& row : std::vector<Row>{
             {"torchrun --standalone --nproc_per_node=4 train.py", 4},
             {"torchrun --nproc-per-node 4 --nnodes 2 --node-rank 0 train.py", 8},
             {"torchrun --nnodes=2 train.py", 2},
             {"torchrun train.py", 1},
             {"torchrun --nproc_per_node=2 -m package.train", 2},
             {"python -m torch.distributed.run --nproc_per_node 3 train.py", 3},
             {"python3.11 -u -m torch.distributed.launch --nproc_per_node=8 --use_env train.py", 8},
             {"--nproc_per_node=5 train.py", 5},
             {"horovodrun -np 4 -H a:2,b:2 python train.py", 4},
             {"horovodrun -H a:2,b:3 python train.py", 5},
             {"horovodrun --num-proc 6 --gloo python train.py", 6},
             {"mpirun -np 4 --oversubscribe ./train", 4},
             {"mpirun -np 4 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x PATH -mca pml ob1 -mca btl ^openib python "
              "train.py",
              4},
             {"mpiexec -n 3 python train.py", 3},
             {"mpiexec.hydra -ppn 4 -hosts a,b python train.py", 8},
             {"mpirun -N 2 -H a,b,c python train.py", 6},
             {"mpirun -H a:4,b python train.py", 5},
             {"srun -n 8 python train.py", 8},
             {"srun -n8 python train.py", 8},
             {"srun -N 2 --ntasks-per-node=4 --gres gpu:4 python -u train.py", 8},
             {"srun --nodes=2 --ntasks=6 python train.py", 6},
             {"srun -N2 python train.py", 2},
             {"srun -N 2 torchrun --nproc_per_node 4 --nnodes 2 train.py", 8},
             {"srun -N 2 --ntasks-per-node 1 torchrun --nproc_per_node 4 train.py", 8},
             {"srun -n 4 singularity exec --nv image.sif python train.py", 4},
             {"accelerate launch --multi_gpu --num_processes 8 --num_machines 2 train.py", 8},
             {"accelerate launch --num_processes=2 -m package.train", 2},
             {"deepspeed --num_gpus 4 --num_nodes 2 train.py", 8},
             {"deepspeed --num_gpus=4 train.py", 4},
             {"deepspeed --include=localhost:0,2 train.py", 2},
             {"deepspeed --include a:0,1@b:3 train.py", 3},
             {"CUDA_VISIBLE_DEVICES=0,1 OMP_NUM_THREADS=1 torchrun --nproc_per_node=2 train.py", 2},
             {"$ sudo mpirun -np 2 python train.py", 2},
         }) {
        CAPTURE(row.line);
        // Behind the script the same flags are the script's.
        CommandLine line =
            split(std::string(row.line).append(" -n 77 -np 78 --nproc_per_node 79 --num_gpus 80 --lr 0.1"));
        CHECK(read_launch(line).processes == row.processes);
        CHECK_FALSE(line.script.empty());
        CHECK(line.flags.take_count({"n"}) == 77);
        CHECK(line.flags.take_count({"np"}) == 78);
        CHECK(line.flags.take_count({"nproc_per_node"}) == 79);
        CHECK(line.flags.take_count({"num_gpus"}) == 80);
        CHECK(line.flags.take_number({"lr"}) == 0.1);
    }
}

TEST_CASE("a line without a launcher starts no number of processes, and its flags are the script's") {
    for (const char* text : {"python train.py --lr 0.1", "python -u -m package.train --lr 0.1", "train.py --lr 0.1",
                             "./train --lr 0.1", "--lr 0.1", "-- --lr 0.1", "python3 -W ignore train.py --lr 0.1"}) {
        CAPTURE(text);
        CommandLine line = split(text);
        const Launch launch = read_launch(line);
        CHECK_FALSE(launch.processes);
        CHECK(launch.missing.empty());
        CHECK(line.flags.take_number({"lr"}) == 0.1);
    }
    CHECK(split("python -m package.train --x 1").script == "package.train");
    CHECK(split("python a/b/train.py --x 1").script_name() == "train.py");
    CHECK(split("").flags.all().empty());
    // Flags alone may hold a launcher's.
    CommandLine alone = split("--nproc_per_node=2 --nnodes=3 --lr 0.1");
    CHECK(read_launch(alone).processes == 6);
}

TEST_CASE("a launcher that is not told says what it has to be told") {
    const auto missing = [](const char* text) {
        CommandLine line = split(text);
        const Launch launch = read_launch(line);
        CHECK_FALSE(launch.processes);
        return launch.missing;
    };
    CHECK_THAT(missing("srun python train.py -n 4"), Catch::Contains("srun --ntasks=P"));
    CHECK_THAT(missing("accelerate launch train.py"), Catch::Contains("--num_processes=P"));
    CHECK_THAT(missing("deepspeed train.py --num_gpus 4"), Catch::Contains("--num_gpus=P"));
    CHECK_THAT(missing("deepspeed --include=a@b train.py"), Catch::Contains("--num_gpus=P"));
    CHECK_THAT(missing("mpirun --hostfile hosts python train.py"), Catch::Contains("mpirun -np P"));
    CHECK_THAT(missing("mpirun -N 4 --hostfile hosts python train.py"), Catch::Contains("on how many nodes"));
    CHECK_THAT(missing("horovodrun python train.py -np 4"), Catch::Contains("horovodrun -np P"));
}

TEST_CASE("a number of processes that is none is refused with its flag") {
    const auto refused = [](const char* text, const char* said) {
        CAPTURE(text);
        CommandLine line = split(text);
        CHECK_THROWS_WITH(read_launch(line), Catch::Contains(said));
    };
    refused("torchrun --nproc_per_node=gpu train.py", "--nproc_per_node=gpu: the value is no whole number");
    refused("torchrun --nnodes=1:4 --nproc_per_node=2 train.py", "--nnodes=1:4: the value is no whole number");
    refused("srun -n 0 python train.py", "-n 0: must be at least 1");
    refused("mpirun -np --oversubscribe python train.py", "-np");
    refused("horovodrun -H a:x python train.py", "no list of HOST:SLOTS");
}

TEST_CASE("gcloud's flags end at two dashes, where the trainer's begin") {
    CommandLine line = split(
        "gcloud ai-platform jobs submit training census --scale-tier STANDARD_1 --stream-logs -- "
        "--train-steps 1000 --scale-tier mine");
    REQUIRE(line.flags_of(LauncherKind::kGcloud) != nullptr);
    CHECK(line.flags_of(LauncherKind::kGcloud)->take_text({"scale_tier"}) == "STANDARD_1");
    CHECK(line.flags.take_text({"scale_tier"}) == "mine");
    CHECK(line.flags.take_count({"train_steps"}) == 1000);
}

TEST_CASE("a flag without its value has none") {
    const std::vector<std::string> words = {"--data_dir", "--batch_size", "64", "--name="};
    FlagList flags(words);
    CHECK_THROWS_WITH(flags.take_text({"data_dir"}), "--data_dir: no value stands behind it");
    CHECK(flags.take_count({"batch_size"}) == 64);
    CHECK_THROWS_WITH(flags.take_text({"name"}), "--name=: the value is empty");
    CHECK(flags.take_switch("data_dir") == true);
}

}  // namespace
}  // namespace lockstep
