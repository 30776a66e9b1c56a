// Ranks as threads, each on an emulated device of its own with a stream and a communicator of the emulated NCCL.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "test/emulation/emulated_device.hpp"
#include "test/emulation/nccl.hpp"

namespace lockstep::emulation {

/// What a rank does with NCCL, and the first thing that went wrong: a fault of its device, or what NCCL answered.
class NcclRank {
  public:
    /// Joins on `device` as `rank` of `size`; polls until all are there.
    NcclRank(const ncclUniqueId& id, int size, int rank, int device, bool blocking = true) : rank_(rank) {
        cudaSetDevice(device);
        cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = blocking ? 1 : 0;
        check(ncclCommInitRankConfig(&comm_, size, id, rank, &config));
        poll();
    }
    ~NcclRank() {
        abort();
        cudaStreamDestroy(stream_);
    }
    NcclRank(const NcclRank&) = delete;
    NcclRank& operator=(const NcclRank&) = delete;

    void abort() {
        if (comm_ != nullptr) ncclCommAbort(comm_);
        comm_ = nullptr;
    }

    int rank() const { return rank_; }
    ncclComm_t comm() const { return comm_; }
    cudaStream_t stream() const { return stream_; }
    const std::string& fault() const { return fault_; }
    int polls() const { return polls_; }

    void send(const void* from, std::size_t bytes, int to) {
        check(ncclSend(from, bytes, ncclUint8, to, comm_, stream_));
    }
    void receive(void* into, std::size_t bytes, int from) {
        check(ncclRecv(into, bytes, ncclUint8, from, comm_, stream_));
    }
    void all_reduce(float* values, std::size_t count) {
        check(ncclAllReduce(values, values, count, ncclFloat32, ncclSum, comm_, stream_));
    }
    void group(const std::function<void()>& calls) {
        check(ncclGroupStart());
        calls();
        check(ncclGroupEnd());
    }
    /// Waits for the stream; the reason where the device failed meanwhile.
    void finish() {
        const cudaError_t status = cudaStreamSynchronize(stream_);
        if (status != cudaSuccess && fault_.empty()) fault_ = cudaGetErrorString(status);
    }
    void check(ncclResult_t result) {
        if (result == ncclSuccess || result == ncclInProgress || !fault_.empty()) return;
        fault_ = result == ncclUnhandledCudaError
                     ? cudaGetErrorString(cudaPeekAtLastError())
                     : std::string(ncclGetErrorString(result)) + ": " + ncclGetLastError(comm_);
    }
    /// Until the call before is no longer in progress.
    void poll() {
        ncclResult_t state = ncclInProgress;
        for (; comm_ != nullptr && state == ncclInProgress; ++polls_) {
            if (polls_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
            if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess) break;
        }
        check(state);
    }

  private:
    int rank_;
    ncclComm_t comm_ = nullptr;
    cudaStream_t stream_ = nullptr;
    std::string fault_;
    int polls_ = 0;
};

/// Runs body on `size` threads and gives what went wrong on each. Devices are fresh before and after.
template <class Body>
std::vector<std::string> run_nccl(int size, Body body, bool blocking = true, bool one_device = false) {
    const auto reset = [&] {
        for (int device = 0; device < size; ++device) {
            cudaSetDevice(device);
            cudaDeviceReset();
        }
        cudaSetDevice(0);
    };
    reset();
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    std::vector<std::string> faults(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            NcclRank ranks(id, size, rank, one_device ? 0 : rank, blocking);
            if (ranks.fault().empty()) body(ranks);
            faults[static_cast<std::size_t>(rank)] = ranks.fault();
        });
    }
    for (std::thread& thread : threads) thread.join();
    reset();
    return faults;
}

/// The deadline of peers that never come, for one test.
class NcclTimeout {
  public:
    explicit NcclTimeout(double seconds) { set_nccl_timeout(seconds); }
    ~NcclTimeout() { set_nccl_timeout(60); }
    NcclTimeout(const NcclTimeout&) = delete;
    NcclTimeout& operator=(const NcclTimeout&) = delete;
};

}  // namespace lockstep::emulation
