// `plan --json`: every rank of every world, as one line.
#include <nlohmann/json.hpp>

#include "io/json_number.hpp"
#include "train/forecast.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
}

Json memory_json(const MemoryForecast& memory) {
    return {{"weights", memory.weights},   {"gradients", memory.gradients},     {"optimizer", memory.optimizer},
            {"exchange", memory.exchange}, {"activations", memory.activations}, {"loader", memory.loader},
            {"data", memory.data},         {"saving", memory.saving},           {"total", memory.total()}};
}

Json rank_json(const RankForecast& rank) {
    Json json = {{"rank", rank.rank},
                 {"shards", {rank.shards.begin, rank.shards.end}},
                 {"shift_ratio", or_null(rank.shift_ratio)},
                 {"samples_per_step", rank.samples},
                 {"bytes_sent", rank.sent ? Json(rank.sent->bytes) : Json(nullptr)},
                 {"messages", rank.sent ? Json(rank.sent->messages) : Json(nullptr)},
                 {"memory", memory_json(rank.memory)}};
    if (!rank.first_indices.empty()) json["first_samples"] = rank.first_indices;
    return json;
}

Json world_json(const WorldForecast& world, const RunPlan& plan) {
    Json ranks = Json::array();
    for (const RankForecast& rank : world.ranks) ranks.push_back(rank_json(rank));
    Json json = {{"world", world.world},
                 {"ranks", ranks},
                 {"bytes_sent_per_step", or_null(world.bytes_sent)},
                 {"messages_per_step", or_null(world.messages)},
                 {"ring_bytes_per_step", world.ring_bytes},
                 {"batch_norm_bytes_per_step", world.norm_bytes},
                 {"bytes_sent_last_step", or_null(world.last_bytes_sent)},
                 {"imbalance", world.imbalance},
                 {"idle_ranks", world.idle},
                 {"free", world.free},
                 {"note", world.note}};
    if (world.step_seconds) {
        json["compute_s_per_step"] = *world.step_seconds;
        json["compute_s_per_epoch"] = *world.step_seconds * static_cast<double>(plan.steps_per_epoch);
    }
    return json;
}

}  // namespace

std::string forecast_json(const Forecast& forecast) {
    Json rates = Json::array();
    // A rate is fp32: the shortest decimal that reads back to its bits, not that of the double it widens to.
    for (const LearningRate& rate : forecast.rates)
        rates.push_back({{"step", rate.step}, {"lr", Json::parse(json_number(rate.lr))}});
    Json worlds = Json::array();
    for (const WorldForecast& world : forecast.worlds) worlds.push_back(world_json(world, forecast.plan));
    const ShardPlan& shards = forecast.plan.shards;
    Json json = {{"samples", shards.samples()},
                 {"batch", shards.batch()},
                 {"shards", shards.shards()},
                 {"layout", forecast.layout},
                 {"steps_per_epoch", forecast.plan.steps_per_epoch},
                 {"epochs", forecast.plan.epochs},
                 {"steps", forecast.plan.total_steps},
                 {"last_batch", forecast.last_batch},
                 {"parameters", forecast.parameters},
                 {"lr", rates},
                 {"batch_norm_samples", forecast.norm_samples ? Json(*forecast.norm_samples) : Json()},
                 {"test_samples", forecast.data.test_samples},
                 {"validation_samples", forecast.data.validation_samples},
                 {"threads", forecast.threads},
                 {"free_worlds", forecast.free_worlds},
                 {"optimizer", forecast.optimizer}};
    if (!forecast.data.notes.empty()) json["read_as"] = forecast.data.notes;
    if (!forecast.rates_note.empty()) json["lr_note"] = forecast.rates_note;
    if (!forecast.timed_on.empty()) json["timed_on"] = forecast.timed_on;
    json["worlds"] = worlds;
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace lockstep
