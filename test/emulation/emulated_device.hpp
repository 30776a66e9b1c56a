// What the emulation's own tests share: a device that is fresh at the start and at the end of a test, buffers and
// streams with owners, and a way to run a test case that is meant to end its process.
#pragma once

#include <cuda_runtime_api.h>

#include <sys/wait.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cuda/access.h"
#include "test/emulation/settings.hpp"

namespace lockstep::emulation {

/// Device 0, reset before and after the test; and the settings as they were.
class FreshDevice {
  public:
    FreshDevice() : before_(settings()) { reset(); }
    ~FreshDevice() {
        settings() = before_;
        reset();
    }
    FreshDevice(const FreshDevice&) = delete;
    FreshDevice& operator=(const FreshDevice&) = delete;

  private:
    static void reset() {
        cudaSetDevice(0);
        cudaDeviceReset();
    }
    Settings before_;
};

/// Memory of the current device; the destructor ignores errors, as after a sticky one.
template <class T>
class DeviceArray {
  public:
    explicit DeviceArray(std::size_t n) {
        void* p = nullptr;
        CUDA_CHECK(cudaMalloc(&p, n * sizeof(T)));
        pointer_.reset(static_cast<T*>(p));
    }
    T* get() const { return pointer_.get(); }
    void forget() { pointer_.release(); }

  private:
    struct Free {
        void operator()(T* p) const { cudaFree(p); }
    };
    std::unique_ptr<T, Free> pointer_;
};

template <class T>
class PinnedArray {
  public:
    explicit PinnedArray(std::size_t n) {
        void* p = nullptr;
        CUDA_CHECK(cudaMallocHost(&p, n * sizeof(T)));
        pointer_.reset(static_cast<T*>(p));
    }
    T* get() const { return pointer_.get(); }
    T& operator[](std::size_t i) const { return pointer_.get()[i]; }

  private:
    struct Free {
        void operator()(T* p) const { cudaFreeHost(p); }
    };
    std::unique_ptr<T, Free> pointer_;
};

class StreamOwner {
  public:
    StreamOwner() { CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    ~StreamOwner() { cudaStreamDestroy(stream_); }
    StreamOwner(const StreamOwner&) = delete;
    StreamOwner& operator=(const StreamOwner&) = delete;
    operator cudaStream_t() const { return stream_; }

  private:
    cudaStream_t stream_ = nullptr;
};

class EventOwner {
  public:
    explicit EventOwner(unsigned flags = cudaEventDisableTiming) {
        CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags));
    }
    ~EventOwner() { cudaEventDestroy(event_); }
    EventOwner(const EventOwner&) = delete;
    EventOwner& operator=(const EventOwner&) = delete;
    operator cudaEvent_t() const { return event_; }

  private:
    cudaEvent_t event_ = nullptr;
};

template <class T>
void upload(T* to, const std::vector<T>& from, cudaStream_t stream) {
    const PinnedArray<T> host(from.size());
    for (std::size_t i = 0; i < from.size(); ++i) host[i] = from[i];
    CUDA_CHECK(cudaMemcpyAsync(to, host.get(), from.size() * sizeof(T), cudaMemcpyHostToDevice, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
}

template <class T>
std::vector<T> download(const T* from, std::size_t n, cudaStream_t stream) {
    const PinnedArray<T> host(n);
    CUDA_CHECK(cudaMemcpyAsync(host.get(), from, n * sizeof(T), cudaMemcpyDeviceToHost, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    return std::vector<T>(host.get(), host.get() + n);
}

/// How a hidden test case of this executable ends when it runs in a process of its own.
struct Ending {
    bool failed;
    std::string output;
};

inline Ending run_alone(const std::string& hidden_case) {
    const std::string command = "/proc/" + std::to_string(getpid()) + "/exe '" + hidden_case + "' 2>&1";
    std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    Ending ending{false, ""};
    std::array<char, 4096> part{};
    for (std::size_t n; (n = fread(part.data(), 1, part.size(), pipe.get())) > 0;) ending.output.append(part.data(), n);
    const int status = pclose(pipe.release());
    ending.failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    return ending;
}

}  // namespace lockstep::emulation
