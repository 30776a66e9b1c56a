// Ranks as threads, each with the GPU backend on a device and one of the communicators of device memory. Emulated
// devices are as many as ranks; real ones are shared where they are fewer, which all but NCCL allows.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/reducer_cases.hpp"
#include "comm/thread_communicator.hpp"
#include "core/error.hpp"
#include "cuda/access.h"
#include "cuda/backend/cuda_context.hpp"
#include "cuda/comm/nccl_communicator.hpp"
#include "cuda/comm/staged_communicator.hpp"

namespace lockstep::test {

enum class Transport { kStaged, kNccl };

inline std::unique_ptr<Communicator> make_exchange(Transport transport, Communicator& host, Backend& backend) {
#if defined(LOCKSTEP_HAVE_NCCL) || defined(LOCKSTEP_CUDA_EMULATION)
    if (transport == Transport::kNccl) return make_nccl_communicator(host, backend.communication());
#endif
    if (transport != Transport::kStaged) fail(ErrorKind::kUsage, "this build is without NCCL");
    return make_staged_communicator(host, backend.communication());
}

/// The device of a rank.
inline int device_of(int rank) {
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    return rank % count;
}

inline std::unique_ptr<Backend> backend_on(int rank) {
    CudaOptions options;
    options.device = device_of(rank);
    options.streams = 1;
    return make_cuda_backend(options);
}

/// Emulated devices as new: an error of one test is none of the next. NVIDIA's libraries keep things on real ones.
inline void reset_devices([[maybe_unused]] int count) {
#ifdef LOCKSTEP_CUDA_EMULATION
    for (int device = 0; device < count; ++device) {
        cudaSetDevice(device);
        cudaDeviceReset();
    }
#endif
    cudaSetDevice(0);
}

/// Floats or bytes on a device.
template <class T>
class OnDevice {
  public:
    OnDevice(Backend& backend, const std::vector<T>& values)
        : backend_(backend), count_(values.size()), buffer_(backend.allocate(values.size() * sizeof(T))) {
        backend.upload(backend.communication(), values.data(), buffer_->data(), count_ * sizeof(T));
    }
    T* data() { return reinterpret_cast<T*>(buffer_->data()); }
    std::span<T> span() { return {data(), count_}; }
    std::span<std::byte> bytes() { return std::as_writable_bytes(span()); }
    /// In the order of the communication stream.
    std::vector<T> read() {
        std::vector<T> values(count_);
        backend_.download(backend_.communication(), data(), values.data(), count_ * sizeof(T));
        backend_.wait(backend_.communication());
        return values;
    }

  private:
    Backend& backend_;
    std::size_t count_;
    std::unique_ptr<Buffer> buffer_;
};

/// body(host, backend, exchange) on every rank; "" or the first error that is a rank's own.
template <class Body>
std::string run_gpu_world(int world, Transport transport, double timeout, Body body) {
    reset_devices(world);
    std::string told;
    try {
        run_thread_world(world, [&](Communicator& host) {
            host.set_timeout(timeout);
            const std::unique_ptr<Backend> backend = backend_on(host.rank());
            const std::unique_ptr<Communicator> exchange = make_exchange(transport, host, *backend);
            body(host, *backend, *exchange);
        });
    } catch (const Error& e) {
        told = e.what();
    }
    reset_devices(world);
    return told;
}

/// Additions by the device, on its communication stream.
inline Adder device_adder(Backend& backend) {
    return {[](void* device, float* dst, const float* left, const float* right, int64_t n) {
                auto& on = *static_cast<Backend*>(device);
                on.add(on.communication(), n, left, right, dst);
            },
            &backend, Adder::kWhole};
}

inline ScratchMaker device_scratch(Backend& backend) {
    return [&backend](int64_t floats) {
        std::shared_ptr<Buffer> buffer = backend.allocate(static_cast<std::size_t>(floats) * sizeof(float));
        return std::shared_ptr<float>(buffer, buffer->floats());
    };
}

/// reduce_once() of reducer_cases.hpp on memory of the device.
inline Flat reduce_on_device(Communicator& comm, Backend& backend, Reducer& reducer, int shards,
                             std::span<const int64_t> sizes, int64_t elements, uint64_t seed) {
    const auto nodes = maximal_nodes(shards, shards_of_rank(shards, comm.rank(), comm.size()), sizes);
    std::vector<std::unique_ptr<OnDevice<float>>> memory;
    for (const ShardRange& node : nodes) {
        memory.push_back(std::make_unique<OnDevice<float>>(backend, flat_sum(seed, node, sizes, elements)));
    }
    if (memory.empty()) {
        Flat none(static_cast<size_t>(kTestLead + elements), std::numeric_limits<float>::quiet_NaN());
        std::fill_n(none.begin(), kTestLead, 0.0F);
        memory.push_back(std::make_unique<OnDevice<float>>(backend, none));
    }
    std::vector<float*> partial;
    for (const auto& flat : memory) partial.push_back(flat->data());
    reducer.begin(sizes, partial);
    for (const int64_t percent : {70, 65, 10, 0}) {
        reducer.ready(elements * percent / 100);
        reducer.poll();
    }
    reducer.finish();
    return memory.front()->read();
}

}  // namespace lockstep::test
