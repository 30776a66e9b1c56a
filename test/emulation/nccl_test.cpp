// The emulated NCCL where it is used rightly: messages, the native all-reduce, processes, and calls that do not block.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>

#include "test/emulation/nccl_ranks.hpp"

using namespace lockstep;
using namespace lockstep::emulation;

namespace {

const std::vector<std::string> kNoFault2(2), kNoFault3(3);

std::vector<std::byte> pattern(std::size_t bytes, int seed) {
    std::vector<std::byte> text(bytes);
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<std::byte>(i * 7 + static_cast<std::size_t>(seed));
    return text;
}

/// Sends to the next rank and receives from the one before, in one group.
void pass_round(NcclRank& rank, int size, std::size_t bytes) {
    const DeviceArray<std::byte> out(bytes + 1), in(bytes + 1);
    upload(out.get(), pattern(bytes + 1, rank.rank()), rank.stream());
    rank.group([&] {
        rank.send(out.get(), bytes, (rank.rank() + 1) % size);
        rank.receive(in.get(), bytes, (rank.rank() + size - 1) % size);
    });
    rank.poll();
    rank.finish();
    if (!rank.fault().empty() || bytes == 0) return;
    const std::vector<std::byte> arrived = download(in.get(), bytes, rank.stream());
    std::vector<std::byte> expected = pattern(bytes, (rank.rank() + size - 1) % size);
    if (arrived != expected) rank.check(ncclInternalError);
}

}  // namespace

TEST_CASE("messages of a group arrive, whatever their length") {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{65536}, std::size_t{200001}}) {
        CAPTURE(bytes);
        CHECK(run_nccl(3, [&](NcclRank& rank) { pass_round(rank, 3, bytes); }) == kNoFault3);
    }
}

TEST_CASE("messages of one pair arrive in the order in which they were given") {
    CHECK(run_nccl(2, [](NcclRank& rank) {
              const DeviceArray<std::byte> memory(300);
              upload(memory.get(), pattern(300, rank.rank() * 100), rank.stream());
              rank.group([&] {
                  for (std::size_t i = 0; i < 3; ++i) {
                      if (rank.rank() == 0) rank.send(memory.get() + i * 100, 100 - i, 1);
                      if (rank.rank() == 1) rank.receive(memory.get() + i * 100, 100 - i, 0);
                  }
              });
              rank.finish();
              if (rank.rank() == 0) return;
              const std::vector<std::byte> arrived = download(memory.get(), 300, rank.stream());
              const std::vector<std::byte> sent = pattern(300, 0);
              for (std::size_t i = 0; i < 3; ++i) {
                  if (std::memcmp(&arrived[i * 100], &sent[i * 100], 100 - i) != 0) rank.check(ncclInternalError);
              }
          }) == kNoFault2);
}

TEST_CASE("the all-reduce gives one sum to all ranks, and not that of any fixed order") {
    constexpr std::size_t kCount = 1001;
    std::vector<std::vector<float>> sums(3);
    const auto term = [](int rank, std::size_t i) {
        return rank == 0 ? 1e8F : rank == 1 ? -1e8F : 1.0F + static_cast<float>(i);
    };
    CHECK(run_nccl(3, [&](NcclRank& rank) {
              std::vector<float> own(kCount);
              for (std::size_t i = 0; i < kCount; ++i) own[i] = term(rank.rank(), i);
              const DeviceArray<float> values(kCount);
              upload(values.get(), own, rank.stream());
              rank.all_reduce(values.get(), kCount);
              rank.finish();
              if (rank.fault().empty()) {
                  sums[static_cast<std::size_t>(rank.rank())] = download(values.get(), kCount, rank.stream());
              }
          }) == kNoFault3);
    CHECK(sums[0] == sums[1]);
    CHECK(sums[0] == sums[2]);
    std::size_t in_order = 0;
    for (std::size_t i = 0; i < kCount; ++i) in_order += sums[0][i] == (term(0, i) + term(1, i)) + term(2, i) ? 1 : 0;
    CHECK(in_order > 0);
    CHECK(in_order < kCount);
}

TEST_CASE("a communicator that must not block is in progress for a while, and then works") {
    CHECK(run_nccl(
              3,
              [](NcclRank& rank) {
                  if (rank.polls() < 3) rank.check(ncclInternalError);
                  pass_round(rank, 3, 1000);
              },
              false) == kNoFault3);
}

TEST_CASE("a communicator is destroyed once it is finalized, and not before") {
    CHECK(run_nccl(2, [](NcclRank& rank) {
              ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
              ncclUniqueId id;
              ncclComm_t alone = nullptr;
              rank.check(ncclGetUniqueId(&id));
              rank.check(ncclCommInitRankConfig(&alone, 1, id, 0, &config));
              if (ncclCommDestroy(alone) != ncclInvalidUsage) rank.check(ncclInternalError);
              rank.check(ncclCommFinalize(alone));
              rank.check(ncclCommDestroy(alone));
          }) == kNoFault2);
}

TEST_CASE("an abort ends what waits on the stream") {
    CHECK(run_nccl(2, [](NcclRank& rank) {
              if (rank.rank() == 1) return;  // never comes
              const DeviceArray<std::byte> memory(10);
              rank.receive(memory.get(), 10, 1);
              rank.abort();
              rank.finish();
          }) == kNoFault2);
}

// The other half of the next test: rank 1, in a process of its own.
TEST_CASE("rank 1 of two processes", "[.]") {
    ncclUniqueId id{};
    std::snprintf(id.internal, sizeof id.internal, "%s", std::getenv("LOCKSTEP_EMULATION_TEST_ID"));
    NcclRank rank(id, 2, 1, 1);
    pass_round(rank, 2, 150000);
    CHECK(rank.fault().empty());
}

TEST_CASE("ranks may be processes") {
    ncclUniqueId id;
    ncclGetUniqueId(&id);
    setenv("LOCKSTEP_EMULATION_TEST_ID", id.internal, 1);
    Ending ending{true, ""};
    std::thread other([&] { ending = run_alone("rank 1 of two processes"); });
    std::string fault;
    {
        NcclRank rank(id, 2, 0, 0);
        pass_round(rank, 2, 150000);
        fault = rank.fault();
    }
    other.join();
    CAPTURE(ending.output);
    CHECK_FALSE(ending.failed);
    CHECK(fault.empty());
}
