#include "train/world_rounds.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/log.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

using nlohmann::json;

/// From the rank of the job that has them to all.
PlaceValues share(Communicator& job, int from, const std::optional<PlaceValues>& values) {
    std::string facts;
    std::vector<std::byte> bytes;
    if (job.rank() == from) {
        facts = json{{"name", values->name}, {"shape", values->shape}, {"width", values->width}}.dump();
        bytes = values->bytes;
    }
    const json shared = json::parse(job.broadcast(from, facts));
    job.broadcast(from, bytes);
    return {shared.at("name").get<std::string>(), shared.at("shape").get<std::vector<int64_t>>(),
            shared.at("width").get<std::size_t>(), std::move(bytes)};
}

}  // namespace

WorldRounds::WorldRounds(Communicator& job, const WorldTask& task, const std::vector<WorldCast>& casts, int64_t steps,
                         const std::optional<Fault>& fault)
    : job_(job), task_(task), steps_(steps), fault_(fault), worlds_(casts.size()) {
    for (std::size_t i = 0; i < casts.size(); ++i) {
        worlds_[i].result.cast = casts[i];
        rounds_ = std::max(rounds_, casts[i].round + 1);
    }
}

Verification WorldRounds::run() {
    for (int round = 0; round < rounds_; ++round) run_round(round);
    Verification verification;
    verification.difference = first_difference_of_all();
    verification.steps = steps_;
    for (World& world : worlds_) verification.worlds.push_back(std::move(world.result));
    return verification;
}

void WorldRounds::run_round(int round) {
    std::vector<std::size_t> present;
    std::string names;
    for (std::size_t i = 0; i < worlds_.size(); ++i) {
        if (cast(i).round != round) continue;
        present.push_back(i);
        names += (names.empty() ? "" : ", ") + std::to_string(cast(i).world);
    }
    inform("round {} of {}, worlds: {}", round + 1, rounds_, names);
    const auto mine =
        std::find_if(present.begin(), present.end(), [&](std::size_t i) { return cast(i).has(job_.rank()); });
    std::unique_ptr<WorldRun> world;
    agree(job_, [&] {
        if (mine == present.end()) return;
        const bool last = *mine + 1 == worlds_.size();
        world = start_world(job_, task_, cast(*mine), last ? fault_ : std::nullopt, round);
    });
    for (int64_t step = 1; step <= steps_; ++step) {
        const std::vector<Digests> all = exchange(world && goes_on(*mine) ? world->step() : Digests());
        for (const std::size_t i : present) {
            if (!goes_on(i)) continue;
            if (!judge(i, step, digests_of(i, all))) return;
            const std::optional<Departure>& departure = worlds_[i].result.departure;
            if (departure && departure->step == step) keep_values(i, world.get());
        }
        if (std::none_of(present.begin(), present.end(), [&](std::size_t i) { return goes_on(i); })) return;
    }
}

std::vector<WorldRounds::Digests> WorldRounds::exchange(const Digests& own) {
    std::vector<Digests> all;
    for (const auto& bytes : job_.all_gather(std::span<const std::byte>(pack_digests(own)))) {
        all.push_back(unpack_digests(bytes));
    }
    return all;
}

/// Of the world's ranks, in order.
WorldRounds::Digests WorldRounds::digests_of(std::size_t world, const std::vector<Digests>& all) const {
    Digests digests;
    for (int rank = cast(world).first; rank < cast(world).first + cast(world).width(); ++rank) {
        const Digests& here = all[static_cast<std::size_t>(rank)];
        digests.insert(digests.end(), here.begin(), here.end());
    }
    return digests;
}

/// The reference goes on whatever happens: others are still to be compared with it.
bool WorldRounds::goes_on(std::size_t world) const {
    return world == 0 || !worlds_[world].result.departure;
}

/// False where the reference cannot go on: then the steps before it are all that is compared.
bool WorldRounds::judge(std::size_t world, int64_t step, const Digests& digests) {
    WorldResult& result = worlds_[world].result;
    if (world == 0 && !digests.front().failure.empty()) {
        const bool found = std::any_of(worlds_.begin(), worlds_.end(),
                                       [](const World& other) { return other.result.departure.has_value(); });
        if (!found) throw SharedError(ErrorKind::kNonFinite, digests.front().failure);
        steps_ = step - 1;
        return false;
    }
    if (world == 0) reference_.push_back(join_digests(digests));
    result.steps = step;
    result.samples = task_.plan.samples_used(step);
    result.seconds += digests.front().seconds;
    const StepDigest& reference = reference_[static_cast<std::size_t>(step - 1)];
    for (std::size_t rank = 0; rank < digests.size() && !result.departure; ++rank) {
        if (const std::optional<StatePlace> place = first_difference(reference, digests[rank])) {
            result.departure = {step, static_cast<int>(rank), *place, digests[rank].failure};
        }
    }
    return true;
}

/// The rank of the job that holds a rank of a world.
int WorldRounds::holder(std::size_t world, int rank) const {
    return cast(world).first + (cast(world).in_process ? 0 : rank);
}

/// The rank of the reference that has what others are compared with: indices lie with the rank of their shard.
int WorldRounds::reference_rank(const StatePlace& place) const {
    if (place.kind != StatePlace::Kind::kIndices) return 0;
    const int ranks = cast(0).world;
    for (int rank = 0; rank < ranks; ++rank) {
        if (place.number < shards_of_rank(task_.plan.shards.shards(), rank, ranks).end) return rank;
    }
    return 0;
}

/// Where the values are, they are kept at once: a fault of the moment never comes back.
void WorldRounds::keep_values(std::size_t world, WorldRun* run) {
    World& departed = worlds_[world];
    const Departure& departure = *departed.result.departure;
    if (job_.rank() == holder(world, departure.rank)) {
        departed.own = run->values(cast(world).in_process ? departure.rank : 0, departure.place);
    }
    const int rank = reference_rank(departure.place);
    if (cast(world).round == cast(0).round && job_.rank() == holder(0, rank)) {
        departed.reference = run->values(cast(0).in_process ? rank : 0, departure.place);
    }
}

/// The reference once more, up to that step: a run is a function of its config and data.
PlaceValues WorldRounds::replayed_reference(const Departure& departure, bool& strayed) {
    inform("the reference runs again to step {}, for its values", departure.step);
    const int rank = reference_rank(departure.place);
    std::unique_ptr<WorldRun> world;
    agree(job_, [&] {
        if (cast(0).has(job_.rank())) world = start_world(job_, task_, cast(0), std::nullopt, rounds_);
    });
    for (int64_t step = 1; step <= departure.step; ++step) {
        const Digests again = digests_of(0, exchange(world ? world->step() : Digests()));
        strayed = strayed || first_difference(reference_[static_cast<std::size_t>(step - 1)], join_digests(again));
        if (!again.front().failure.empty()) return {"loss or gradient", {}, 4, {}};
    }
    std::optional<PlaceValues> values;
    if (job_.rank() == holder(0, rank)) values = world->values(cast(0).in_process ? rank : 0, departure.place);
    return share(job_, holder(0, rank), values);
}

std::optional<WorldDifference> WorldRounds::first_difference_of_all() {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < worlds_.size(); ++i) {
        const std::optional<Departure>& departure = worlds_[i].result.departure;
        if (departure && (!first || departure->step < worlds_[*first].result.departure->step)) first = i;
    }
    if (!first) return std::nullopt;
    const World& world = worlds_[*first];
    WorldDifference difference;
    difference.world = *first;
    difference.departure = *world.result.departure;
    const Departure& departure = difference.departure;
    const PlaceValues own = share(job_, holder(*first, departure.rank), world.own);
    difference.name = own.name;
    difference.shape = own.shape;
    difference.width = own.width;
    difference.elements = static_cast<int64_t>(own.bytes.size() / own.width);
    if (departure.place.kind == StatePlace::Kind::kFailure) return difference;
    const PlaceValues reference = cast(*first).round == cast(0).round
                                      ? share(job_, holder(0, reference_rank(departure.place)), world.reference)
                                      : replayed_reference(departure, difference.reference_strayed);
    difference.element = first_element_difference(reference.bytes, own.bytes, own.width);
    return difference;
}

}  // namespace lockstep
