// Predictions as a table: classes and probabilities of every sample, or the value of a regression.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "io/json_number.hpp"
#include "train/evaluation_rows.hpp"
#include "train/host_outputs.hpp"
#include "train/settings.hpp"

namespace lockstep {

void predict(const EvaluationContext& context, const Dataset& data, FunctionRef<void(const std::string&)> write) {
    const ShardPlan plan = evaluation_plan(context.config, data.size());
    const int classes = context.network.classes();
    const auto width = static_cast<std::size_t>(std::max(classes, 1));
    if (context.comm.rank() == 0) {
        std::string header = classes == 0 ? "index,target,prediction" : "index,label,class";
        for (int c = 0; c < classes; ++c) header += fmt::format(",p{}", c);
        write(header + "\n");
    }
    HostOutputs host(context.backend, context.network);
    std::vector<float> own;  // of this rank's rows of a piece
    for_each_piece(context, data, plan, [&](const EvaluationRows& rows) {
        const Batch& batch = rows.batch;
        if (rows.first == 0) own.clear();
        if (rows.count > 0) {
            const float* const values =
                classes == 0 ? host.values(rows.count, rows.outputs) : host.probabilities(rows.count, rows.outputs);
            own.insert(own.end(), values, values + static_cast<std::size_t>(rows.count) * width);
        }
        if (!rows.last()) return;
        const std::vector<std::vector<float>> all = gather_values<float>(context.comm, own);
        if (context.comm.rank() != 0) return;
        // Ranks hold consecutive shards, so their rows follow one another in data order.
        int64_t index = batch.at.step * plan.batch();
        std::string text;
        for (const std::vector<float>& part : all) {
            for (std::size_t row = 0; row * width < part.size(); ++row, ++index) {
                const float* p = part.data() + row * width;
                if (classes == 0) {
                    const auto target = std::bit_cast<float>(data.label(index));
                    text += fmt::format("{},{},{}\n", index, json_number(target), json_number(*p));
                    continue;
                }
                text += fmt::format("{},{},{}", index, data.label(index), std::max_element(p, p + width) - p);
                for (std::size_t c = 0; c < width; ++c) text.append(",").append(json_number(p[c]));
                text += '\n';
            }
        }
        write(text);
    });
}

}  // namespace lockstep
