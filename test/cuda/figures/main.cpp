// gpu_figures convolutions|products|machine …: see figures.hpp. Exit code 0: as it must be; 1: not; 77: no usable GPU.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/error.hpp"
#include "cuda/backend/device_check.hpp"
#include "cuda/backend/vendor.hpp"
#include "test/cuda/figures/figures.hpp"

namespace {

constexpr const char* kUsage =
    "usage: gpu_figures convolutions MODEL ROWS PRECISION REPETITIONS | products PRECISION ROUNDS | machine "
    "MEGABYTES\n";

lockstep::CudaPrecision precision_of(const std::string& name) {
    using lockstep::CudaPrecision;
    for (const auto precision :
         {CudaPrecision::kFp32, CudaPrecision::kTf32, CudaPrecision::kBf16, CudaPrecision::kFp16}) {
        if (name == lockstep::precision_name(precision)) return precision;
    }
    lockstep::fail(lockstep::ErrorKind::kUsage, "no precision is named {}", name);
}

bool run(const std::vector<std::string>& words) {
    namespace figures = lockstep::figures;
    const std::string what = words.empty() ? "" : words[0];
    if (what == "convolutions" && words.size() == 5)
        return figures::convolutions(words[1], std::stoi(words[2]), precision_of(words[3]), std::stoi(words[4]));
    if (what == "products" && words.size() == 3) return figures::products(precision_of(words[1]), std::stoi(words[2]));
    if (what == "machine" && words.size() == 2) return figures::machine(std::stoi(words[1]));
    lockstep::fail(lockstep::ErrorKind::kUsage, "{}", kUsage);
}

}  // namespace

int main(int argc, char* argv[]) {
    try {
        lockstep::open_device(0);
    } catch (const lockstep::Error& error) {
        fmt::print(stderr, "skipped: {}\n", error.what());
        return 77;
    }
    try {
        return run({argv + 1, argv + argc}) ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "gpu_figures: {}\n", error.what());
        return 1;
    }
}
