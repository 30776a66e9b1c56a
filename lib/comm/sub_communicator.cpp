#include "comm/sub_communicator.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "comm/peer_collectives.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

// The job's tags are below the first border; worlds take turns with the parts above it. MPI promises tags up to 32767.
constexpr int kTagsOfWorld = 8192;
constexpr int kTurns = 32768 / kTagsOfWorld - 1;

std::string own_host() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

class SubCommunicator final : public PeerCommunicator {
  public:
    SubCommunicator(Communicator& job, int first, int size, int number)
        : job_(job), first_(first), size_(size), first_tag_((1 + number % kTurns) * kTagsOfWorld) {
        if (first < 0 || size < 1 || job.rank() < first || job.rank() >= first + size || first + size > job.size()) {
            fail(ErrorKind::kRuntime, "rank {} of {} cannot be of a world of the ranks {} … {}", job.rank(), job.size(),
                 first, first + size - 1);
        }
        // Where all ranks share a host, names need not be asked for.
        const std::string host = job.local_size() == job.size() ? "" : own_host();
        const std::vector<std::string> hosts = PeerCommunicator::all_gather(host);
        local_size_ = static_cast<int>(std::count(hosts.begin(), hosts.end(), host));
        local_rank_ = static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank(), host));
    }

    int rank() const override { return job_.rank() - first_; }
    int size() const override { return size_; }
    int local_rank() const override { return local_rank_; }
    int local_size() const override { return local_size_; }

    // Nothing of the job is under way meanwhile, so that its slots are free to use.
    Request& send(int slot, int to, int tag, std::span<const std::byte> bytes) override {
        return job_.send(slot, checked(to, "sent to"), shifted(tag), bytes);
    }
    Request& receive(int slot, int from, int tag, std::span<std::byte> bytes) override {
        return job_.receive(slot, checked(from, "awaited from"), shifted(tag), bytes);
    }
    [[noreturn]] void abort(int code) override {
        job_.abort(code);
        std::abort();  // not reached
    }

    Communicator& job() override { return job_.job(); }
    int job_rank(int rank) const override { return rank < 0 ? rank : job_.job_rank(first_ + rank); }

  private:
    int checked(int peer, const char* what) const {
        if (peer < 0 || peer >= size_ || peer == rank()) {
            fail(ErrorKind::kRuntime, "a message {} rank {} by rank {} in a world of {} (ranks {} … {} of the job)",
                 what, peer, rank(), size_, first_, first_ + size_ - 1);
        }
        return first_ + peer;
    }
    int shifted(int tag) const {
        if (tag < 0 || tag >= kTagsOfWorld) fail(ErrorKind::kRuntime, "tag {}: a world has {}", tag, kTagsOfWorld);
        return first_tag_ + tag;
    }

    Communicator& job_;
    int first_;
    int size_;
    int first_tag_;
    int local_rank_ = 0;
    int local_size_ = 1;
};

}  // namespace

std::unique_ptr<Communicator> make_sub_communicator(Communicator& job, int first, int size, int number) {
    return std::make_unique<SubCommunicator>(job, first, size, number);
}

}  // namespace lockstep
