#include "train/engine_reducer.hpp"

#include "train/forecast_step.hpp"

namespace lockstep {

Adder device_adder(Backend& backend) {
    return {[](void* device, float* dst, const float* left, const float* right, int64_t n) {
                auto& on = *static_cast<Backend*>(device);
                on.add(on.communication(), n, left, right, dst);
            },
            &backend, backend.host_sees_device() ? Adder().block : Adder::kWhole};
}

ScratchMaker device_scratch(Backend& backend) {
    return [&backend](int64_t floats) {
        const std::shared_ptr<Buffer> buffer = backend.allocate(static_cast<std::size_t>(floats) * sizeof(float));
        return std::shared_ptr<float>(buffer, buffer->floats());
    };
}

std::unique_ptr<Reducer> make_engine_reducer(Communicator& comm, const Config& config, int64_t elements,
                                             Backend& backend) {
    const Adder adder = device_adder(backend);
    const ScratchMaker scratch = device_scratch(backend);
    const ReduceLayout layout{kLead, elements};
    const int shards = static_cast<int>(config.batch.shards);
    const int64_t bucket_bytes = config.reduce.bucket_kib * 1024;
    if (config.reduce.algorithm == "native") {
        return make_native_reducer(comm, shards, layout, bucket_bytes, adder, scratch);
    }
    return make_canonical_reducer(comm, shards, layout, bucket_bytes, config.reduce.small_kib * 1024, adder, scratch);
}

}  // namespace lockstep
