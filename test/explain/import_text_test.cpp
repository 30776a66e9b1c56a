// Foreign text in an imported config: whatever a command line holds, it makes comments and strings, never lines.
#include <toml++/toml.h>
#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "explain/import_line.hpp"

namespace lockstep {
namespace {

std::vector<std::pair<const char*, std::vector<std::string>>> base_lines() {
    return {{"tf_cnn_benchmarks", {"--model=lenet", "--train_dir=T%", "--data_dir=D%"}},
            {"estimator", {"--job-dir", "J%", "--train-files", "F%", "--scale-tier=S%"}},
            {"horovod", {"horovodrun", "-np", "2", "python", "x%.py", "--train-dir", "T%", "--val-dir", "V%"}},
            {"ddp",
             {"torchrun", "--rdzv_id=i%", "--nproc_per_node=2", "train%.py", "--model", "vgg11", "--data-path", "D%",
              "--output-dir", "O%"}}};
}

std::vector<std::string> filled(std::vector<std::string> words, const std::string& text) {
    for (std::string& word : words) {
        if (const std::size_t at = word.find('%'); at != std::string::npos) word.replace(at, 1, text);
    }
    return words;
}

/// section.key of every line.
std::string keys_of(const toml::table& table) {
    std::string keys;
    for (const auto& [name, value] : table) {
        if (!value.is_table()) keys.append(name.str()).append("\n");
        if (!value.is_table()) continue;
        for (const auto& [key, entry] : *value.as_table())
            keys.append(name.str()).append(".").append(key.str()).append("\n");
    }
    return keys;
}

TEST_CASE("control characters of a command line are escaped in comments and strings") {
    std::vector<std::string> texts = {"\n[train]\nsteps = 3\n", "\r\nseed = 9", "\xc2\x85", "\xe2\x80\xa8",
                                      "\xc2\x9b"
                                      "31m"};
    for (char c = 1; c < 0x20; ++c) texts.emplace_back(1, c);
    texts.emplace_back("\x7f");
    for (const auto& [from, words] : base_lines()) {
        const std::string plain = keys_of(toml::parse(import_config(from, filled(words, "a")).toml));
        for (const std::string& text : texts) {
            CAPTURE(from, text);
            std::vector<std::string> hostile = filled(words, text);
            hostile.push_back("--zoo=" + text);
            hostile.push_back("--zoo" + text + "x=1");
            const ImportedConfig config = import_config(from, hostile);
            CHECK(keys_of(toml::parse(config.toml)) == plain);
            for (const std::string& said : config.refused)
                CHECK(said.find_first_of("\n\r\x1b\x7f") == std::string::npos);
            for (const std::string& said : config.changed)
                CHECK(said.find_first_of("\n\r\x1b\x7f") == std::string::npos);
            CHECK(config.toml.find_first_of("\r\x1b\x7f") == std::string::npos);
            for (const std::string& said : config.refused) CHECK(said.find("\xe2\x80\xa8") == std::string::npos);
            CHECK(config.toml.find("\xc2\x9b") == std::string::npos);
        }
    }
    // A path keeps its bytes.
    const std::vector<std::string> words = {"--model=lenet", "--data_dir=a\x7f\n\"\\b"};
    const toml::table table = toml::parse(import_config("tf_cnn_benchmarks", words).toml);
    CHECK(table["data"]["train"].value<std::string>() == "a\x7f\n\"\\b/train-*");
}

TEST_CASE("what is refused is said on one line, whatever it holds") {
    for (const auto& [from, word] : {std::pair{"tf_cnn_benchmarks", "--model=a\nb"}, std::pair{"ddp", "--opt=a\nb"},
                                     std::pair{"ddp", "--lr-scheduler=a\nb"}, std::pair{"horovod", "--lr=a\nb"},
                                     std::pair{"estimator", "--optimizer=a\nb"}}) {
        const std::vector<std::string> words = {"mpirun", "-np", "1", "python", "x.py", word};
        try {
            (void)import_config(from, words);
            FAIL("not refused");
        } catch (const Error& error) {
            CHECK_THAT(error.what(), Catch::Contains("a\\x0ab"));
            CHECK(std::string(error.what()).find('\n') == std::string::npos);
        }
    }
}

TEST_CASE("bytes that are no text are refused, since no config holds them") {
    const std::vector<std::string> words = {"--model=lenet", "--data_dir=a\xff"};
    CHECK_THROWS_WITH(import_config("tf_cnn_benchmarks", words), Catch::Contains("no UTF-8 text"));
}

TEST_CASE("a flag without its value is refused, and is no path and no name") {
    const auto refused = [](const char* from, const char* line, const char* said) {
        CAPTURE(line);
        CHECK_THROWS_WITH(import_line(from, line), Catch::Equals(said));
    };
    refused("tf_cnn_benchmarks", "--model=lenet --data_dir --batch_size 64", "--data_dir: no value stands behind it");
    refused("tf_cnn_benchmarks", "--model --batch_size 64", "--model: no value stands behind it");
    refused("tf_cnn_benchmarks", "--model=lenet --train_dir", "--train_dir: no value stands behind it");
    refused("tf_cnn_benchmarks", "--model=lenet --data_dir=", "--data_dir=: the value is empty");
    refused("tf_cnn_benchmarks", "--model=lenet --num_gpus", "--num_gpus: no value stands behind it");
    refused("estimator", "--train-files --num-epochs 1", "--train-files: no value stands behind it");
    refused("estimator", "--optimizer --num-epochs 1", "--optimizer: no value stands behind it");
    refused("estimator", "--hidden_units --num-epochs 1", "--hidden_units: no value stands behind it");
    refused("horovod", "horovodrun -np 2 python x.py --train-dir --val-dir V",
            "--train-dir: no value stands behind it");
    refused("horovod", "horovodrun -np 2 python x.py --lr", "--lr: no value stands behind it");
    refused("ddp", "torchrun --nproc_per_node=2 train.py --data-path --lr 1", "--data-path: no value stands behind it");
    refused("ddp", "torchrun --nproc_per_node=2 train.py --model", "--model: no value stands behind it");
    refused("ddp", "torchrun --nproc_per_node --nnodes=2 train.py", "--nproc_per_node: no value stands behind it");
}

TEST_CASE("what is set to be off, and words of no flag, are told apart") {
    const ImportedConfig config = import_line(
        "ddp", "torchrun --nproc_per_node=2 train.py --model resnet18 --mixup-alpha 0.0 --random-erase 0.1 D surplus");
    REQUIRE(config.refused.size() == 2);
    CHECK_THAT(config.refused[0], Catch::StartsWith("--random-erase 0.1: "));
    CHECK(config.refused[1] == "surplus: belongs to no flag that is known here");
    CHECK_THAT(config.toml, Catch::Contains("# nothing to do here: --mixup-alpha 0.0: off, there too"));
}

}  // namespace
}  // namespace lockstep
