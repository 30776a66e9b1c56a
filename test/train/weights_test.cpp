// model.weights: a run that starts from a safetensors file, one of Lockstep's or one that PyTorch wrote under the same
// names.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "io/files.hpp"
#include "io/safetensors.hpp"
#include "train/initial_weights.hpp"
#include "train/legs.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Job short_job() {
    Job job;
    job.samples = 103;
    job.batch = 32;
    job.steps = 5;
    return job;
}

/// A file of the tensors of another, in another order, as PyTorch writes them, with `change` made on the list.
void rewrite(const std::string& from, const std::string& to,
             const std::function<void(std::vector<TensorView>&)>& change) {
    const SafetensorsFile file = SafetensorsFile::read(from);
    std::vector<TensorView> tensors = file.tensors();
    change(tensors);
    write_file_atomic(to, safetensors_bytes(tensors, {{"format", "pt"}}));
}

std::function<void(Config&)> starting_from(const std::string& path) {
    return [path](Config& config) { config.model.weights = path; };
}

}  // namespace

TEST_CASE("a run goes on from the weights of a file, the same at any world, and other weights give another run") {
    TemporaryFolder folder;
    run_leg(short_job(), folder / "first", {1});
    const std::string file = folder / "first/model.safetensors";
    run_leg(short_job(), folder / "from1", {1, 2}, "", starting_from(file));
    CHECK(text_of(folder / "from1/model.safetensors") != text_of(file));
    for (const int world : {2, 3, 8}) {
        const std::string out = folder / ("from" + std::to_string(world));
        REQUIRE(run_leg(short_job(), out, {world, 1, 2}, "", starting_from(file)).stopped);
        run_leg(short_job(), out, {4}, "", starting_from(file));
        CHECK(text_of(out + "/model.safetensors") == text_of(folder / "from1/model.safetensors"));
        CHECK(without_wall(text_of(out + "/metrics.jsonl")) == without_wall(text_of(folder / "from1/metrics.jsonl")));
    }
    // With a learning rate of 0 the weights stay those of the file.
    run_leg(short_job(), folder / "still", {2}, "", [&](Config& config) {
        config.model.weights = file;
        config.optimizer.lr = 0;
    });
    CHECK(text_of(folder / "still/model.safetensors") == text_of(file));
}

TEST_CASE("tensors that the model does not have are left out, in whatever order the file has the others") {
    TemporaryFolder folder;
    run_leg(short_job(), folder / "first", {1});
    const std::string file = folder / "first/model.safetensors";
    const int64_t batches = 1234;
    rewrite(file, folder / "torch.safetensors", [&](std::vector<TensorView>& tensors) {
        std::reverse(tensors.begin(), tensors.end());
        tensors.push_back({"bn1.num_batches_tracked", {}, "I64", std::as_bytes(std::span(&batches, 1))});
    });
    run_leg(short_job(), folder / "plain", {1}, "", starting_from(file));
    run_leg(short_job(), folder / "torch", {2}, "", starting_from(folder / "torch.safetensors"));
    CHECK(text_of(folder / "torch/model.safetensors") == text_of(folder / "plain/model.safetensors"));
}

TEST_CASE("what is left out is named, but for PyTorch's counters of batches") {
    TemporaryFolder folder;
    const std::vector<float> values(6);
    const auto bytes = std::as_bytes(std::span(values));
    write_file_atomic(folder / "file", safetensors_bytes({{"fc1.weight", {2, 3}, "F32", bytes},
                                                          {"bn1.num_batches_tracked", {}, "I64", bytes.first(8)},
                                                          {"num_batches_tracked_by_me", {6}, "F32", bytes},
                                                          {"head.bias", {6}, "F32", bytes}},
                                                         {{"format", "pt"}}));
    ParameterTable parameters;
    parameters.add("fc1.weight", {2, 3}, {});
    CHECK(tensors_left_out(SafetensorsFile::read(folder / "file"), parameters) ==
          std::vector<std::string>{"num_batches_tracked_by_me", "head.bias"});
}

TEST_CASE("missing tensors and tensors of other shapes or types are all named") {
    TemporaryFolder folder;
    run_leg(short_job(), folder / "first", {1});
    rewrite(folder / "first/model.safetensors", folder / "bad.safetensors", [](std::vector<TensorView>& tensors) {
        std::erase_if(tensors, [](const TensorView& t) { return t.name == "fc1.bias"; });
        for (TensorView& t : tensors) {
            if (t.name == "fc2.weight") std::swap(t.shape[0], t.shape[1]);
            if (t.name == "fc3.bias") t.dtype = "I32";
        }
    });
    try {
        run_leg(short_job(), folder / "run", {2}, "", starting_from(folder / "bad.safetensors"));
        FAIL("not refused");
    } catch (const Error& e) {
        CHECK(e.kind() == ErrorKind::kUsage);
        CHECK_THAT(e.what(), Catch::Contains("has no tensor fc1.bias [33], which the model needs") &&
                                 Catch::Contains("tensor fc2.weight is F32 [33, 17], the model's is F32 [17, 33]") &&
                                 Catch::Contains("tensor fc3.bias is I32 [10], the model's is F32 [10]"));
    }
    CHECK_THROWS_WITH(run_leg(short_job(), folder / "none", {1}, "", starting_from(folder / "none.safetensors")),
                      Catch::Contains("none.safetensors"));
}

TEST_CASE("an empty file and a pipe are no weights, and no variance is negative or endless") {
    TemporaryFolder folder;
    const auto refused = [&](const Job& job, const std::string& name, const char* text) {
        try {
            run_leg(job, folder / "run", {2}, "", starting_from(folder / name));
            FAIL("not refused");
        } catch (const Error& e) {
            CHECK(e.kind() == ErrorKind::kData);
            CHECK_THAT(e.what(), Catch::Contains(text));
        }
    };
    write_file_atomic(folder / "empty", std::string());
    refused(short_job(), "empty", "empty: empty, a safetensors file is needed");
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    refused(short_job(), "pipe", "pipe: it is no file");

    Job job = short_job();
    job.model = "resnet20";
    job.samples = job.batch = 4;
    job.steps = 1;
    run_leg(job, folder / "first", {1});
    for (const float wrong : {-0.5F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
        std::vector<float> variances(16, 1.0F);
        variances[3] = wrong;
        std::string name;
        rewrite(folder / "first/model.safetensors", folder / "bad", [&](std::vector<TensorView>& tensors) {
            const auto found = std::find_if(tensors.begin(), tensors.end(), [](const TensorView& t) {
                return t.name.ends_with(".running_var") && t.shape == std::vector<int64_t>{16};
            });
            REQUIRE(found != tensors.end());
            name = found->name;
            found->bytes = std::as_bytes(std::span(variances));
        });
        refused(job, "bad", ("tensor " + name + " holds ").c_str());
    }
}

TEST_CASE("on resume the path may be another, the tensors may not") {
    TemporaryFolder folder;
    run_leg(short_job(), folder / "first", {1});
    const std::string file = folder / "first/model.safetensors";
    std::filesystem::copy_file(file, folder / "copy.safetensors");
    run_leg(short_job(), folder / "whole", {1}, "", starting_from(file));
    REQUIRE(run_leg(short_job(), folder / "legs", {2, 1, 3}, "", starting_from(file)).stopped);
    const auto refused = [&](const std::string& path) {
        CHECK_THROWS_WITH(run_leg(short_job(), folder / "legs", {1}, "", starting_from(path)),
                          Catch::Contains("the tensors of model.weights differ"));
    };
    refused("");
    refused(folder / "whole/model.safetensors");
    run_leg(short_job(), folder / "legs", {1}, "", starting_from(folder / "copy.safetensors"));
    CHECK(text_of(folder / "legs/model.safetensors") == text_of(folder / "whole/model.safetensors"));
}

TEST_CASE("a file of torch.save is named as one, and how to write one that is read") {
    TemporaryFolder folder;
    const auto refusal = [&](std::string_view content) -> std::string {
        write_file_atomic(folder / "w.pth", std::as_bytes(std::span(content)));
        try {
            run_leg(short_job(), folder / "run", {1}, "", starting_from(folder / "w.pth"));
        } catch (const Error& e) {
            CHECK(e.kind() == ErrorKind::kData);
            return e.what();
        }
        return "";
    };
    // The first bytes of what PyTorch 2 writes, and of what PyTorch 1.5 wrote.
    const std::string zip(
        "PK\x03\x04\x00\x00\x08\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
        "\x00\x00\x10\x00\x1a\x00weights/data.pkl",
        46);
    const std::string pickle("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j\xa8\x50\x19.", 15);
    for (const std::string& file : {zip, pickle}) {
        CHECK_THAT(refusal(file), Catch::Contains("w.pth: a pickle of torch.save") &&
                                      Catch::Contains("safetensors.torch.save_file(torch.load(\"w.pth\""));
    }
    // Of a zip of arrays, and of a length that begins as a pickle does, nothing of the kind is said.
    CHECK_THAT(refusal("PK\x03\x04\x14\x03\x08\x08 x.npy and more of it"), !Catch::Contains("torch.save"));
    CHECK_THAT(refusal(std::string("\x80\x02\0\0\0\0\0\0{}", 10)), !Catch::Contains("torch.save"));
}

TEST_CASE("names that all stand behind that of a wrapper are told in one line, one name alone is not") {
    TemporaryFolder folder;
    run_leg(short_job(), folder / "first", {1});
    const auto refusal = [&](const std::string& prefix, std::size_t from) -> std::string {
        rewrite(folder / "first/model.safetensors", folder / "w.safetensors", [&](std::vector<TensorView>& tensors) {
            for (std::size_t i = from; i < tensors.size(); ++i) tensors[i].name.insert(0, prefix);
        });
        try {
            run_leg(short_job(), folder / "run", {1}, "", starting_from(folder / "w.safetensors"));
        } catch (const Error& e) {
            CHECK(e.kind() == ErrorKind::kUsage);
            return e.what();
        }
        return "";
    };
    for (const std::string prefix : {"module.", "_orig_mod.", "module._orig_mod."}) {
        const std::string line = refusal(prefix, 0);
        CHECK_THAT(line, Catch::Contains(fmt::format("the model's names behind \"{}\"", prefix)));
        CHECK(line.find('\n') == std::string::npos);
    }
    CHECK_THAT(refusal("module.", 1), Catch::Contains("which the model needs") && !Catch::Contains("behind"));
}
