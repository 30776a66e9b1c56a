// The CUDA backend in defined arithmetic for the tests of the operations: one shard at a time on arrays at odd places,
// and several at a time on aligned ones, where kernels read vectors.
#include "backend/kernel_fixture.hpp"
#include "cuda/backend/cuda_context.hpp"

namespace lockstep::test {

std::vector<NamedBackend> every_backend(int most) {
    std::vector<NamedBackend> made;
    for (const int streams : {1, most > 1 ? most : 2}) {
        CudaOptions options;
        options.streams = streams;
        const Placement placement = streams == 1 ? Placement::kOdd : Placement::kAligned;
        made.push_back({"cuda x " + std::to_string(streams), make_cuda_backend(options), placement});
    }
    return made;
}

}  // namespace lockstep::test
