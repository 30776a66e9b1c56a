#include "train/replica_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr int kTag = 820;  // of the messages that carry a tensor

/// "fc1.weight[3, 17]": an element by its number in the file.
std::string element_name(const Parameter& parameter, int64_t element) {
    std::vector<int64_t> index(parameter.shape.size());
    for (std::size_t axis = index.size(); axis-- > 0; element /= parameter.shape[axis]) {
        index[axis] = element % parameter.shape[axis];
    }
    return fmt::format("{}[{}]", parameter.name, fmt::join(index, ", "));
}

/// A tensor of a flat array on the device, in the file's order.
std::vector<float> file_values(Backend& backend, const Parameter& parameter, const float* flat) {
    std::vector<float> memory(static_cast<std::size_t>(parameter.count)), file(memory.size());
    backend.download(backend.main(), flat + parameter.offset, memory.data(), memory.size() * sizeof(float));
    backend.synchronize();
    to_file_order(parameter, memory.data(), file.data());
    return file;
}

/// What a rank in doubt tells the others.
std::string report_text(const ReplicaDifference& found) {
    return json{{"host", found.host},           {"device", found.device},
                {"element", found.element},     {"bits", {found.bits, found.other_bits}},
                {"differing", found.differing}, {"elements", found.elements}}
        .dump(-1, ' ', false, json::error_handler_t::replace);
}

ReplicaDifference read_report(const std::string& text, int rank, int other) {
    const json report = json::parse(text);
    return {rank,
            other,
            report.at("host"),
            report.at("device"),
            report.at("element"),
            report.at("bits").at(0),
            report.at("bits").at(1),
            report.at("differing"),
            report.at("elements")};
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

ReplicaCheck::ReplicaCheck(Communicator& comm, Backend& backend, const ParameterTable& parameters, const float* weights,
                           const std::vector<Update::Slot>& slots)
    : comm_(comm), backend_(backend), parameters_(parameters), hasher_(parameters, backend) {
    arrays_.push_back({"", weights});
    for (const Update::Slot& slot : slots) arrays_.push_back({slot.name + "/", slot.values});
    hashes_.resize(tensors_before(arrays_.size()));
}

/// Weights have buffers, the optimizer's slots have none.
std::size_t ReplicaCheck::tensors_before(std::size_t array) const {
    return array == 0 ? 0 : parameters_.placed().size() + (array - 1) * parameters_.all().size();
}

std::vector<ReplicaDifference> ReplicaCheck::compare(bool state) {
    const std::size_t arrays = state ? arrays_.size() : 1;
    const std::span<uint64_t> hashes = std::span(hashes_).first(tensors_before(arrays));
    for (std::size_t a = 0; a < arrays; ++a) {
        const std::size_t tensors = tensors_before(a + 1) - tensors_before(a);
        hasher_.hash(arrays_[a].values, 0, static_cast<int>(tensors), hashes.subspan(tensors_before(a), tensors));
    }
    hash_ = hash64(std::as_bytes(hashes.first(tensors_before(1))));
    const uint64_t own = hash64(std::as_bytes(hashes));
    std::vector<uint64_t> hash_of_rank;
    for (const std::vector<std::byte>& bytes : comm_.all_gather(std::as_bytes(std::span(&own, 1)))) {
        std::memcpy(&hash_of_rank.emplace_back(), bytes.data(), sizeof own);
    }
    const bool agree = std::all_of(hash_of_rank.begin(), hash_of_rank.end(), [&](uint64_t h) { return h == own; });
    // Every rank sees the same hashes and so takes the same way.
    return agree ? std::vector<ReplicaDifference>() : find_differences(hash_of_rank, hashes);
}

void ReplicaCheck::require_equal(int64_t step, bool state, EventsLog& events, const std::string& last_passed) {
    const std::vector<ReplicaDifference> differences = compare(state);
    const nlohmann::ordered_json event = check_event(differences, step, state, hash(), last_passed);
    if (differences.empty()) {
        if (comm_.rank() == 0) events.append("check", event);
        return;
    }
    agree_on_first(comm_, [&] {
        try {
            events.append("check", event);
        } catch (const Error&) {
            // A disk that is full, too, is the smaller fault: the one to tell is below.
        }
        throw Error(ErrorKind::kMismatch, check_failure(differences, step, last_passed));
    });
}

std::vector<ReplicaDifference> ReplicaCheck::find_differences(std::span<const uint64_t> hash_of_rank,
                                                              std::span<const uint64_t> hashes) {
    const ReplicaGroups groups = group_replicas(hash_of_rank);
    const auto tensors_of_rank = comm_.all_gather(std::as_bytes(hashes));
    const auto first_difference = [&](int rank, int other) {
        const auto& left = tensors_of_rank[static_cast<std::size_t>(rank)];
        const auto& right = tensors_of_rank[static_cast<std::size_t>(other)];
        const auto at = std::mismatch(left.begin(), left.end(), right.begin()).first - left.begin();
        return static_cast<std::size_t>(at) / sizeof(uint64_t);
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
        if (comm_.rank() == rank) own = report_text(found);
    }
    const std::vector<std::string> reports = comm_.all_gather(own);
    std::vector<ReplicaDifference> all;
    for (const int rank : groups.in_doubt) {
        all.push_back(read_report(reports[static_cast<std::size_t>(rank)], rank, partner(rank)));
    }
    return all;
}

/// `other` sends its values of the tensor, `rank` compares.
ReplicaDifference ReplicaCheck::look_into(std::size_t tensor, int rank, int other) {
    std::size_t number = 0;
    while (tensors_before(number + 1) <= tensor) ++number;
    const Parameter& parameter = parameters_.placed()[tensor - tensors_before(number)];
    const Array& array = arrays_[number];
    const std::vector<float> own = file_values(backend_, parameter, array.values);
    if (comm_.rank() == other) {
        comm_.send_recv(rank, std::as_bytes(std::span(own)), Communicator::kNobody, {}, kTag);
        return {};
    }
    std::vector<float> theirs(own.size());
    comm_.send_recv(Communicator::kNobody, {}, other, std::as_writable_bytes(std::span(theirs)), kTag);
    ReplicaDifference found;
    found.host = host_name();
    found.device = backend_.name();
    found.elements = parameter.count;
    std::size_t first = 0;
    for (std::size_t e = own.size(); e-- > 0;) {
        if (std::bit_cast<uint32_t>(own[e]) == std::bit_cast<uint32_t>(theirs[e])) continue;
        first = e;
        ++found.differing;
    }
    found.element = array.prefix + element_name(parameter, static_cast<int64_t>(first));
    found.bits = std::bit_cast<uint32_t>(own[first]);
    found.other_bits = std::bit_cast<uint32_t>(theirs[first]);
    return found;
}

}  // namespace lockstep
