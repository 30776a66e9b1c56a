#include "train/start_check.hpp"

#include <nlohmann/json.hpp>

#include "config/key_table.hpp"
#include "core/log.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

std::string facts_text(const LoadedConfig& loaded, const StartFacts& facts) {
    return json{{"host", host_name()},
                {"version", facts.version},
                {"train", facts.train_data},
                {"test", facts.test_data},
                {"config", config_to_json(loaded.config)},
                {"origins", loaded.origins}}
        .dump();
}

std::string origin(const json& rank, const std::string& key) {
    const auto& origins = rank.at("origins");
    return origins.contains(key) ? origins.at(key).get<std::string>() : "default";
}

/// Keys of which rank 0's value holds for all, taken over.
void take_shared_keys(Config& config, const Config& first) {
    config.checkpoint = first.checkpoint;
    config.eval = first.eval;
    config.check = first.check;
    const std::string own_folder = config.log.dir;  // each rank's own
    config.log = first.log;
    config.log.dir = own_folder;
    config.reduce.bucket_kib = first.reduce.bucket_kib;
    config.reduce.small_kib = first.reduce.small_kib;
    config.device.transport = first.device.transport;
}

}  // namespace

void check_equal_start(Communicator& comm, LoadedConfig& loaded, const StartFacts& facts) {
    const std::vector<std::string> texts = comm.all_gather(facts_text(loaded, facts));
    const json first = json::parse(texts.front());
    const Config first_config = config_from_json(first.at("config").get<std::string>());
    std::string faults;
    ErrorKind kind = ErrorKind::kUsage;
    const auto fault = [&](const std::string& line) { faults += (faults.empty() ? "" : "\n") + line; };
    for (std::size_t r = 1; r < texts.size(); ++r) {
        if (texts[r] == texts.front()) continue;
        const json other = json::parse(texts[r]);
        const std::string who = fmt::format("rank {} on {}", r, other.at("host").get<std::string>());
        if (other.at("version") != first.at("version")) {
            fault(fmt::format("unequal start: {} has version {}, rank 0 has {}; run one build everywhere", who,
                              other.at("version").get<std::string>(), first.at("version").get<std::string>()));
        }
        for (const KeyDifference& d :
             config_differences(first_config, config_from_json(other.at("config").get<std::string>()))) {
            if (d.effect == KeyEffect::kBits) {
                fault(fmt::format(
                    "unequal start: {} = {} on {} (from {}), {} on rank 0 (from {}); give all ranks one value "
                    "(mpirun -x NAME hands a variable to other hosts)",
                    d.key, d.right, who, origin(other, d.key), d.left, origin(first, d.key)));
            } else if (d.effect == KeyEffect::kShared && comm.rank() == 0) {
                warn("{} = {} on {}, {} on rank 0: rank 0's value holds", d.key, d.right, who, d.left);
            }
        }
        for (const char* split : {"train", "test"}) {
            if (other.at(split) == first.at(split)) continue;
            if (faults.empty()) kind = ErrorKind::kData;
            fault(fmt::format(
                "unequal start: the {} data of {} are not rank 0's ({} against {}); copy the same files to every host",
                split, who, other.at(split).get<std::string>(), first.at(split).get<std::string>()));
        }
    }
    if (!faults.empty()) throw SharedError(kind, faults);
    take_shared_keys(loaded.config, first_config);
}

void check_equal_arithmetic(Communicator& comm, const std::string& arithmetic) {
    const std::vector<std::string> hosts = comm.all_gather(host_name());
    const std::vector<std::string> all = comm.all_gather(arithmetic);
    std::string faults;
    for (std::size_t r = 1; r < all.size(); ++r) {
        if (all[r] == all[0]) continue;
        faults += fmt::format(
            "{}unequal start: rank {} on {} has arithmetic {}, rank 0 has {}; use one kind of device "
            "and one build everywhere, or device.arithmetic = \"defined\"",
            faults.empty() ? "" : "\n", r, hosts[r], all[r], all[0]);
    }
    if (!faults.empty()) throw SharedError(ErrorKind::kUsage, faults);
}

}  // namespace lockstep
