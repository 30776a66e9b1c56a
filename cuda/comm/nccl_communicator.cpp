#include "cuda/comm/nccl_communicator.hpp"

#include <nccl.h>

#include <algorithm>
#include <string>
#include <vector>

#include "backend/out_of_memory.hpp"
#include "comm/patience.hpp"
#include "core/error.hpp"
#include "cuda/backend/cuda_context.hpp"
#include "cuda/comm/device_communicator.hpp"
#include "cuda/comm/nccl_handle.hpp"

namespace lockstep {
namespace {

class NcclCommunicator final : public DeviceCommunicator {
  public:
    NcclCommunicator(Communicator& host, Stream& stream)
        : DeviceCommunicator(host),
          stream_(cuda_stream(stream)),
          nccl_(host),
          requests_(kSlots),
          under_way_(static_cast<std::size_t>(host.size())) {
        for (Noted& request : requests_) request.owner = this;
        noted_.reserve(kSlots);
    }

    Request& send(int slot, int to, int /*tag*/, std::span<const std::byte> bytes) override {
        return note(slot, to, true, const_cast<std::byte*>(bytes.data()), bytes.size());
    }
    Request& receive(int slot, int from, int /*tag*/, std::span<std::byte> bytes) override {
        return note(slot, from, false, bytes.data(), bytes.size());
    }

    void all_reduce_native(std::span<float> values) override {
        guarded([&] {
            flush();
            nccl_check(
                ncclAllReduce(values.data(), values.data(), values.size(), ncclFloat32, ncclSum, nccl_.get(), stream_),
                "ncclAllReduce", nccl_.get());
            std::fill(under_way_.begin(), under_way_.end(), char{1});
            unsettled_ = true;
            nccl_.await();
        });
    }

    void settle() override {
        guarded([&] {
            flush();
            if (!unsettled_) return;
            end_.record(stream_);
            Patience patience(*this);
            while (!end_.done()) {
                nccl_.check_async("an exchange by NCCL");
                patience.pause(kNobody);
            }
            unsettled_ = false;
            std::fill(under_way_.begin(), under_way_.end(), char{0});
        });
    }

  private:
    struct Noted final : Request {
        bool test() override {
            if (waiting) owner->guarded([this] { owner->flush(); });
            return true;
        }
        NcclCommunicator* owner = nullptr;
        bool waiting = false;  // noted, and not yet on the stream
        bool sends = false;
        int peer = 0;
        std::byte* memory = nullptr;
        std::size_t bytes = 0;
    };

    Request& note(int slot, int peer, bool sends, std::byte* memory, std::size_t bytes) {
        Noted& request = requests_.at(static_cast<std::size_t>(slot));
        if (request.waiting) fail(ErrorKind::kRuntime, "request slot {} is still in use", slot);
        request.waiting = true;
        request.sends = sends;
        request.peer = peer;
        request.memory = memory;
        request.bytes = bytes;
        noted_.push_back(&request);
        return request;
    }

    void flush() {
        if (noted_.empty()) return;
        const ncclComm_t comm = nccl_.get();
        nccl_check(ncclGroupStart(), "ncclGroupStart", comm);
        ncclResult_t fault = ncclSuccess;
        for (Noted* request : noted_) {
            if (!nccl_failed(fault)) fault = enqueue(*request, comm);
            request->waiting = false;
            under_way_[static_cast<std::size_t>(request->peer)] = 1;
        }
        noted_.clear();
        unsettled_ = true;
        const ncclResult_t ended = ncclGroupEnd();  // a group that was begun is ended, whatever happened in it
        nccl_check(fault, "ncclSend or ncclRecv", comm);
        nccl_check(ended, "ncclGroupEnd", comm);
        nccl_.await();
    }

    ncclResult_t enqueue(const Noted& request, ncclComm_t comm) {
        if (request.sends) return ncclSend(request.memory, request.bytes, ncclUint8, request.peer, comm, stream_);
        return ncclRecv(request.memory, request.bytes, ncclUint8, request.peer, comm, stream_);
    }

    // Whatever ends an exchange early also takes it off the stream: else the stream, and the memory that it works on,
    // could never be let go. The job's watch names the ranks that are silent; of other errors these ranks may be why.
    void guarded(FunctionRef<void()> act) {
        try {
            act();
        } catch (const PeerFailed&) {
            nccl_.give_up();
            throw;
        } catch (const OutOfMemory&) {
            nccl_.give_up();
            throw;
        } catch (const Error& e) {
            nccl_.give_up();
            throw Error(e.kind(), fmt::format("{}{}", e.what(), peers()));
        } catch (...) {
            nccl_.give_up();
            throw;
        }
    }

    std::string peers() const {
        std::string text;
        for (int rank = 0; rank < size(); ++rank) {
            if (under_way_[static_cast<std::size_t>(rank)] == 0 || rank == this->rank()) continue;
            text += fmt::format("{}{}", text.empty() ? "" : ", ", job_rank(rank));
        }
        return text.empty() ? text : fmt::format(" (rank {} in an exchange with {})", job_rank(rank()), text);
    }

    cudaStream_t stream_;
    NcclHandle nccl_;
    std::vector<Noted> requests_;
    std::vector<Noted*> noted_;  // in order
    CudaEvent end_;
    bool unsettled_ = false;
    std::vector<char> under_way_;  // by rank: something was exchanged with it since the last settle()
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_communicator(Communicator& host, Stream& stream) {
    return std::make_unique<NcclCommunicator>(host, stream);
}

}  // namespace lockstep
