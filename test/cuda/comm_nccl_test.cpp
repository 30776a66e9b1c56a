// Messages of device memory by NCCL: order, deadlines, and an end without a hang whatever goes wrong.
#include <catch2/catch.hpp>

#include <chrono>
#include <future>
#include <optional>
#include <thread>

#include "backend/out_of_memory.hpp"
#include "cuda/comm_fixture.hpp"
#include "test/emulation/emulated_device.hpp"
#include "test/emulation/nccl_ranks.hpp"
#include "train/device.hpp"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Contains;

namespace {

std::vector<uint8_t> pattern(std::size_t bytes, int seed) {
    std::vector<uint8_t> text(bytes);
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<uint8_t>(i * 7 + static_cast<std::size_t>(seed));
    return text;
}

void receive_from_1(Backend& backend, Communicator& exchange) {
    OnDevice<uint8_t> in(backend, pattern(100, 0));
    exchange.wait(exchange.receive(0, 1, 0, in.bytes()), 1);
    exchange.settle();
}

/// Rank 0 fails with a message on its stream that rank 1 never sends; what its device reports when all is unwound.
/// `timeout_s`: after it the emulation ends the wait itself.
std::string device_after_unwinding(bool exchange_ends_first, double timeout_s) {
    const emulation::NcclTimeout limit(timeout_s);
    reset_devices(2);
    std::string told;
    std::promise<void> unwound;
    run_thread_world(2, [&](Communicator& host) {
        host.set_timeout(120);
        DeviceChoice device;
        device.backend = backend_on(host.rank());
        device.exchange = make_nccl_communicator(host, device.backend->communication());
        if (host.rank() == 1) return unwound.get_future().wait();
        try {
            OnDevice<uint8_t> in(*device.backend, pattern(100, 0));
            std::optional<ExchangeEndsFirst> ends_first;
            if (exchange_ends_first) ends_first.emplace(device);
            device.exchange->receive(0, 1, 0, in.bytes()).test();
            fail(ErrorKind::kData, "no more data");
        } catch (const Error& e) {
            CHECK(std::string(e.what()) == "no more data");
        }
        told = cudaGetErrorString(cudaDeviceSynchronize());
        unwound.set_value();
    });
    reset_devices(2);
    return told;
}

}  // namespace

TEST_CASE("what is noted leaves as one group, in any order of sends and receives") {
    CHECK(run_gpu_world(3, Transport::kNccl, 30, [](Communicator& host, Backend& backend, Communicator& exchange) {
              const int next = (host.rank() + 1) % 3, before = (host.rank() + 2) % 3;
              for (int round = 0; round < 4; ++round) {
                  OnDevice<uint8_t> out(backend, pattern(70000, host.rank() + round)), in(backend, pattern(70000, 99));
                  Request* sent = nullptr;
                  if (host.rank() != 1) sent = &exchange.send(0, next, 5, out.bytes());
                  Request& arrived = exchange.receive(1, before, 6, in.bytes());
                  if (host.rank() == 1) sent = &exchange.send(0, next, 5, out.bytes());
                  if (!arrived.test() || !sent->test())
                      fail(ErrorKind::kMismatch, "test() of a queued message is true");
                  if (in.read() != pattern(70000, before + round)) fail(ErrorKind::kMismatch, "round {}", round);
              }
              exchange.settle();
              exchange.settle();  // nothing is under way: at once
          }) == "");
}

TEST_CASE("a rank that never comes is named at the deadline, and nothing hangs") {
    const std::string told =
        run_gpu_world(3, Transport::kNccl, 0.5, [](Communicator& host, Backend& backend, Communicator& exchange) {
            if (host.rank() == 0) receive_from_1(backend, exchange);
            if (host.rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(2));
        });
    CHECK_THAT(told, Contains("did not answer for 0.5 s (device.timeout_s)"));
    CHECK_THAT(told, Contains("1"));
    CHECK_THAT(told, Contains("(rank 0 in an exchange with 1)"));
}

TEST_CASE("a rank that says that it is at work is waited for") {
    CHECK(run_gpu_world(2, Transport::kNccl, 1, [](Communicator& host, Backend& backend, Communicator& exchange) {
              if (host.rank() == 1) {
                  host.begin_work();
                  for (int i = 0; i < 110; ++i) {
                      std::this_thread::sleep_for(std::chrono::milliseconds(20));
                      host.still_working();
                  }
                  OnDevice<uint8_t> out(backend, pattern(100, 5));
                  exchange.wait(exchange.send(0, 0, 0, out.bytes()), 0);
                  exchange.settle();
              } else {
                  receive_from_1(backend, exchange);
              }
          }) == "");
}

TEST_CASE("a rank that fails ends the others' wait with its own error") {
    const auto start = std::chrono::steady_clock::now();
    const std::string told =
        run_gpu_world(2, Transport::kNccl, 30, [](Communicator& host, Backend& backend, Communicator& exchange) {
            if (host.rank() == 1) fail(ErrorKind::kData, "no more data");
            receive_from_1(backend, exchange);
        });
    CHECK(told == "no more data");
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(15));
}

TEST_CASE("where NCCL finds too little memory, the device is told to be out of it") {
    const emulation::FreshDevice fresh;
    emulation::settings().library_memory = 2 * emulation::settings().memory;
    reset_devices(2);
    std::string told;
    try {
        run_thread_world(2, [](Communicator& host) {
            host.set_timeout(30);
            const std::unique_ptr<Backend> backend = backend_on(host.rank());
            make_nccl_communicator(host, backend->communication());
        });
    } catch (const OutOfMemory& e) {
        told = e.what();
    }
    CHECK_THAT(told, Contains("ncclCommInitRankConfig") && Contains("'out of memory'") && Contains("GiB free"));
}

TEST_CASE("while an error unwinds, the exchange ends before the memory that a silent peer's message waits for") {
    const std::string told = device_after_unwinding(true, 60);
    CHECK(told == "no error");
}

TEST_CASE("twin: memory that goes before the exchange waits for the peer, on a GPU for ever") {
    CHECK_THAT(device_after_unwinding(false, 0.5), Contains("rank 0 waits to receive from rank 1"));
}

TEST_CASE("two ranks on one GPU are refused by NCCL with both ranks and the GPU") {
    reset_devices(1);
    std::string told;
    try {
        run_thread_world(2, [](Communicator& host) {
            host.set_timeout(5);
            const std::unique_ptr<Backend> backend = backend_on(0);
            make_nccl_communicator(host, backend->communication());
        });
    } catch (const Error& e) {
        told = e.what();
    }
    CHECK_THAT(told, Contains("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 0000:10:00.0"));
}

TEST_CASE("a message of another length names both ranks") {
    const std::string told =
        run_gpu_world(2, Transport::kNccl, 10, [](Communicator& host, Backend& backend, Communicator& exchange) {
            OnDevice<uint8_t> memory(backend, pattern(100, 0));
            if (host.rank() == 1) exchange.send(0, 0, 0, memory.bytes().first(90)).test();
            if (host.rank() == 0) exchange.receive(0, 1, 0, memory.bytes()).test();
            exchange.settle();
        });
    CHECK_THAT(told, Contains("rank 0 expects a message of 100 x ncclUint8 from rank 1"));
}

TEST_CASE("after an error nothing can be exchanged any more") {
    std::string second;
    run_gpu_world(2, Transport::kNccl, 0.4, [&](Communicator& host, Backend& backend, Communicator& exchange) {
        if (host.rank() == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1500));
            return;
        }
        try {
            receive_from_1(backend, exchange);
        } catch (const Error&) {
            try {
                receive_from_1(backend, exchange);
            } catch (const Error& e) {
                second = e.what();
            }
        }
    });
    CHECK_THAT(second, Contains("the exchange between GPUs was given up after an error"));
}
