#include "train/bench_job.hpp"

#include <algorithm>
#include <utility>

#include "core/version.hpp"
#include "train/agreement.hpp"
#include "train/evaluation_rows.hpp"
#include "train/start_check.hpp"

namespace lockstep {
namespace {

constexpr int64_t kEndless = int64_t{1} << 40;  // steps

}  // namespace

Spread spread_of(std::vector<double> seconds) {
    std::sort(seconds.begin(), seconds.end());
    return {seconds[seconds.size() / 2], seconds.front(), seconds.back()};
}

std::vector<std::vector<double>> gather_numbers(Communicator& comm, const std::vector<double>& own) {
    return gather_values<double>(comm, own);
}

BenchJob open_bench_job(Communicator& comm, LoadedConfig loaded) {
    comm.set_timeout(loaded.config.device.timeout_s);
    BenchJob job{std::move(loaded), {}, std::nullopt, {}};
    agree(comm, [&] { comm.work_aside([&] { job.data = open_data(job.loaded.config); }); });
    const StartFacts facts{version(), "", job.data.train->fingerprint(),
                           job.data.test ? job.data.test->fingerprint() : "", ""};
    check_equal_start(comm, job.loaded, facts);
    agree(comm, [&] { job.plan = make_run_plan(job.loaded.config, job.data.train->size()); });
    job.plan->total_steps = kEndless;
    job.device = choose_device(comm, job.loaded.config);
    return job;
}

void announcing_failure(Communicator& comm, FunctionRef<void()> work) {
    try {
        work();
    } catch (const SharedError&) {
        throw;
    } catch (const PeerFailed&) {
        throw;
    } catch (...) {
        comm.announce_failure();
        throw;
    }
}

}  // namespace lockstep
