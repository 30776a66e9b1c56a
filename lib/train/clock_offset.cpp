#include "train/clock_offset.hpp"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "train/agreement.hpp"

namespace lockstep {
namespace {

constexpr int kTag = 830;
constexpr int kQuestions = 8;

int64_t ask(Communicator& comm) {
    const int64_t question = 0;
    int64_t answer = 0;
    comm.send_recv(0, std::as_bytes(std::span(&question, 1)), 0, std::as_writable_bytes(std::span(&answer, 1)), kTag);
    return answer;
}

void answer(Communicator& comm, int rank, FunctionRef<int64_t()> now_ns) {
    int64_t question = 0;
    comm.send_recv(Communicator::kNobody, {}, rank, std::as_writable_bytes(std::span(&question, 1)), kTag);
    const int64_t now = now_ns();
    comm.send_recv(rank, std::as_bytes(std::span(&now, 1)), Communicator::kNobody, {}, kTag);
}

}  // namespace

ClockOffset clock_offset(Communicator& comm, const std::string& clock, FunctionRef<int64_t()> now_ns) {
    const std::vector<std::string> clocks = comm.all_gather(clock);
    ClockOffset best;
    int64_t quickest = std::numeric_limits<int64_t>::max();
    // One rank at a time: a question that waits behind another's would look slow.
    for (int rank = 1; rank < comm.size(); ++rank) {
        if (clocks[static_cast<std::size_t>(rank)] == clocks.front()) continue;
        for (int i = 0; i < kQuestions; ++i) {
            if (comm.rank() == 0) answer(comm, rank, now_ns);
            if (comm.rank() != rank) continue;
            const int64_t before = now_ns();
            const int64_t there = ask(comm);
            const int64_t after = now_ns();
            if (after - before >= quickest) continue;
            quickest = after - before;
            best = {there - (before + quickest / 2), quickest - quickest / 2};
        }
    }
    return best;
}

int64_t monotonic_ns() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string monotonic_clock_name() {
    std::string boot;
    std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
    std::error_code ignored;
    const std::string space = std::filesystem::read_symlink("/proc/self/ns/time", ignored).string();
    return (boot.empty() ? host_name() : boot) + " " + space;
}

}  // namespace lockstep
