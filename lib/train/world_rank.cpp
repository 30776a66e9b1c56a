#include "train/world_rank.hpp"

#include <bit>
#include <chrono>

#include "core/hash.hpp"
#include "train/agreement.hpp"

namespace lockstep {
namespace {

Config config_of(const WorldTask& task, const WorldCast& cast) {
    Config config = task.config;
    config.device.threads = cast.threads;
    config.device.streams = cast.streams;
    config.device.graphs = cast.graphs;
    config.device.isa = cast.isa;
    config.reduce.bucket_kib = cast.bucket_kib;
    config.reduce.small_kib = cast.small_kib;
    return config;
}

template <class Number>
std::vector<std::byte> bytes_of(std::span<const Number> numbers) {
    const auto bytes = std::as_bytes(numbers);
    return {bytes.begin(), bytes.end()};
}

}  // namespace

WorldRank::WorldRank(Communicator& comm, const WorldTask& task, const WorldCast& cast,
                     const std::optional<Fault>& fault)
    : config_(config_of(task, cast)),
      shards_(shards_of_rank(task.plan.shards.shards(), comm.rank(), comm.size())),
      device_(choose_device(comm, config_, false)),
      indices_(static_cast<std::size_t>(shards_.size())) {
    agree(comm, [&] {
        engine_.emplace(comm, *device_.backend, config_, task.plan, task.data, options_, device_.exchange.get(),
                        device_.graphs.get());
        hasher_.emplace(engine_->network().parameters(), *device_.backend);
        if (fault) {
            fault_.emplace(*fault, comm.rank(), engine_->network().parameters(), *device_.backend);
            engine_->watch(*fault_);
        }
        engine_->watch(*this);
        StartingPoint start;
        start.initial = task.weights;
        engine_->restore(start);
    });
}

StepDigest WorldRank::step() {
    StepDigest digest;
    digest.first_shard = shards_.begin;
    const auto begin = std::chrono::steady_clock::now();
    try {
        loss_ = engine_->step().loss;
    } catch (const SharedError& e) {
        if (e.kind() != ErrorKind::kNonFinite) throw;
        digest.failure = e.what();
        return digest;
    }
    digest.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    for (const std::vector<int64_t>& shard : indices_)
        digest.indices.push_back(hash64(std::as_bytes(std::span(shard))));
    digest.loss = std::bit_cast<uint32_t>(loss_);
    const ParameterTable& parameters = engine_->network().parameters();
    const std::size_t stored = parameters.placed().size();
    const std::size_t tensors = parameters.all().size();
    const std::vector<Update::Slot> slots = engine_->update().slots();
    digest.tensors.resize(stored + tensors * slots.size());
    std::span<uint64_t> out(digest.tensors);
    hasher_->hash(engine_->weights(), 0, static_cast<int>(stored), out.first(stored));
    out = out.subspan(stored);
    for (const Update::Slot& slot : slots) {
        hasher_->hash(slot.values, 0, static_cast<int>(tensors), out.first(tensors));
        out = out.subspan(tensors);
    }
    return digest;
}

PlaceValues WorldRank::values(const StatePlace& place) {
    switch (place.kind) {
        case StatePlace::Kind::kIndices: {
            const auto& indices = indices_.at(static_cast<std::size_t>(place.number - shards_.begin));
            return {fmt::format("indices of shard {}", place.number), {}, 8, bytes_of(std::span(indices))};
        }
        case StatePlace::Kind::kLoss:
            return {"loss", {}, 4, bytes_of(std::span<const float>(&loss_, 1))};
        case StatePlace::Kind::kTensor:
            return tensor_values(place.number);
        case StatePlace::Kind::kFailure:
            break;
    }
    return {"loss or gradient", {}, 4, {}};
}

PlaceValues WorldRank::tensor_values(int number) {
    const ParameterTable& table = engine_->network().parameters();
    const auto stored = static_cast<int>(table.placed().size());
    const auto tensors = static_cast<int>(table.all().size());
    const bool weights = number < stored;
    const Parameter& parameter =
        table.placed().at(static_cast<std::size_t>(weights ? number : (number - stored) % tensors));
    std::string name = parameter.name;
    std::vector<float> flat;
    if (weights) {
        flat = engine_->host_weights();
    } else {
        const auto slot = static_cast<std::size_t>((number - stored) / tensors);
        name = engine_->update().slots().at(slot).name + "/" + name;
        flat = std::move(engine_->host_slots().at(slot));
    }
    std::vector<float> values(static_cast<std::size_t>(parameter.count));
    to_file_order(parameter, flat.data() + parameter.offset, values.data());
    return {name, parameter.shape, 4, bytes_of(std::span<const float>(values))};
}

void WorldRank::batch_read(const Batch& batch) {
    const int64_t* next = batch.indices;
    for (int v = shards_.begin; v < shards_.end; ++v) {
        const int64_t count = batch.shard_sizes[static_cast<std::size_t>(v)];
        indices_[static_cast<std::size_t>(v - shards_.begin)].assign(next, next + count);
        next += count;
    }
}

}  // namespace lockstep
