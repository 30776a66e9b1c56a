#include "train/bench_input.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "data/loader.hpp"
#include "io/source_files.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int64_t kHeldFloats = int64_t{16} << 20;  // 64 MiB
constexpr int64_t kHeldRows = 1024;

/// A data set of the same size whose samples are a few of its own, held in memory, over and over: what a step takes
/// when it never waits for input.
class HeldData final : public Dataset {
  public:
    explicit HeldData(std::unique_ptr<Dataset> data) : data_(std::move(data)), elements_(data_->shape().elements()) {
        const int64_t rows = std::clamp(kHeldFloats / elements_, int64_t{1}, std::min(kHeldRows, data_->size()));
        values_.resize(static_cast<std::size_t>(rows * elements_));
        for (int64_t row = 0; row < rows; ++row)
            labels_.push_back(data_->read(row, std::span(values_).subspan(static_cast<std::size_t>(row * elements_),
                                                                          static_cast<std::size_t>(elements_))));
    }
    int64_t size() const override { return data_->size(); }
    SampleShape shape() const override { return data_->shape(); }
    int classes() const override { return data_->classes(); }
    std::vector<Column> columns() const override { return data_->columns(); }
    int32_t read(int64_t index, std::span<float> pixels) const override {
        const std::size_t row = static_cast<std::size_t>(index) % labels_.size();
        std::copy_n(values_.data() + static_cast<int64_t>(row) * elements_, elements_, pixels.data());
        return labels_[row];
    }
    int32_t label(int64_t index) const override { return labels_[static_cast<std::size_t>(index) % labels_.size()]; }
    std::string fingerprint() const override { return data_->fingerprint(); }

  private:
    std::unique_ptr<Dataset> data_;
    int64_t elements_;
    std::vector<float> values_;
    std::vector<int32_t> labels_;
};

/// Of what data.train names.
std::optional<int64_t> bytes_of(const Config& config) {
    const Config::Data& data = config.data;
    if (data.format == "synthetic") return std::nullopt;
    int64_t bytes = 0;
    const auto add = [&](const std::string& file) { bytes += static_cast<int64_t>(fs::file_size(file)); };
    for (const std::string& file : {data.train.images, data.train.labels}) {
        if (!file.empty()) add(file);
    }
    if (data.format == "image_folder") {
        for (const std::string& folder : data.train.paths) {
            for (const auto& entry : fs::recursive_directory_iterator(folder)) {
                if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
            }
        }
    } else if (!data.train.paths.empty()) {
        for (const std::string& file : source_files(data.train.paths, "data.train")) add(file);
    }
    return bytes;
}

/// Of this rank: records and seconds. The caller of the loader does nothing but ask for the next batch, so that none is
/// read ahead when the time begins nor when it ends.
std::vector<double> read_for(Communicator& comm, const BenchJob& job, int threads, double seconds) {
    const ShardRange local = shards_of_rank(job.plan->shards.shards(), comm.rank(), comm.size());
    if (local.empty()) return {0, 1};
    LoaderOptions options = training_loader_options(job.config(), *job.plan, local, 1);
    options.threads = threads;
    comm.begin_work();
    const auto waiting = [&] { comm.still_working(); };
    Loader loader(*job.data.train, job.plan->shards, options);
    loader.next(waiting);
    const Clock::time_point begin = Clock::now();
    int64_t records = 0;
    double passed = 0;
    do {
        records += loader.next(waiting).rows;
        comm.still_working();  // where the loader never has to wait
        passed = std::chrono::duration<double>(Clock::now() - begin).count();
    } while (passed < seconds);
    return {static_cast<double>(records), passed};
}

InputRate rate_of(Communicator& comm, const BenchJob& job, int threads, double seconds) {
    comm.barrier();
    std::vector<double> own;
    agree(comm, [&] { own = read_for(comm, job, threads, seconds); });
    InputRate rate{threads, 0, 0, 0};
    for (const std::vector<double>& rank : gather_numbers(comm, own)) {
        rate.records += static_cast<int64_t>(rank[0]);
        rate.seconds = std::max(rate.seconds, rank[1]);
        rate.records_per_s += rank[0] / rank[1];
    }
    return rate;
}

}  // namespace

InputBench bench_input(Communicator& comm, BenchJob& job, const std::vector<int>& threads, double seconds) {
    InputBench bench;
    bench.records = job.data.train->size();
    bench.shape = job.data.train->shape();
    agree(comm, [&] { bench.bytes = bytes_of(job.config()); });
    for (const int count : threads) bench.rates.push_back(rate_of(comm, job, count, seconds));
    agree(comm,
          [&] { comm.work_aside([&] { job.data.train = std::make_unique<HeldData>(std::move(job.data.train)); }); });
    job.loaded.config.augment = {};
    bench.step = bench_step(comm, job, seconds);
    return bench;
}

}  // namespace lockstep
