// Messages of device memory through host memory.
#include <catch2/catch.hpp>

#include <chrono>
#include <thread>

#include "cuda/comm/pinned_blocks.hpp"
#include "cuda/comm_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Contains;

namespace {

std::vector<uint8_t> pattern(std::size_t bytes, int seed) {
    std::vector<uint8_t> text(bytes);
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<uint8_t>(i * 7 + static_cast<std::size_t>(seed));
    return text;
}

}  // namespace

TEST_CASE("messages of device memory pass, whatever their length") {
    CHECK(run_gpu_world(2, Transport::kStaged, 30, [](Communicator& host, Backend& backend, Communicator& exchange) {
              for (const std::size_t bytes : {0, 1, 4095, 4097, 100000}) {
                  OnDevice<uint8_t> out(backend, pattern(bytes, host.rank())), in(backend, pattern(bytes, 99));
                  exchange.send_recv(1 - host.rank(), out.bytes(), 1 - host.rank(), in.bytes(), 3);
                  if (in.read() != pattern(bytes, 1 - host.rank())) fail(ErrorKind::kMismatch, "{} bytes", bytes);
              }
          }) == "");
}

TEST_CASE("messages of one tag arrive in the order in which they were posted, whichever is asked about first") {
    CHECK(run_gpu_world(2, Transport::kStaged, 30, [](Communicator& host, Backend& backend, Communicator& exchange) {
              constexpr int kCount = 5;
              const int peer = 1 - host.rank();
              std::vector<std::unique_ptr<OnDevice<uint8_t>>> out, in;
              std::vector<Request*> requests;
              for (int i = 0; i < kCount; ++i) {
                  out.push_back(std::make_unique<OnDevice<uint8_t>>(backend, pattern(1000, host.rank() * 50 + i)));
                  in.push_back(std::make_unique<OnDevice<uint8_t>>(backend, pattern(1000, 99)));
              }
              for (int i = 0; i < kCount; ++i) {
                  requests.push_back(&exchange.receive(2 * i, peer, 4, in[static_cast<size_t>(i)]->bytes()));
                  requests.push_back(&exchange.send(2 * i + 1, peer, 4, out[static_cast<size_t>(i)]->bytes()));
              }
              // The last receive first: nobody asks about the sends before, which must leave all the same.
              for (auto request = requests.rbegin(); request != requests.rend(); ++request) {
                  exchange.wait(**request, peer);
              }
              for (int i = 0; i < kCount; ++i) {
                  if (in[static_cast<size_t>(i)]->read() != pattern(1000, peer * 50 + i)) {
                      fail(ErrorKind::kMismatch, "message {}", i);
                  }
              }
          }) == "");
}

TEST_CASE("a CPU rank and a GPU rank speak to each other") {
    reset_devices(1);
    CHECK_NOTHROW(run_thread_world(2, [](Communicator& host) {
        host.set_timeout(30);
        if (host.rank() == 0) {
            const std::unique_ptr<Backend> backend = backend_on(0);
            const auto exchange = make_staged_communicator(host, backend->communication());
            OnDevice<uint8_t> out(*backend, pattern(5000, 1)), in(*backend, pattern(5000, 99));
            exchange->send_recv(1, out.bytes(), 1, in.bytes(), 7);
            CHECK(in.read() == pattern(5000, 2));
        } else {
            const std::vector<uint8_t> out = pattern(5000, 2);
            std::vector<uint8_t> in(5000);
            host.send_recv(0, std::as_bytes(std::span(out)), 0, std::as_writable_bytes(std::span(in)), 7);
            CHECK(in == pattern(5000, 1));
        }
    }));
}

TEST_CASE("a silent peer of a staged message is named at the deadline") {
    const std::string told =
        run_gpu_world(2, Transport::kStaged, 0.4, [](Communicator& host, Backend& backend, Communicator& exchange) {
            if (host.rank() == 1) {
                std::this_thread::sleep_for(std::chrono::seconds(2));
                return;
            }
            OnDevice<uint8_t> in(backend, pattern(10, 0));
            exchange.send_recv(Communicator::kNobody, {}, 1, in.bytes());
        });
    CHECK_THAT(told, Contains("rank 1 did not answer for 0.4 s (device.timeout_s)"));
}

TEST_CASE("a message of another length than expected is refused") {
    const std::string told =
        run_gpu_world(2, Transport::kStaged, 5, [](Communicator& host, Backend& backend, Communicator& exchange) {
            OnDevice<uint8_t> memory(backend, pattern(12, 0));
            if (host.rank() == 0) exchange.send_recv(1, memory.bytes().first(10), Communicator::kNobody, {});
            if (host.rank() == 1) exchange.send_recv(Communicator::kNobody, {}, 0, memory.bytes());
        });
    CHECK_THAT(told, Contains("rank 0 sent 10 bytes where rank 1 expects 12"));
}

TEST_CASE("pinned blocks are used again, and never while a copy is under way") {
    reset_devices(1);
    const std::unique_ptr<Backend> backend = backend_on(0);
    const cudaStream_t stream = cuda_stream(backend->communication());
    OnDevice<uint8_t> memory(*backend, pattern(10000, 0));
    PinnedBlocks blocks;
    PinnedBlock* first = &blocks.take(10000);
    first->upload(memory.data(), 10000, stream);
    blocks.give(*first);
    PinnedBlock* second = &blocks.take(10000);  // the first one may still be read
    if (second == first) CHECK(first->copied());
    blocks.give(*second);
    backend->wait(backend->communication());
    const std::size_t count = blocks.count();
    for (int i = 0; i < 10; ++i) {
        PinnedBlock& again = blocks.take(9000);
        blocks.give(again);
    }
    CHECK(blocks.count() == count);
    PinnedBlock& small = blocks.take(100);
    CHECK(small.capacity() == 4096);
    CHECK(blocks.count() == count + 1);
}
