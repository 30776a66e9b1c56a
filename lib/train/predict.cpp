// Predictions as a table: classes and probabilities of every sample, or the value of a regression.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "io/json_number.hpp"
#include "train/evaluation_rows.hpp"
#include "train/host_outputs.hpp"
#include "train/settings.hpp"

namespace lockstep {
namespace {

/// A field of CSV as it is, or where it holds what would end it in quotes (RFC 4180).
std::string csv_field(const std::string& text) {
    if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    return quoted + "\"";
}

/// The columns of names behind the figures.
class Names {
  public:
    Names(const Dataset& data, bool wanted)
        : data_(data),
          files_(wanted && data.size() > 0 && !data.sample_name(0).empty()),
          classes_(wanted ? data.class_names() : std::vector<std::string>()) {}

    std::string header() const {
        return std::string(classes_.empty() ? "" : ",label_name,class_name") + (files_ ? ",file" : "");
    }
    std::string row(int64_t index, int32_t label, int64_t chosen) const {
        std::string text;
        if (!classes_.empty()) text = fmt::format(",{},{}", class_name(label), class_name(chosen));
        return files_ ? text + "," + csv_field(data_.sample_name(index)) : text;
    }

  private:
    std::string class_name(int64_t label) const {
        const bool known = label >= 0 && label < static_cast<int64_t>(classes_.size());
        return known ? csv_field(classes_[static_cast<std::size_t>(label)]) : "";
    }

    const Dataset& data_;
    bool files_;
    std::vector<std::string> classes_;
};

}  // namespace

void predict(const EvaluationContext& context, const Dataset& data, FunctionRef<void(const std::string&)> write,
             bool with_names) {
    const Names names(data, with_names);
    const ShardPlan plan = evaluation_plan(context.config, data.size());
    const int classes = context.network.classes();
    const auto width = static_cast<std::size_t>(std::max(classes, 1));
    if (context.comm.rank() == 0) {
        std::string header = classes == 0 ? "index,target,prediction" : "index,label,class";
        for (int c = 0; c < classes; ++c) header += fmt::format(",p{}", c);
        write(header + names.header() + "\n");
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
                    text += fmt::format("{},{},{}{}\n", index, json_number(target), json_number(*p),
                                        names.row(index, -1, -1));
                    continue;
                }
                const int32_t label = data.label(index);
                const int64_t chosen = std::max_element(p, p + width) - p;
                text += fmt::format("{},{},{}", index, label < 0 ? "" : std::to_string(label), chosen);
                for (std::size_t c = 0; c < width; ++c) text.append(",").append(json_number(p[c]));
                text += names.row(index, label, chosen) + '\n';
            }
        }
        write(text);
    });
}

}  // namespace lockstep
