// What config import refuses: command lines of which no config can be made, each by one line that names the flag.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "explain/import_line.hpp"

namespace lockstep {
namespace {

TEST_CASE("what cannot be a config is refused with the flag's name") {
    const auto refuses = [](const char* from, const char* line, const char* text) {
        CAPTURE(line);
        CHECK_THROWS_WITH(import_line(from, line), Catch::Contains(text));
    };
    refuses("tf_cnn_benchmarks", "--model=inception3", "--model=inception3: Lockstep has no such network");
    refuses("tf_cnn_benchmarks", "--batch_size=many", "--batch_size=many: the value is no whole number");
    refuses("tf_cnn_benchmarks", "--num_gpus=0", "--num_gpus=0: must be at least 1");
    refuses("tf_cnn_benchmarks", "--use_fp16=perhaps", "neither true nor false");
    refuses("tf_cnn_benchmarks", "--optimizer=lbfgs", "--optimizer=lbfgs");
    refuses("ddp", "torchrun --nproc_per_node=gpu train.py", "--nproc_per_node=gpu: the value is no whole number");
    refuses("ddp", "--lr 1", "torchrun --nproc_per_node=P");
    refuses("ddp", "srun python train.py --lr 1 -n 4", "how many processes? Write srun --ntasks=P");
    refuses("horovod", "python train.py -np 4", "Put horovodrun -np W");
    refuses("estimator", "--model_type=tree", "--model_type=tree: it is wide, deep or wide_deep");
    refuses("hovorod", "-np 2", "did you mean horovod?");
    CHECK_THAT(import_line("tf_cnn_benchmarks", "-- --model=lenet --").toml, Catch::Contains("name = \"lenet\""));
}

TEST_CASE("absurd flags are refused in one line that begins with the flag") {
    struct Row {
        const char *from, *line, *said;
    };
    const char* const kTf = "tf_cnn_benchmarks";
    const std::vector<Row> rows = {
        // Values that no key takes.
        {kTf, "--weight_decay=-1", "--weight_decay=-1: optimizer.l2 must be at least 0, got -1"},
        {kTf, "--optimizer=momentum --momentum=7", "--momentum=7: optimizer.momentum must be below 1, got 7"},
        {kTf, "--init_learning_rate=-0.1", "--init_learning_rate=-0.1: optimizer.lr must be at least 0"},
        {kTf, "--init_learning_rate=1e39", "--init_learning_rate=1e39: optimizer.lr must be finite in fp32"},
        {kTf, "--num_learning_rate_warmup_epochs=-3", "--num_learning_rate_warmup_epochs=-3: must be at least 0"},
        {kTf, "--piecewise_learning_rate_schedule=1;-3;.1", "epoch -3 must be 0 to 1000000"},
        {kTf, "--piecewise_learning_rate_schedule=1;1e300;.1", "epoch 1e+300 must be 0 to 1000000"},
        {kTf, "--piecewise_learning_rate_schedule=1;3;-.1", "schedule.values[1] must be at least 0, got -0.1"},
        {kTf, "--eval_during_training_every_n_epochs=2 --eval_during_training_every_n_steps=5",
         "--eval_during_training_every_n_steps=5: eval.every_epochs and eval.every_steps are both set"},
        {kTf, "--max_ckpts_to_keep=9000000000", "--max_ckpts_to_keep=9000000000: checkpoint.keep must be at most"},
        {"estimator", "--hidden_units 100,abc", "--hidden_units 100,abc: the value is no list of whole numbers"},
        {"estimator", "--hidden_units=abc", "--hidden_units=abc: the value is no list of whole numbers"},
        {"estimator", "--hidden_units=[100,x]", "--hidden_units=[100,x]: the value is no list of whole numbers"},
        {"estimator", "--hidden_units=[100", "--hidden_units=[100: the value is no list of whole numbers"},
        {"estimator", "--hidden_units=[]", "--hidden_units=[]: the list is empty"},
        {"estimator", "--hidden_units 100 0", "--hidden_units 100 0: must be at least 1"},
        {"estimator", "--hidden_units 99999999999", "--hidden_units 99999999999: model.hidden[0] must be at most"},
        {"estimator", "--dropout 2", "--dropout 2: model.dropout must be below 1, got 2"},
        {"estimator", "--lr -1", "--lr -1: optimizer.lr must be at least 0, got -1"},
        {"estimator", "--l2 -3", "--l2 -3: must be at least 0"},
        {"estimator", "--decay-rate -1", "--decay-rate -1: must be at least 0"},
        {"estimator", "--train-steps 9000000000000000000", "--train-steps 9000000000000000000: train.steps must be"},
        {"horovod", "horovodrun -np 2 python x.py --wd -3", "--wd -3: must be at least 0"},
        {"horovod", "horovodrun -np 2 python x.py --warmup-epochs -2", "--warmup-epochs -2: must be at least 0"},
        {"horovod", "horovodrun -np 2 python x.py --momentum 1", "--momentum 1: optimizer.momentum must be below 1"},
        {"horovod", "horovodrun -np 2 python x.py --lr -1", "--lr -1: optimizer.lr must be at least 0, got -2"},
        {"ddp", "torchrun --nproc_per_node=2 x.py --weight-decay -1", "--weight-decay -1: must be at least 0"},
        {"ddp", "torchrun --nproc_per_node=2 x.py --clip-grad-norm -1", "--clip-grad-norm -1: must be at least 0"},
        {"ddp", "torchrun --nproc_per_node=2 x.py --label-smoothing 3", "--label-smoothing 3: train.label_smoothing"},
        {"ddp", "torchrun --nproc_per_node=2 x.py --lr-step-size 0", "--lr-step-size 0: schedule.every_epochs must be"},
        {"ddp", "torchrun --nproc_per_node=2 x.py --lr-gamma -1", "--lr-gamma -1: schedule.factor must be at least 0"},
        {"ddp", "torchrun --nproc_per_node=2 x.py --lr nan", "--lr nan: must be finite"},
        // Products and numbers beyond 64 bits, and what is not finite.
        {kTf, "--batch_size=9223372036854775807 --num_gpus=3",
         "--batch_size=9223372036854775807 x 3 GPUs x 1 worker: "},
        {kTf, "--num_gpus=4000000000", "its default of 32 x 4000000000 GPUs x 1 worker: batch.size can be at most"},
        {kTf, "--num_epochs=1e300", "--num_epochs=1e+300: must be at most 1000000"},
        {kTf, "--num_epochs=1e-300", ""},  // one step
        {kTf, "--num_epochs=1e400", "--num_epochs=1e400: the value is beyond 64 bits"},
        {"estimator", "--max_steps 99999999999999999999", "--max_steps 99999999999999999999: the value is beyond 64"},
        {"estimator", "--first_layer_size 9 --num_layers 900000000000", "--num_layers 900000000000: must be at most"},
        {"estimator", "--first_layer_size 9 --num_layers 900 --scale_factor 2", "--scale_factor=2: layer 18 of 900"},
        {"estimator", "--worker_count 9223372036854775807", "--worker_count 9223372036854775807: must be at most"},
        {"horovod", "horovodrun -np 1000000000000 python x.py --batch-size 100000000000",
         "--batch-size=100000000000 is"},
        {"horovod", "horovodrun -np 4 python x.py --lr 1e308", "--lr 1e308: optimizer.lr must be finite, got inf"},
        {"ddp", "torchrun --nproc_per_node=9223372036854775807 --nnodes=2 x.py",
         "--nproc_per_node=9223372036854775807 x --nnodes=2: batch.size can be at most"},
        {"ddp", "torchrun --nproc_per_node=2 x.py --batch-size 9223372036854775807",
         "--batch-size=9223372036854775807"},
        {"ddp", "torchrun --nproc_per_node=2 x.py --accumulate 9223372036854775807",
         "x 9223372036854775807 accumulated: batch.size can be at most"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.from, row.line);
        std::string said;
        try {
            (void)import_line(row.from, row.line);
        } catch (const Error& error) {
            CHECK(error.kind() == ErrorKind::kUsage);
            said = error.what();
        }
        CAPTURE(said);
        CHECK(said.find('\n') == std::string::npos);
        CHECK(said.empty() == (*row.said == '\0'));
        CHECK(said.find(row.said) != std::string::npos);
    }
}

TEST_CASE("several absurd flags are refused together, a line each") {
    CHECK_THROWS_WITH(import_line("tf_cnn_benchmarks", "--optimizer=momentum --momentum=7 --weight_decay=-1"),
                      "--momentum=7: optimizer.momentum must be below 1, got 7.0\n"
                      "--weight_decay=-1: optimizer.l2 must be at least 0, got -1.0");
}

}  // namespace
}  // namespace lockstep
