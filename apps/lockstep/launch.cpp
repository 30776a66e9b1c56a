#include "launch.hpp"

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "comm/mpi_communicator.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "same_command.hpp"
#include "train/agreement.hpp"
#include "train/run_directory.hpp"
#include "train/stop_signal.hpp"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kOthersTell{200};
constexpr std::chrono::seconds kFirstActs{2};

void refuse_singletons(bool allow_singleton) {
    const std::optional<std::string> tasks = environment_variable("SLURM_STEP_NUM_TASKS");
    if (allow_singleton || !tasks || std::atoll(tasks->c_str()) <= 1) return;
    fail(ErrorKind::kUsage,
         "started {} times by a launcher that does not speak MPI: every process would work alone; use srun --mpi=pmix "
         "or mpirun, or --allow-singleton if that is what you want",
         *tasks);
}

/// One rank's own error: told with its place and time, and the end of the others, too. Of several ranks that fail
/// together the first one tells its error last, where people look.
int end_world(Communicator& comm, const Invocation& invocation, const std::string& message, ErrorKind kind) {
    if (comm.size() == 1) {
        report(message, invocation.global);
        return exit_code(kind);
    }
    const std::string when = utc_now();
    const Failures failures = comm.announce_failure();
    const bool first_of_several = failures.count > 1 && failures.first == comm.rank();
    if (first_of_several) std::this_thread::sleep_for(kOthersTell);
    report(fmt::format("{}rank {} on {} at {}: {}",
                       first_of_several ? fmt::format("the first of {} errors: ", failures.count) : "", comm.rank(),
                       host_name(), when, message),
           invocation.global);
    if (failures.count > 1 && !first_of_several) std::this_thread::sleep_for(2 * kOthersTell);
    comm.abort(exit_code(kind));
    std::abort();  // not reached
}

/// Another rank has failed, tells why, and ends the world; this one does so only where that word does not arrive.
int follow(Communicator& comm, const std::string& message) {
    log_to_file(message);
    std::this_thread::sleep_for(kFirstActs);
    comm.abort(exit_code(ErrorKind::kRuntime));
    std::abort();  // not reached
}

/// The body's exit code; what stops all ranks alike is told by rank 0.
int shared_outcome(Communicator& comm, const Invocation& invocation, FunctionRef<int(Communicator&)> body) {
    try {
        check_same_command(comm, invocation);
        return body(comm);
    } catch (const SharedError& e) {
        let_stop_handlers_speak(false);  // the launcher sends TERM as soon as another rank has left
        if (comm.rank() == 0) e.positioned() ? report_positioned(e.what()) : report(e.what(), invocation.global);
        return exit_code(e.kind());
    }
}

}  // namespace

bool under_launcher() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
        if (environment_variable(name)) return true;
    }
    return false;
}

std::function<int()> on_first_rank(const Invocation& invocation, std::function<int()> action) {
    if (!under_launcher()) return action;
    return [&invocation, action = std::move(action)] {
        return run_as_rank(invocation, true, [&](Communicator& comm) {
            int code = 0;
            agree_on_first(comm, [&] { comm.work_aside([&] { code = action(); }); });
            return std::stoi(comm.broadcast(0, std::to_string(code)));
        });
    };
}

int run_as_rank(const Invocation& invocation, bool allow_singleton, FunctionRef<int(Communicator&)> body) {
    const bool launched = under_launcher();
    if (!launched) refuse_singletons(allow_singleton);
    int argc = 0;
    char** argv = nullptr;
    const std::unique_ptr<Communicator> comm =
        launched ? make_mpi_communicator(argc, argv) : make_single_communicator();
    set_log(log_level(), comm->rank() == 0);
    try {
        const int code = shared_outcome(*comm, invocation, body);
        comm->barrier();  // MPI_Finalize would wait without a deadline for a rank that does not come
        return code;
    } catch (const PeerFailed& e) {
        return follow(*comm, e.what());
    } catch (const Error& e) {
        return end_world(*comm, invocation, e.what(), e.kind());
    } catch (const std::exception& e) {
        return end_world(*comm, invocation, message_of(e), ErrorKind::kRuntime);
    }
}

}  // namespace lockstep
