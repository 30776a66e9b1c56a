// What the emulated machine says about itself, and how it behaves where something is missing.
#include <catch2/catch.hpp>

#include <array>

#include "test/emulation/emulated_device.hpp"
#include "test/emulation/runtime.hpp"

using namespace lockstep;
using namespace lockstep::emulation;
using Catch::Contains;

TEST_CASE("a machine has as many devices as its settings say, each with an address of its own") {
    const FreshDevice device;
    settings().visible = {0, 1, 2};
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count));
    REQUIRE(count == 3);
    std::array<char, 32> first{}, second{};
    CUDA_CHECK(cudaDeviceGetPCIBusId(first.data(), 32, 0));
    CUDA_CHECK(cudaDeviceGetPCIBusId(second.data(), 32, 1));
    REQUIRE(std::string(first.data()) == "0000:10:00.0");
    REQUIRE(std::string(second.data()) == "0000:11:00.0");
    REQUIRE(cudaDeviceGetPCIBusId(first.data(), 32, 3) == cudaErrorInvalidDevice);
    REQUIRE(cudaSetDevice(3) == cudaErrorInvalidDevice);
}

TEST_CASE("a process that sees other devices numbers them anew") {
    const FreshDevice device;
    settings().visible = {5, 2};
    REQUIRE(pci_bus_id(0) == "0000:15:00.0");
    REQUIRE(pci_bus_id(1) == "0000:12:00.0");
}

TEST_CASE("properties and attributes of a device agree") {
    for (const int arch : {80, 90, 100}) {
        const FreshDevice device;
        settings().arch = arch;
        cudaDeviceProp properties{};
        CUDA_CHECK(cudaGetDeviceProperties(&properties, 1));
        REQUIRE(properties.major * 10 + properties.minor == arch);
        REQUIRE(std::string(properties.name) == "Emulated GPU (sm_" + std::to_string(arch) + ")");
        int value = 0;
        CUDA_CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 1));
        REQUIRE(value == properties.multiProcessorCount);
        CUDA_CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 1));
        REQUIRE(static_cast<std::size_t>(value) == properties.sharedMemPerBlockOptin);
        CUDA_CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrPciBusId, 1));
        REQUIRE(value == properties.pciBusID);
        REQUIRE(properties.totalGlobalMem == settings().memory);
    }
}

TEST_CASE("an attribute that is not emulated is refused, not made up") {
    const FreshDevice device;
    int value = 0;
    REQUIRE_THROWS_WITH(CUDA_CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrTextureAlignment, 0)),
                        Contains("not emulated"));
}

TEST_CASE("without a driver, with an old one or without a device every call says so") {
    const FreshDevice device;
    int count = -1, version = -1;
    void* p = nullptr;
    const auto all_give = [&](cudaError_t expected) {
        REQUIRE(cudaGetDeviceCount(&count) == expected);
        REQUIRE(count == -1);  // the real one leaves it as it was
        REQUIRE(cudaSetDevice(0) == expected);
        REQUIRE(cudaMalloc(&p, 1) == expected);
    };
    settings().driver = Driver::kMissing;
    all_give(cudaErrorInsufficientDriver);
    REQUIRE(cudaDriverGetVersion(&version) == cudaSuccess);
    REQUIRE(version == 0);
    settings().driver = Driver::kOld;
    all_give(cudaErrorInsufficientDriver);
    REQUIRE(cudaDriverGetVersion(&version) == cudaSuccess);
    REQUIRE(version == 12040);
    settings().driver = Driver::kNoDevice;
    all_give(cudaErrorNoDevice);
    settings().driver = Driver::kPresent;
    settings().visible = {};
    all_give(cudaErrorNoDevice);
}

TEST_CASE("a device that is full gives no more memory, and gives again what was freed") {
    const FreshDevice device;
    settings().memory = 1 << 20;
    std::size_t available = 0, total = 0;
    void *first = nullptr, *second = nullptr;
    CUDA_CHECK(cudaMalloc(&first, 700 << 10));
    CUDA_CHECK(cudaMemGetInfo(&available, &total));
    REQUIRE(total == 1 << 20);
    REQUIRE(available == (324 << 10));
    REQUIRE_THROWS_WITH(CUDA_CHECK(cudaMalloc(&second, 400 << 10)),
                        Contains("out of memory") && Contains("409600 bytes; 716800 of 1048576 are in use"));
    REQUIRE(cudaGetLastError() == cudaSuccess);  // the check has taken the error, and it is not sticky
    CUDA_CHECK(cudaFree(first));
    CUDA_CHECK(cudaMalloc(&second, 400 << 10));
    CUDA_CHECK(cudaFree(second));
}

TEST_CASE("an error that is not sticky is the last error until it is taken") {
    const FreshDevice device;
    REQUIRE(cudaSetDevice(99) == cudaErrorInvalidDevice);
    REQUIRE(cudaPeekAtLastError() == cudaErrorInvalidDevice);
    REQUIRE(cudaGetLastError() == cudaErrorInvalidDevice);
    REQUIRE(cudaGetLastError() == cudaSuccess);
    REQUIRE(std::string(cudaGetErrorName(cudaErrorInvalidDevice)) == "cudaErrorInvalidDevice");
}

TEST_CASE("a failed check names the call, the place, the reason and the code") {
    const FreshDevice device;
    REQUIRE_THROWS_WITH(CUDA_CHECK(cudaSetDevice(99)),
                        Contains("cudaSetDevice(99) at device_test.cpp:") &&
                            Contains("invalid device ordinal: cudaSetDevice: device 99 of 8 (cudaErrorInvalidDevice, "
                                     "CUDA error 101)"));
}
