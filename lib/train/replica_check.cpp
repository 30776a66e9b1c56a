#include "train/replica_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr int kTag = 820;              // of the messages that carry a piece
constexpr std::size_t kMostLines = 8;  // of a message for people; the event has all

std::string value_text(uint32_t bits) {
    return fmt::format("{} (0x{:08x})", std::bit_cast<float>(bits), bits);
}

nlohmann::ordered_json event_entries(const std::vector<ReplicaDifference>& differences) {
    auto entries = nlohmann::ordered_json::array();
    for (const ReplicaDifference& d : differences) {
        entries.push_back({{"rank", d.rank},
                           {"host", d.host},
                           {"device", d.device},
                           {"element", d.element},
                           {"bits", fmt::format("0x{:08x}", d.bits)},
                           {"compared_with", d.other},
                           {"its_bits", fmt::format("0x{:08x}", d.other_bits)}});
    }
    return entries;
}

std::string failure_text(const std::vector<ReplicaDifference>& differences, int64_t step, const std::string& from) {
    const std::string start = fmt::format("step {}: replica check: ", step);
    std::string text;
    for (std::size_t i = 0; i < std::min(differences.size(), kMostLines); ++i) {
        text += start + differences[i].text() + "\n";
    }
    if (differences.size() > kMostLines) {
        text += fmt::format("{}and {} ranks more; events.jsonl lists them\n", start, differences.size() - kMostLines);
    }
    return text + start +
           "nothing was saved; a flipped bit enters all ranks' weights with the next step, so those that "
           "agree may be wrong, too: " +
           (from.empty() ? "no checkpoint has passed, start again"
                         : fmt::format("resume from {}, the last checkpoint that passed", from));
}

}  // namespace

ReplicaGroups group_replicas(std::span<const uint64_t> hash_of_rank) {
    std::map<uint64_t, int> sizes;
    for (const uint64_t hash : hash_of_rank) ++sizes[hash];
    int largest = 0;
    for (const auto& [hash, size] : sizes) largest = std::max(largest, size);
    const auto has_largest = [&](const auto& group) { return group.second == largest; };
    const bool tied = std::count_if(sizes.begin(), sizes.end(), has_largest) > 1;

    ReplicaGroups groups;
    const auto at = [&](int rank) { return hash_of_rank[static_cast<std::size_t>(rank)]; };
    const auto world = static_cast<int>(hash_of_rank.size());
    while (sizes[at(groups.reference)] != largest) ++groups.reference;
    while (groups.other + 1 < world && at(groups.other) == at(groups.reference)) ++groups.other;
    for (int r = 0; r < world; ++r) {
        if (tied || at(r) != at(groups.reference)) groups.in_doubt.push_back(r);
    }
    return groups;
}

std::string ReplicaDifference::text() const {
    const std::string who = fmt::format("rank {} on {} ({})", rank, host, device);
    if (bits == other_bits) {
        return fmt::format("{} hashed other bytes than rank {} from {} on, but both hold the same now", who, other,
                           element);
    }
    return fmt::format("{} has {} = {}, rank {} has {}", who, element, value_text(bits), other, value_text(other_bits));
}

ReplicaCheck::ReplicaCheck(Communicator& comm, Backend& backend, const ParameterTable& parameters, const float* weights,
                           const std::vector<Update::Slot>& slots)
    : comm_(comm), backend_(backend), hasher_(backend, parameters, weights, slots) {}

std::vector<ReplicaDifference> ReplicaCheck::compare(bool state) {
    hasher_.hash(state);
    const std::array<uint64_t, 2> both{hasher_.weights(), hasher_.slots()};
    const uint64_t own = state ? hash64(std::as_bytes(std::span(both))) : both[0];
    std::vector<uint64_t> hash_of_rank;
    for (const std::vector<std::byte>& bytes : comm_.all_gather(std::as_bytes(std::span(&own, 1)))) {
        std::memcpy(&hash_of_rank.emplace_back(), bytes.data(), sizeof own);
    }
    const bool agree = std::all_of(hash_of_rank.begin(), hash_of_rank.end(), [&](uint64_t h) { return h == own; });
    // Every rank sees the same hashes and so takes the same way.
    return agree ? std::vector<ReplicaDifference>() : find_differences(hash_of_rank);
}

void ReplicaCheck::require_equal(int64_t step, bool state, EventsLog& events, const std::string& last_passed) {
    const std::vector<ReplicaDifference> differences = compare(state);
    nlohmann::ordered_json fields = {
        {"step", step}, {"passed", differences.empty()}, {"of", state ? "weights and optimizer state" : "weights"}};
    if (differences.empty()) {
        fields["hash"] = hex16(hash());
        if (comm_.rank() == 0) events.append("check", fields);
        return;
    }
    agree_on_first(comm_, [&] {
        fields["ranks"] = event_entries(differences);
        fields["resume_from"] = last_passed;
        try {
            events.append("check", fields);
        } catch (const Error&) {
            // A disk that is full, too, is the smaller fault: the one to tell is below.
        }
        throw Error(ErrorKind::kMismatch, failure_text(differences, step, last_passed));
    });
}

std::vector<ReplicaDifference> ReplicaCheck::find_differences(std::span<const uint64_t> hash_of_rank) {
    const ReplicaGroups groups = group_replicas(hash_of_rank);
    const auto pieces_of_rank = comm_.all_gather(std::as_bytes(hasher_.hashes()));
    const auto first_difference = [&](int rank, int other) {
        const auto& left = pieces_of_rank[static_cast<std::size_t>(rank)];
        const auto& right = pieces_of_rank[static_cast<std::size_t>(other)];
        const auto at = std::mismatch(left.begin(), left.end(), right.begin()).first - left.begin();
        return std::min(static_cast<std::size_t>(at) / sizeof(uint64_t), hasher_.pieces().size() - 1);
    };
    const auto partner = [&](int rank) {
        const bool equal =
            hash_of_rank[static_cast<std::size_t>(rank)] == hash_of_rank[static_cast<std::size_t>(groups.reference)];
        return equal ? groups.other : groups.reference;
    };

    // In one order on all ranks, so that no two wait for each other.
    std::string own;
    for (const int rank : groups.in_doubt) {
        const int other = partner(rank);
        if (comm_.rank() != rank && comm_.rank() != other) continue;
        const ReplicaDifference found = look_into(first_difference(rank, other), rank, other);
        if (comm_.rank() != rank) continue;
        own = json{{"host", host_name()},
                   {"device", backend_.name()},
                   {"element", found.element},
                   {"bits", {found.bits, found.other_bits}}}
                  .dump(-1, ' ', false, json::error_handler_t::replace);
    }
    const std::vector<std::string> reports = comm_.all_gather(own);
    std::vector<ReplicaDifference> all;
    for (const int rank : groups.in_doubt) {
        const json report = json::parse(reports[static_cast<std::size_t>(rank)]);
        all.push_back({rank, partner(rank), report.at("host"), report.at("device"), report.at("element"),
                       report.at("bits").at(0), report.at("bits").at(1)});
    }
    return all;
}

/// `other` sends its values of the piece, `rank` finds the first that differs.
ReplicaDifference ReplicaCheck::look_into(std::size_t piece, int rank, int other) {
    const ReplicaPiece& where = hasher_.pieces()[piece];
    const std::vector<float> own = hasher_.values(where);
    if (comm_.rank() == other) {
        comm_.send_recv(rank, std::as_bytes(std::span(own)), Communicator::kNobody, {}, kTag);
        return {};
    }
    std::vector<float> theirs(own.size());
    comm_.send_recv(Communicator::kNobody, {}, other, std::as_writable_bytes(std::span(theirs)), kTag);
    const auto same_bits = [](float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); };
    const auto at = std::mismatch(own.begin(), own.end(), theirs.begin(), same_bits).first - own.begin();
    const std::size_t e = static_cast<std::size_t>(at) < own.size() ? static_cast<std::size_t>(at) : 0;
    ReplicaDifference found;
    found.element = hasher_.element_name(where, static_cast<int64_t>(e));
    found.bits = std::bit_cast<uint32_t>(own[e]);
    found.other_bits = std::bit_cast<uint32_t>(theirs[e]);
    return found;
}

}  // namespace lockstep
