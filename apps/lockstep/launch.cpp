#include "launch.hpp"

#include <string>

#include "comm/mpi_communicator.hpp"
#include "config/config.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

void refuse_singletons(bool allow_singleton) {
    const std::optional<std::string> tasks = environment_variable("SLURM_STEP_NUM_TASKS");
    if (allow_singleton || !tasks || std::atoll(tasks->c_str()) <= 1) return;
    fail(ErrorKind::kUsage,
         "started {} times by a launcher that does not speak MPI: every process would train alone; use srun --mpi=pmix "
         "or mpirun, or "
         "--allow-singleton if that is what you want",
         *tasks);
}

int report(Communicator& comm, const std::string& message, int code, bool shared) {
    if (shared || comm.size() == 1) {
        if (comm.rank() == 0) error_line(message);
        return code;
    }
    error_line(fmt::format("rank {} on {}: {}", comm.rank(), host_name(), message));
    comm.abort(code);
}

}  // namespace

bool under_launcher() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"}) {
        if (environment_variable(name)) return true;
    }
    return false;
}

int run_as_rank(int argc, char** argv, bool allow_singleton, FunctionRef<int(Communicator&)> body) {
    const bool launched = under_launcher();
    if (!launched) refuse_singletons(allow_singleton);
    const std::unique_ptr<Communicator> comm =
        launched ? make_mpi_communicator(argc, argv) : make_single_communicator();
    set_log(log_level(), comm->rank() == 0);
    try {
        return body(*comm);
    } catch (const SharedError& e) {
        return report(*comm, e.what(), exit_code(e.kind()), true);
    } catch (const Error& e) {
        return report(*comm, e.what(), exit_code(e.kind()), false);
    } catch (const std::exception& e) {
        return report(*comm, e.what(), exit_code(ErrorKind::kRuntime), false);
    }
}

}  // namespace lockstep
