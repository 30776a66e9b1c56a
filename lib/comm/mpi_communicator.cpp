// MPI calls come from one thread of each rank. Nothing here blocks: every wait is a loop over MPI_Test with a deadline,
// since a blocking call on a dead peer never returns.
#include "comm/mpi_communicator.hpp"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <exception>

#include "comm/patience.hpp"
#include "comm/peer_collectives.hpp"
#include "comm/world_end.hpp"
#include "core/error.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {
namespace {

// Nothing of the config is known yet; a large job on a slow file system may take a minute or two.
constexpr double kInitS = 600;
// What the launcher is given to end this process after MPI_Abort.
constexpr double kAbortS = 3;

std::string text_of(int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    return {text.data(), static_cast<std::size_t>(length)};
}

void check(int code, const char* operation) {
    if (code != MPI_SUCCESS) fail(ErrorKind::kRuntime, "{} failed: {}", operation, text_of(code));
}

void check(int code, const char* operation, int peer) {
    if (code != MPI_SUCCESS) fail(ErrorKind::kRuntime, "{} rank {} failed: {}", operation, peer, text_of(code));
}

// How many CPUs are in the affinity mask of any rank: mpirun may bind each rank to a core of its own, or all to one.
int cpus_together(MPI_Comm host) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    sched_getaffinity(0, sizeof(cpus), &cpus);
    check(MPI_Allreduce(MPI_IN_PLACE, &cpus, sizeof(cpus), MPI_BYTE, MPI_BOR, host), "MPI_Allreduce");
    const int count = CPU_COUNT(&cpus);
    return count > 0 ? count : available_cpus();  // a mask of more than 1,024 CPUs does not fit
}

class MpiRequest final : public Request {
  public:
    bool test() override {
        if (handle_ == MPI_REQUEST_NULL) return true;
        int done = 0;
        MPI_Status status;
        check(MPI_Test(&handle_, &done, &status), receives_ ? "receiving from" : "sending to", peer_);
        if (done == 0) return false;
        if (receives_) check_length(status);
        return true;
    }
    bool idle() const { return handle_ == MPI_REQUEST_NULL; }
    MPI_Request* begin(int peer, bool receives, int bytes) {
        peer_ = peer;
        receives_ = receives;
        bytes_ = bytes;
        return &handle_;
    }

  private:
    void check_length(const MPI_Status& status) const {
        int bytes = 0;
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        if (bytes != bytes_) {
            fail(ErrorKind::kRuntime, "rank {} sent {} bytes where {} are expected (tag {})", peer_, bytes, bytes_,
                 status.MPI_TAG);
        }
    }

    MPI_Request handle_ = MPI_REQUEST_NULL;
    int peer_ = 0;
    int bytes_ = 0;
    bool receives_ = false;
};

class MpiCommunicator final : public PeerCommunicator {
  public:
    MpiCommunicator(int& argc, char**& argv) : unwinding_(std::uncaught_exceptions()), slots_(kSlots) {
        int initialized = 0;
        check(MPI_Initialized(&initialized), "MPI_Initialized");
        if (initialized == 0) {
            int provided = 0;
            const EndGuard guard(kInitS, "MPI_Init does not end: a rank or a host does not answer",
                                 exit_code(ErrorKind::kRuntime));
            check(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
            finalizes_ = true;
        }
        check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
        check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
        check(MPI_Comm_dup(MPI_COMM_WORLD, &news_), "MPI_Comm_dup");
        check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
        check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
        MPI_Comm host = MPI_COMM_NULL;
        check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
        check(MPI_Comm_rank(host, &local_rank_), "MPI_Comm_rank");
        check(MPI_Comm_size(host, &local_size_), "MPI_Comm_size");
        local_cpus_ = cpus_together(host);
        MPI_Comm_free(&host);
        told_.resize(static_cast<std::size_t>(size_));
        watch();  // made now: a step allocates nothing
    }

    // While unwinding the others may be anywhere: MPI_Finalize would wait for them, and hide the error from people.
    ~MpiCommunicator() override {
        if (std::uncaught_exceptions() > unwinding_) return;
        collect_news();
        for (auto& pair : told_) {
            for (Told& told : pair) {
                if (told.request != MPI_REQUEST_NULL) MPI_Request_free(&told.request);
            }
        }
        MPI_Comm_free(&news_);
        MPI_Comm_free(&comm_);
        if (!finalizes_) return;
        const EndGuard guard(timeout() > 0 ? timeout() : kInitS,
                             fmt::format("rank {}: MPI_Finalize does not end: a rank has not left", rank_),
                             exit_code(ErrorKind::kRuntime));
        MPI_Finalize();
    }
    MpiCommunicator(const MpiCommunicator&) = delete;
    MpiCommunicator& operator=(const MpiCommunicator&) = delete;

    int rank() const override { return rank_; }
    int size() const override { return size_; }
    int local_rank() const override { return local_rank_; }
    int local_size() const override { return local_size_; }

    Request& send(int slot, int to, int tag, std::span<const std::byte> bytes) override {
        MpiRequest& request = claim(slot, to, bytes.size(), "sent to");
        const int count = static_cast<int>(bytes.size());
        check(MPI_Isend(bytes.data(), count, MPI_BYTE, to, tag, comm_, request.begin(to, false, count)), "sending to",
              to);
        return request;
    }

    Request& receive(int slot, int from, int tag, std::span<std::byte> bytes) override {
        MpiRequest& request = claim(slot, from, bytes.size(), "awaited from");
        const int count = static_cast<int>(bytes.size());
        check(MPI_Irecv(bytes.data(), count, MPI_BYTE, from, tag, comm_, request.begin(from, true, count)),
              "receiving from", from);
        return request;
    }

    // In pieces, several under way: on two ranks of one host Open MPI 4.1 takes 0.57 ms for 2 MB so, 0.78 ms in one
    // piece. The blocking MPI_Allreduce takes 0.3 ms, and for ever where a rank has stopped in the middle of it.
    void all_reduce_native(std::span<float> values) override {
        constexpr std::size_t kPart = 64 * 1024;
        std::array<MPI_Request, 16> under_way;
        const std::size_t pieces = (values.size() + kPart - 1) / kPart;
        std::size_t posted = 0;
        Patience patience(*this);
        for (std::size_t finished = 0; finished < pieces;) {
            for (; posted < pieces && posted - finished < under_way.size(); ++posted) {
                const std::span<float> piece =
                    values.subspan(posted * kPart, std::min(kPart, values.size() - posted * kPart));
                check(MPI_Iallreduce(MPI_IN_PLACE, piece.data(), static_cast<int>(piece.size()), MPI_FLOAT, MPI_SUM,
                                     comm_, &under_way[posted % under_way.size()]),
                      "MPI_Iallreduce");
            }
            int done = 0;
            check(MPI_Test(&under_way[finished % under_way.size()], &done, MPI_STATUS_IGNORE), "MPI_Iallreduce");
            if (done != 0) {
                ++finished;
                patience.restart();
            } else {
                patience.pause(kNobody);
            }
        }
    }

    [[noreturn]] void abort(int code) override {
        end_launcher_soon();
        const EndGuard guard(kAbortS, "", code);
        MPI_Abort(MPI_COMM_WORLD, code);
        std::_Exit(code);
    }

  protected:
    int local_cpus() const override { return local_cpus_; }
    // To each rank one of a kind at a time: who does not take the last one misses the next.
    void send_news(int to, const News& news) override {
        Told& told = told_[static_cast<std::size_t>(to)][news.kind == News::Kind::kFails ? 1 : 0];
        int done = 0;
        check(MPI_Test(&told.request, &done, MPI_STATUS_IGNORE), "sending to", to);
        if (done == 0) return;
        told.news = news;
        check(MPI_Isend(&told.news, sizeof(News), MPI_BYTE, to, 0, news_, &told.request), "sending to", to);
    }
    void collect_news() override {
        for (;;) {
            int arrived = 0;
            MPI_Status status;
            check(MPI_Iprobe(MPI_ANY_SOURCE, 0, news_, &arrived, &status), "MPI_Iprobe");
            if (arrived == 0) return;
            News news;
            check(MPI_Recv(&news, sizeof(News), MPI_BYTE, status.MPI_SOURCE, 0, news_, MPI_STATUS_IGNORE),
                  "receiving from", status.MPI_SOURCE);
            watch().hear(status.MPI_SOURCE, news, Watch::Clock::now());
        }
    }

  private:
    MpiRequest& claim(int slot, int peer, std::size_t bytes, const char* what) {
        if (bytes > INT_MAX) {
            fail(ErrorKind::kRuntime, "a message of {} bytes {} rank {}: at most {} (lower reduce.bucket_kib)", bytes,
                 what, peer, INT_MAX);
        }
        MpiRequest& request = slots_.at(static_cast<std::size_t>(slot));
        if (!request.idle()) fail(ErrorKind::kRuntime, "request slot {} is still in use", slot);
        return request;
    }

    struct Told {
        MPI_Request request = MPI_REQUEST_NULL;
        News news;
    };

    int unwinding_;
    bool finalizes_ = false;
    MPI_Comm comm_ = MPI_COMM_NULL;
    MPI_Comm news_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 1;
    int local_rank_ = 0;
    int local_size_ = 1;
    int local_cpus_ = 1;
    std::vector<MpiRequest> slots_;
    std::vector<std::array<Told, 2>> told_;  // to each rank: news of the day, its failure
};

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(int& argc, char**& argv) {
    return std::make_unique<MpiCommunicator>(argc, argv);
}

}  // namespace lockstep
