// The canonical reducer on the memory of GPUs: the bits of the tree on every rank, by either transport, with CPU ranks
// among them, and with many buckets under way.
#include <catch2/catch.hpp>

#include <random>

#include "cuda/comm_fixture.hpp"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Contains;

namespace {

std::vector<int64_t> sizes_of_batch(int shards, int64_t samples) {
    std::vector<int64_t> sizes;
    for (int64_t v = 0; v < shards; ++v) sizes.push_back((v + 1) * samples / shards - v * samples / shards);
    return sizes;
}

std::string fault_on_device(Communicator& comm, Backend& backend, const ReducerCase& c, const Adder& adder) {
    const auto reducer = make_canonical_reducer(comm, c.shards, {kTestLead, c.elements}, c.bucket_bytes, c.small_bytes,
                                                adder, device_scratch(backend));
    for (size_t step = 0; step < c.steps.size(); ++step) {
        const Flat total =
            reduce_on_device(comm, backend, *reducer, c.shards, c.steps[step], c.elements, c.seed + step);
        if (!same_bits(total, flat_sum(c.seed + step, {0, c.shards}, c.steps[step], c.elements))) {
            return fmt::format("step {}: other bits than the tree on rank {}", step, comm.rank());
        }
    }
    return "";
}

void expect(const std::string& fault) {
    if (!fault.empty()) fail(ErrorKind::kMismatch, "{}", fault);
}

ReducerCase full_short_tiny_full(int shards, int64_t elements, int64_t bucket_bytes) {
    ReducerCase c;
    c.shards = shards;
    c.elements = elements;
    c.bucket_bytes = bucket_bytes;
    for (const int64_t samples : {96, 43, 3, 96}) c.steps.push_back(sizes_of_batch(shards, samples));
    return c;
}

}  // namespace

TEST_CASE("GPU ranks end with the bits of the tree, at any world, transport and bucket size") {
    for (const Transport transport : {Transport::kStaged, Transport::kNccl}) {
        for (const int world : {2, 3, 4, 5, 8}) {
            for (const int64_t bucket_bytes : {256, 4096, 64 << 20}) {
                const ReducerCase c = full_short_tiny_full(world == 5 ? 3 : 8, 1003, bucket_bytes);
                CAPTURE(world, bucket_bytes, transport == Transport::kNccl);
                CHECK(run_gpu_world(world, transport, 60, [&](Communicator&, Backend& backend, Communicator& exchange) {
                          expect(fault_on_device(exchange, backend, c, device_adder(backend)));
                      }) == "");
            }
        }
    }
}

TEST_CASE("random shards, worlds, sizes and buckets on GPUs") {
    std::mt19937 random(815);
    for (int i = 0; i < 12; ++i) {
        ReducerCase c;
        c.shards = 1 + static_cast<int>(random() % 12);
        c.elements = static_cast<int64_t>(random() % 700);
        c.bucket_bytes = int64_t{64} << (random() % 6);
        c.small_bytes = random() % 2 == 0 ? 0 : 1024;
        c.seed = random();
        c.steps.push_back(sizes_of_batch(c.shards, 1 + static_cast<int64_t>(random() % 40)));
        const int world = 2 + static_cast<int>(random() % 6);
        const Transport transport = random() % 3 == 0 ? Transport::kStaged : Transport::kNccl;
        CAPTURE(i, world, c.shards, c.elements, c.bucket_bytes, transport == Transport::kNccl);
        CHECK(run_gpu_world(world, transport, 60, [&](Communicator&, Backend& backend, Communicator& exchange) {
                  expect(fault_on_device(exchange, backend, c, device_adder(backend)));
              }) == "");
    }
}

TEST_CASE("CPU ranks and GPU ranks give one another's bits") {
    const ReducerCase c = full_short_tiny_full(8, 1003, 1024);
    for (const int gpus : {1, 2, 3}) {
        CAPTURE(gpus);
        reset_devices(4);
        CHECK_NOTHROW(run_thread_world(4, [&](Communicator& host) {
            host.set_timeout(60);
            if (host.rank() >= gpus) {
                expect(fault_in_canonical(host, c));
                return;
            }
            const std::unique_ptr<Backend> backend = backend_on(host.rank());
            const auto exchange = make_staged_communicator(host, backend->communication());
            expect(fault_on_device(*exchange, *backend, c, device_adder(*backend)));
        }));
    }
}

TEST_CASE("additions on another stream than the messages are found out") {
    const ReducerCase c = full_short_tiny_full(8, 1003, 1024);
    const std::string told =
        run_gpu_world(2, Transport::kNccl, 5, [&](Communicator&, Backend& backend, Communicator& exchange) {
            const Adder elsewhere{[](void* device, float* dst, const float* left, const float* right, int64_t n) {
                                      auto& on = *static_cast<Backend*>(device);
                                      on.add(on.main(), n, left, right, dst);
                                  },
                                  &backend};
            expect(fault_on_device(exchange, backend, c, elsewhere));
        });
    CHECK(told != "");
}

TEST_CASE("the native all-reduce stays within its bound and gives all GPUs one sum") {
    constexpr int64_t kElements = 1003;
    for (const Transport transport : {Transport::kStaged, Transport::kNccl}) {
        for (const int world : {1, 3, 4}) {
            if (world == 1 && transport == Transport::kNccl) continue;
            CAPTURE(world, transport == Transport::kNccl);
            std::vector<Flat> totals(static_cast<size_t>(world));
            const std::vector<int64_t> sizes = sizes_of_batch(8, 96);
            CHECK(run_gpu_world(world, transport, 60, [&](Communicator&, Backend& backend, Communicator& exchange) {
                      const auto reducer = make_native_reducer(exchange, 8, {kTestLead, kElements}, 1024,
                                                               device_adder(backend), device_scratch(backend));
                      totals[static_cast<size_t>(exchange.rank())] =
                          reduce_on_device(exchange, backend, *reducer, 8, sizes, kElements, 7);
                  }) == "");
            for (const Flat& total : totals) {
                CHECK(same_bits(total, totals[0]));
                CHECK(deviation_in_eps(total, 8, sizes, kElements, 7) <= 2 * 7);
            }
        }
    }
}
