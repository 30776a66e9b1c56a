#include "train/doctor.hpp"

#include <nlohmann/json.hpp>

#include "train/agreement.hpp"

namespace lockstep {

ClusterFacts examine_job(Communicator& comm, const DoctorOptions& options) {
    ClusterFacts cluster;
    cluster.config_given = !options.sources.files.empty();
    const nlohmann::json own = gather_facts(comm, options.sources);
    const std::string text = own.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    for (const std::string& rank : comm.all_gather(text)) {
        if (comm.rank() == 0) cluster.ranks.push_back(nlohmann::json::parse(rank).get<RankFacts>());
    }
    cluster.folder = look_at_folder(comm, options.out);
    cluster.network = measure_network(comm, comm.all_gather(host_name()));
    return cluster;
}

}  // namespace lockstep
