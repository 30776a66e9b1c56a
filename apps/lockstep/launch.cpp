#include "launch.hpp"

#include <cstdlib>
#include <string>

#include "comm/mpi_communicator.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

void refuse_singletons(bool allow_singleton) {
    const std::optional<std::string> tasks = environment_variable("SLURM_STEP_NUM_TASKS");
    if (allow_singleton || !tasks || std::atoll(tasks->c_str()) <= 1) return;
    fail(ErrorKind::kUsage,
         "started {} times by a launcher that does not speak MPI: every process would work alone; use srun --mpi=pmix "
         "or mpirun, or "
         "--allow-singleton if that is what you want",
         *tasks);
}

/// One rank's own error: told with its place, and the end of the others, too.
int end_world(Communicator& comm, const Invocation& invocation, const std::string& message, ErrorKind kind) {
    if (comm.size() == 1) {
        report(message, invocation.global);
        return exit_code(kind);
    }
    report(fmt::format("rank {} on {}: {}", comm.rank(), host_name(), message), invocation.global);
    comm.abort(exit_code(kind));
    std::abort();  // not reached
}

}  // namespace

bool under_launcher() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
        if (environment_variable(name)) return true;
    }
    return false;
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
        return body(*comm);
    } catch (const SharedError& e) {
        if (comm->rank() == 0) e.positioned() ? report_positioned(e.what()) : report(e.what(), invocation.global);
        return exit_code(e.kind());
    } catch (const Error& e) {
        return end_world(*comm, invocation, e.what(), e.kind());
    } catch (const std::exception& e) {
        return end_world(*comm, invocation, std::string("unexpected: ") + e.what(), ErrorKind::kRuntime);
    }
}

}  // namespace lockstep
