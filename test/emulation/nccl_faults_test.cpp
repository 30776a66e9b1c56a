// What goes wrong with NCCL and would hang, corrupt memory or depend on luck on a GPU: each is planted here and must be
// found and named, beside a twin that does it rightly.
#include <catch2/catch.hpp>

#include "test/emulation/nccl_ranks.hpp"

using namespace lockstep;
using namespace lockstep::emulation;
using Catch::Contains;

namespace {

/// Rank 0 sends, rank 1 receives.
std::vector<std::string> send_one(std::size_t sent, std::size_t expected) {
    return run_nccl(2, [&](NcclRank& rank) {
        const DeviceArray<std::byte> memory(100);
        if (rank.rank() == 0) rank.send(memory.get(), sent, 1);
        if (rank.rank() == 1) rank.receive(memory.get(), expected, 0);
        rank.finish();
    });
}

/// Both ranks send to each other and receive.
std::vector<std::string> swap(bool grouped) {
    return run_nccl(2, [&](NcclRank& rank) {
        const DeviceArray<std::byte> out(100), in(100);
        const int peer = 1 - rank.rank();
        const auto both = [&] {
            rank.send(out.get(), 100, peer);
            rank.receive(in.get(), 100, peer);
        };
        if (grouped) {
            rank.group(both);
        } else {
            both();
        }
        rank.finish();
    });
}

/// Rank 0 sends what another stream writes; `ordered` by an event or not.
std::vector<std::string> send_while_written(bool ordered) {
    return run_nccl(2, [&](NcclRank& rank) {
        const DeviceArray<std::byte> memory(100);
        if (rank.rank() == 0) {
            const StreamOwner compute;
            const EventOwner written;
            cudaMemsetAsync(memory.get(), 1, 100, compute);
            if (ordered) {
                cudaEventRecord(written, compute);
                cudaStreamWaitEvent(rank.stream(), written, 0);
            }
            rank.send(memory.get(), 100, 1);
            rank.finish();
        } else {
            rank.receive(memory.get(), 100, 0);
            rank.finish();
        }
    });
}

/// Rank 1 reads on another stream what it receives, behind an event recorded before or after the poll that ends the
/// call of a communicator that does not block.
std::vector<std::string> read_behind_event(bool polled) {
    return run_nccl(
        2,
        [&](NcclRank& rank) {
            const DeviceArray<std::byte> memory(100);
            if (rank.rank() == 0) {
                cudaMemsetAsync(memory.get(), 1, 100, rank.stream());
                rank.send(memory.get(), 100, 1);
                rank.poll();
                rank.finish();
                return;
            }
            const StreamOwner compute;
            const EventOwner arrived;
            rank.receive(memory.get(), 100, 0);
            if (polled) rank.poll();
            cudaEventRecord(arrived, rank.stream());
            cudaStreamWaitEvent(compute, arrived, 0);
            const PinnedArray<std::byte> host(100);
            if (cudaMemcpyAsync(host.get(), memory.get(), 100, cudaMemcpyDeviceToHost, compute) != cudaSuccess) {
                rank.check(ncclUnhandledCudaError);
            }
            if (!polled) rank.poll();
            rank.finish();
            cudaStreamSynchronize(compute);
        },
        false);
}

}  // namespace

TEST_CASE("a message of another length than expected is named on both sides") {
    const NcclTimeout soon(5);
    const std::vector<std::string> faults = send_one(10, 12);
    CHECK_THAT(faults[1], Contains("rank 1 expects a message of 12 x ncclUint8 from rank 0, which sends a message of "
                                   "10 x ncclUint8"));
    CHECK_THAT(faults[0], Contains("rank 0 stops: rank 1 expects"));
    CHECK(send_one(12, 12) == std::vector<std::string>(2));
}

TEST_CASE("different collectives are named") {
    const NcclTimeout soon(5);
    const auto reduce = [](std::size_t on_rank_0, std::size_t on_rank_1) {
        return run_nccl(2, [&](NcclRank& rank) {
            const DeviceArray<float> values(100);
            cudaMemsetAsync(values.get(), 0, 400, rank.stream());
            rank.all_reduce(values.get(), rank.rank() == 0 ? on_rank_0 : on_rank_1);
            rank.finish();
        });
    };
    const std::vector<std::string> faults = reduce(10, 12);
    CHECK_THAT(faults[0] + faults[1], Contains("ncclAllReduce number 0 of 10 x ncclFloat32"));
    CHECK_THAT(faults[0] + faults[1], Contains("ncclAllReduce number 0 of 12 x ncclFloat32"));
    CHECK(reduce(12, 12) == std::vector<std::string>(2));

    const std::vector<std::string> mixed = run_nccl(2, [](NcclRank& rank) {
        const DeviceArray<float> values(10);
        cudaMemsetAsync(values.get(), 0, 40, rank.stream());
        if (rank.rank() == 0) rank.all_reduce(values.get(), 10);
        if (rank.rank() == 1) rank.receive(values.get(), 40, 0);
        rank.finish();
    });
    CHECK_THAT(mixed[1], Contains("expects a message of 40 x ncclUint8 from rank 0, which sends ncclAllReduce"));
}

TEST_CASE("a peer that never comes is named") {
    const NcclTimeout soon(0.3);
    const std::vector<std::string> faults = run_nccl(3, [](NcclRank& rank) {
        const DeviceArray<std::byte> memory(10);
        if (rank.rank() == 0) rank.receive(memory.get(), 10, 2);
        rank.finish();
    });
    CHECK_THAT(faults[0], Contains("rank 0 waits to receive from rank 2 a message of 10 x ncclUint8"));
    CHECK(faults[1].empty());
    CHECK(faults[2].empty());
}

TEST_CASE("a rank that never joins is named") {
    const NcclTimeout soon(0.3);
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    const NcclRank alone(id, 2, 0, 0);
    CHECK_THAT(alone.fault(), Contains("rank 0 waits for these ranks to join: 1"));
}

TEST_CASE("sends that wait for each other outside a group are found, and in a group they pass") {
    const NcclTimeout soon(0.5);
    const std::vector<std::string> faults = swap(false);
    CHECK_THAT(faults[0], Contains("rank 0 waits to send to rank 1"));
    CHECK_THAT(faults[1], Contains("rank 1 waits to send to rank 0"));
    CHECK(swap(true) == std::vector<std::string>(2));
}

TEST_CASE("two ranks on one device are refused") {
    const std::vector<std::string> faults = run_nccl(
        2, [](NcclRank&) {}, true, true);
    CHECK_THAT(faults[0], Contains("Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 0000:10:00.0"));
    CHECK_THAT(faults[1], Contains("Duplicate GPU detected"));
    CHECK(run_nccl(2, [](NcclRank&) {}) == std::vector<std::string>(2));
}

TEST_CASE("a message that another stream still writes is found") {
    const NcclTimeout soon(0.5);
    CHECK_THAT(send_while_written(false)[0], Contains("ncclSend"));
    CHECK(send_while_written(true) == std::vector<std::string>(2));
}

TEST_CASE("an event recorded before NCCL has queued its work does not cover it") {
    const NcclTimeout soon(0.5);
    CHECK_FALSE(read_behind_event(false)[1].empty());
    CHECK(read_behind_event(true) == std::vector<std::string>(2));
}

TEST_CASE("a communicator whose call is in progress is not to be used") {
    const std::vector<std::string> faults = run_nccl(
        2,
        [](NcclRank& rank) {
            const DeviceArray<std::byte> memory(10);
            rank.group([&] {
                if (rank.rank() == 0) rank.send(memory.get(), 10, 1);
                if (rank.rank() == 1) rank.receive(memory.get(), 10, 0);
            });
            rank.all_reduce(nullptr, 0);  // before poll()
            rank.poll();
            rank.finish();
        },
        false);
    for (const std::string& fault : faults) CHECK_THAT(fault, Contains("before the previous operation returned"));
}

TEST_CASE("a message into memory that its group also sends is refused") {
    const std::vector<std::string> faults = run_nccl(2, [](NcclRank& rank) {
        const DeviceArray<std::byte> memory(100);
        rank.group([&] {
            rank.send(memory.get(), 60, 1 - rank.rank());
            rank.receive(memory.get() + 50, 50, 1 - rank.rank());
        });
        rank.finish();
    });
    for (const std::string& fault : faults)
        CHECK_THAT(fault, Contains("received into memory that the same group uses"));
}
