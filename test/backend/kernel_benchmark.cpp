// Dense layers and convolutions in per cent of the core's measured peak of fused multiply-adds, one thread, least
// processor time of interleaved bursts; and as a multiple of oneDNN's time where that is installed (above 1: oneDNN is
// faster).
//
//   kernel_benchmark [avx512|avx2|neon] [dense|conv|norm] [rows of dense layers …]
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"
#include "fma_peak.hpp"
#include "kernel_peer.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

double processor_seconds() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Least seconds of a call of each: bursts of some milliseconds, one after the other, so that a busy neighbour meets
/// all.
std::vector<double> least_seconds(const std::vector<std::function<void()>>& calls) {
    constexpr int kRounds = 12;
    constexpr double kBurst = 0.004;
    std::vector<int> repeats;
    for (const auto& call : calls) {
        call();
        const double begin = processor_seconds();
        call();
        repeats.push_back(std::max(1, static_cast<int>(kBurst / (processor_seconds() - begin))));
    }
    std::vector<double> least(calls.size(), 1e9);
    for (int round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const double begin = processor_seconds();
            for (int repeat = 0; repeat < repeats[i]; ++repeat) calls[i]();
            least[i] = std::min(least[i], (processor_seconds() - begin) / repeats[i]);
        }
    }
    return least;
}

class Bench {
  public:
    explicit Bench(Isa isa) : isa_(isa), backend_(make_cpu_backend({isa, 1})) {
        double least = 1e9, operations = 0;
        for (int i = 0; i < 30; ++i) {
            const double begin = processor_seconds();
            operations = run_fma_chains(isa, 100);
            least = std::min(least, processor_seconds() - begin);
        }
        peak_ = operations / least;
        fmt::print("{}: peak {:.1f} GF/s\n", isa_name(isa_), peak_ * 1e-9);
    }

    void dense(int rows, int in, int out, int shards) {
        const std::vector<int64_t> sizes = shard_sizes(rows, shards);
        const auto layer = backend_->plan_dense(in, out, fold_program(shards, {0, shards}, sizes), true);
        float* x = buffer(int64_t{rows} * in, 1);
        float* w = buffer(int64_t{in} * out, 0.1F);
        float* b = buffer(out, 1);
        float* y = buffer(int64_t{rows} * out, 1);
        float* dy = buffer(int64_t{rows} * out, 1);
        float* dx = buffer(int64_t{rows} * in, 1);
        float* dw = buffer(int64_t{in} * out, 1);
        float* db = buffer(out, 1);
        const std::string name = fmt::format("dense {} -> {}, {} rows, {} shards", in, out, rows, shards);
        const double operations = 2.0 * rows * in * out;
        Stream& stream = backend_->main();
        report(
            name, "forward", operations, [&] { layer->forward(stream, x, w, b, y); },
            peer_.dense_forward(rows, in, out, x, w, y));
        report(
            name, "data gradient", operations, [&] { layer->backward_data(stream, dy, w, dx); },
            peer_.dense_backward_data(rows, in, out, dy, w, dx));
        report(
            name, "weight gradient", operations,
            [&] {
                layer->backward_weights(stream, x, dy, {&dw, 1}, {&db, 1});
            },
            peer_.dense_backward_weights(rows, in, out, x, dy, dw));
        buffers_.clear();
    }

    void conv(int rows, int size, int in, int out, int kernel, int stride, int pad) {
        ConvShape shape;
        shape.in = {size, size, in};
        shape.out_channels = out;
        shape.kernel_h = shape.kernel_w = kernel;
        shape.stride_h = shape.stride_w = stride;
        shape.pad_top = shape.pad_bottom = shape.pad_left = shape.pad_right = pad;
        const bool first = in < 8;
        const auto layer = backend_->plan_conv(shape, true, !first);
        layer->plan_rows(rows);
        float* x = buffer(rows * shape.in.elements(), 1);
        float* w = buffer(shape.weights(), 0.1F);
        float* b = buffer(out, 1);
        float* y = buffer(rows * shape.out().elements(), 1);
        float* dy = buffer(rows * shape.out().elements(), 1);
        float* dx = buffer(rows * shape.in.elements(), 1);
        float* leaf = buffer(layer->leaf_elements(), 1);
        float* dw = buffer(shape.weights(), 1);
        const std::string name = fmt::format("conv {}x{} {} -> {}, {}x{}, stride {}, {} rows", kernel, kernel, in, out,
                                             size, size, stride, rows);
        const double operations = 2.0 * static_cast<double>(shape.weights()) * rows * shape.out_h() * shape.out_w();
        Stream& stream = backend_->main();
        layer->prepare(stream, w);
        report(
            name, "forward", operations, [&] { layer->forward(stream, rows, x, b, y); },
            peer_.conv_forward(shape, rows, x, w, y));
        if (!first) {
            report(
                name, "data gradient", operations, [&] { layer->backward_data(stream, rows, dy, dx); },
                peer_.conv_backward_data(shape, rows, dy, w, dx));
        }
        report(
            name, "weight gradient", operations, [&] { layer->backward_weights(stream, rows, x, dy, leaf); },
            peer_.conv_backward_weights(shape, rows, x, dy, dw));
        report(name, "prepare", operations, [&] { layer->prepare(stream, w); }, {});
        report(name, "store gradient", operations, [&] { layer->store_gradient(stream, leaf, dw, b); }, {});
        buffers_.clear();
    }

    void norm(int samples, int size, int channels) {
        const int64_t rows = int64_t{samples} * size * size, n = rows * channels;
        float* x = buffer(n, 1);
        float* y = buffer(n, 1);
        float* dy = buffer(n, 1);
        float* dx = buffer(n, 1);
        float* gamma = buffer(channels, 1);
        float* beta = buffer(channels, 1);
        float* moments = buffer(2 * channels, 1);
        float* statistics = buffer(2 * channels, 1);
        float* sums = buffer(2 * channels, 1);
        const std::string name = fmt::format("batch norm, relu: {}x{}x{}, {} rows", size, size, channels, samples);
        Stream& s = backend_->main();
        report_memory(
            name, "forward", n,
            [&] {
                backend_->batch_moments(s, rows, channels, x, moments);
                backend_->batch_statistics(s, rows, channels, 1e-3F, moments, statistics);
                backend_->batch_norm(s, rows, channels, true, x, statistics, gamma, beta, y);
            },
            peer_.norm_forward(samples, size, channels, x));
        report_memory(
            name, "backward", n,
            [&] {
                backend_->batch_norm_sums(s, rows, channels, x, statistics, dy, y, sums);
                backend_->batch_norm_backward(s, rows, channels, rows, x, statistics, gamma, sums, dy, y, dx);
            },
            peer_.norm_backward(samples, size, channels, x, dy));
        report_memory(name, "  moments", n, [&] { backend_->batch_moments(s, rows, channels, x, moments); }, {});
        report_memory(name, "  sums", n,
                      [&] { backend_->batch_norm_sums(s, rows, channels, x, statistics, dy, y, sums); }, {});
        buffers_.clear();
    }

  private:
    static std::vector<int64_t> shard_sizes(int rows, int shards) {
        std::vector<int64_t> sizes;
        for (int64_t v = 0; v < shards; ++v) sizes.push_back((v + 1) * rows / shards - v * rows / shards);
        return sizes;
    }

    float* buffer(int64_t n, float scale) {
        buffers_.push_back(backend_->allocate(static_cast<std::size_t>(n) * sizeof(float)));
        float* p = buffers_.back()->floats();
        uint64_t state = 88172645463325252U + buffers_.size();
        for (int64_t i = 0; i < n; ++i) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            p[i] = scale * (static_cast<float>(state >> 40) / static_cast<float>(1 << 23) - 1.0F);
        }
        return p;
    }

    void report(const std::string& name, const char* pass, double operations, const std::function<void()>& own,
                const std::vector<std::function<void()>>& peers) {
        std::vector<std::function<void()>> calls{own};
        calls.insert(calls.end(), peers.begin(), peers.end());
        const std::vector<double> seconds = least_seconds(calls);
        print(name, pass, seconds, fmt::format("{:>4.0f} %", 100 * operations / seconds[0] / peak_));
    }

    /// What memory or caches bound: nanoseconds for each thousand elements.
    void report_memory(const std::string& name, const char* pass, int64_t n, const std::function<void()>& own,
                       const std::vector<std::function<void()>>& peers) {
        std::vector<std::function<void()>> calls{own};
        calls.insert(calls.end(), peers.begin(), peers.end());
        const std::vector<double> seconds = least_seconds(calls);
        print(name, pass, seconds, fmt::format("{:>4.0f} ns/k", 1e12 * seconds[0] / static_cast<double>(n)));
    }

    static void print(const std::string& name, const char* pass, const std::vector<double>& seconds,
                      const std::string& rate) {
        std::string line = fmt::format("{:<42} {:<16} {:>9.1f} us {}", name, pass, seconds[0] * 1e6, rate);
        for (std::size_t i = 1; i < seconds.size(); ++i) line += fmt::format("  {:.2f}", seconds[0] / seconds[i]);
        fmt::print("{}\n", line);
        std::fflush(stdout);
    }

    Isa isa_;
    std::unique_ptr<Backend> backend_;
    KernelPeer peer_;
    double peak_ = 0;
    std::vector<std::unique_ptr<Buffer>> buffers_;
};

}  // namespace

int main(int argc, char** argv) {
    Isa isa = available_isas().front();
    std::vector<int> rows;
    std::string only;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        bool named = word == "dense" || word == "conv" || word == "norm";
        if (named) only = word;
        for (const Isa candidate : available_isas()) {
            if (word == isa_name(candidate)) {
                isa = candidate;
                named = true;
            }
        }
        if (!named) rows.push_back(std::max(1, std::atoi(argv[i])));
    }
    if (isa == Isa::kScalar) {
        fmt::print(stderr, "kernel_benchmark: the scalar reference is no kernel; choose avx512, avx2 or neon\n");
        return 2;
    }
    if (rows.empty()) rows = {128};
    Bench bench(isa);
    if (only == "conv" || only == "norm") rows.clear();
    for (const int m : rows) {
        for (const auto& [in, out] : {std::pair{784, 512}, {512, 256}, {256, 10}, {3136, 512}, {4096, 4096}}) {
            bench.dense(m, in, out, 8);
        }
    }
    if (only == "dense") return 0;
    if (only.empty() || only == "norm") {
        bench.norm(16, 32, 16);  // resnet20
        bench.norm(16, 16, 32);
        bench.norm(16, 8, 64);
        bench.norm(4, 56, 64);  // resnet50
        bench.norm(4, 56, 256);
        bench.norm(4, 14, 1024);
    }
    if (only == "norm") return 0;
    bench.conv(16, 28, 1, 32, 5, 1, 2);  // lenet
    bench.conv(16, 14, 32, 64, 5, 1, 2);
    bench.conv(16, 32, 16, 16, 3, 1, 1);  // resnet20
    bench.conv(16, 32, 16, 32, 3, 2, 1);
    bench.conv(16, 8, 64, 64, 3, 1, 1);
    bench.conv(4, 56, 64, 64, 3, 1, 1);  // resnet50
    bench.conv(4, 56, 64, 64, 1, 1, 0);
    bench.conv(4, 56, 64, 256, 1, 1, 0);
    bench.conv(4, 56, 256, 512, 1, 2, 0);
    bench.conv(4, 56, 128, 128, 3, 2, 1);
    bench.conv(4, 14, 1024, 256, 1, 1, 0);
    bench.conv(4, 7, 512, 512, 3, 1, 1);
    bench.conv(4, 224, 3, 64, 7, 2, 3);
    return 0;
}
