// The folder that a run would be written to, as rank 0 finds it, and which ranks see the same files there.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace lockstep {

struct FolderFacts {
    std::string path;        // asked for, absolute
    std::string existing;    // it, or the nearest folder above it that is there
    std::string fault;       // why nothing can be written there; "" if it can
    int64_t free_bytes = 0;  // for this user
    std::vector<int> blind;  // ranks that do not see what rank 0 wrote there
};

/// Rank 0 writes a small file, the others look for it, and it is removed. Collective; all get the same facts.
FolderFacts look_at_folder(Communicator& comm, const std::string& path);

void to_json(nlohmann::json& json, const FolderFacts& facts);

}  // namespace lockstep
