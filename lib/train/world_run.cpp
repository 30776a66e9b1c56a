#include "train/world_run.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "comm/sub_communicator.hpp"
#include "comm/thread_communicator.hpp"
#include "core/error.hpp"
#include "train/world_rank.hpp"

namespace lockstep {
namespace {

/// Some ranks of the job.
class RankWorld final : public WorldRun {
  public:
    RankWorld(Communicator& job, const WorldTask& task, const WorldCast& cast, const std::optional<Fault>& fault,
              int number)
        : comm_(make_sub_communicator(job, cast.first, cast.world, number)), rank_(*comm_, task, cast, fault) {}
    std::vector<StepDigest> step() override { return {rank_.step()}; }
    PlaceValues values(int /*rank*/, const StatePlace& place) override { return rank_.values(place); }

  private:
    std::unique_ptr<Communicator> comm_;
    WorldRank rank_;
};

/// All ranks of a world as threads of this process. They rest between the commands of this thread, which alone speaks
/// to the rest of the job. Rank 0 of the world hears them and passes them on; when a rank throws, the world ends, and
/// the next command finds out.
class ThreadWorld final : public WorldRun {
  public:
    ThreadWorld(Communicator& job, const WorldTask& task, const WorldCast& cast, const std::optional<Fault>& fault)
        : job_(job), digests_(static_cast<std::size_t>(cast.world)), threads_([this, &task, cast, fault] {
              std::exception_ptr error;
              try {
                  run_thread_world(cast.world, [&](Communicator& comm) { serve(comm, task, cast, fault); });
              } catch (...) {
                  error = std::current_exception();
              }
              const std::lock_guard lock(mutex_);
              error_ = error;
              over_ = true;
              changed_.notify_all();
          }) {
        try {
            wait_for_answer();  // to the first command, which is to start
        } catch (...) {
            end();
            throw;
        }
    }
    ~ThreadWorld() override { end(); }
    ThreadWorld(const ThreadWorld&) = delete;
    ThreadWorld& operator=(const ThreadWorld&) = delete;

    std::vector<StepDigest> step() override {
        give(Command::kStep);
        return digests_;
    }
    PlaceValues values(int rank, const StatePlace& place) override {
        wanted_rank_ = rank;
        wanted_place_ = place;
        give(Command::kValues);
        return std::move(values_);
    }

  private:
    enum class Command : char { kStep, kValues, kEnd };

    void tell(Command command) {
        const std::lock_guard lock(mutex_);
        command_ = command;
        ++asked_;
        changed_.notify_all();
    }
    void give(Command command) {
        tell(command);
        wait_for_answer();
    }
    void end() {
        tell(Command::kEnd);
        threads_.join();
    }

    void wait_for_answer() {
        const double timeout = job_.timeout();  // word is due every eighth of it
        const std::chrono::duration<double> pause(timeout > 0 ? std::min(timeout / 16, 1.0) : 1.0);
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, pause, [&] { return over_ || answered_ == asked_; })) {
            lock.unlock();
            job_.still_working();
            lock.lock();
        }
        if (over_ && error_) std::rethrow_exception(error_);
    }

    // Of rank 0 of the world.
    Command next_command() {
        std::unique_lock lock(mutex_);
        ++answered_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return answered_ < asked_; });
        return command_;
    }

    void serve(Communicator& comm, const WorldTask& task, const WorldCast& cast, const std::optional<Fault>& fault) {
        comm.set_timeout(0);  // they rest for as long as the rest of the job takes
        WorldRank rank(comm, task, cast, fault);
        for (;;) {
            const std::string word = comm.rank() == 0 ? std::string(1, static_cast<char>(next_command())) : "";
            const auto command = static_cast<Command>(comm.broadcast(0, word).front());
            if (command == Command::kEnd) return;
            if (command == Command::kStep) digests_[static_cast<std::size_t>(comm.rank())] = rank.step();
            if (command == Command::kValues && comm.rank() == wanted_rank_) values_ = rank.values(wanted_place_);
            comm.barrier();
        }
    }

    Communicator& job_;
    std::mutex mutex_;
    std::condition_variable changed_;
    Command command_ = Command::kStep;
    int64_t asked_ = 1;
    int64_t answered_ = 0;
    bool over_ = false;
    std::exception_ptr error_;
    // Written by one side while the other one waits:
    int wanted_rank_ = 0;
    StatePlace wanted_place_;
    PlaceValues values_;
    std::vector<StepDigest> digests_;
    std::thread threads_;  // the last member: it uses the others
};

}  // namespace

std::unique_ptr<WorldRun> start_world(Communicator& job, const WorldTask& task, const WorldCast& cast,
                                      const std::optional<Fault>& fault, int number) {
    if (cast.in_process) return std::make_unique<ThreadWorld>(job, task, cast, fault);
    return std::make_unique<RankWorld>(job, task, cast, fault, number);
}

}  // namespace lockstep
