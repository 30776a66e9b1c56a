#include "nn/gradient_plan.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace lockstep {
namespace {

class GradientPlanner {
  public:
    GradientPlanner(std::span<const LayerSpec> layers, std::size_t prefix, const ValueLives& lives,
                    PlacePool& transient, MemoryPlan& plan)
        : layers_(layers),
          prefix_(prefix),
          lives_(lives),
          transient_(transient),
          rows_(plan.gradient_elements),
          places_(layers.size()) {}

    void run(std::vector<BackStep>& back) {
        back.resize(layers_.size());
        if (layers_.empty()) return;
        const std::size_t last = lives_.root(layers_.size() - 1);
        places_[last] = take(Place::Kind::kGradient, last);  // that of the loss
        for (std::size_t j = layers_.size(); j-- > 0;) {
            if (j + 1 == prefix_ || lives_.is_border(j)) release();
            plan_layer(j, back[j]);
        }
    }

  private:
    void plan_layer(std::size_t j, BackStep& step) {
        const LayerSpec& layer = layers_[j];
        const std::size_t own = lives_.root(j);
        if (!places_[own]) return;
        step.dy = *places_[own];
        step.runs = layer.reaches_weights();
        if (layer.in_place()) return;
        bool given = false;
        std::vector<Place> scratch;
        for (std::size_t k = 0; step.runs && k < layer.inputs.size(); ++k) {
            BackStep::Input& input = step.inputs.emplace_back();
            if (layer.inputs[k] < 0 || !layers_[static_cast<std::size_t>(layer.inputs[k])].reaches_weights()) continue;
            const std::size_t value = lives_.root(static_cast<std::size_t>(layer.inputs[k]));
            std::optional<Place>& place = places_[value];
            const Place::Kind kind = lives_.crosses_backward(value) ? Place::Kind::kGradient : Place::Kind::kTransient;
            if (place) {
                input.how = BackStep::Input::How::kAdd;
                if (!layer.passes_gradient()) {
                    input.scratch = take(j < prefix_ ? Place::Kind::kTransient : Place::Kind::kGradient, value);
                    scratch.push_back(input.scratch);
                }
            } else if (layer.passes_gradient() && !given && reads_once(layer, k) &&
                       (step.dy.kind == kind || step.dy.kind == Place::Kind::kGradient)) {
                input.how = BackStep::Input::How::kTaken;
                place = step.dy;
                given = true;
            } else {
                input.how = BackStep::Input::How::kWrite;
                place = take(kind, value);
            }
            input.to = *place;
        }
        for (const Place place : scratch) give(place, j);
        if (!given) give(step.dy, j);
    }

    /// An input that is read twice gets its second gradient added: the first must not be the other inputs' source.
    bool reads_once(const LayerSpec& layer, std::size_t k) const {
        return std::count_if(layer.inputs.begin(), layer.inputs.end(), [&](int input) {
                   return input >= 0 && lives_.root(static_cast<std::size_t>(input)) ==
                                            lives_.root(static_cast<std::size_t>(layer.inputs[k]));
               }) == 1;
    }

    Place take(Place::Kind kind, std::size_t value) {
        PlacePool& pool = kind == Place::Kind::kTransient ? transient_ : rows_;
        return {kind, pool.take(layers_[value].out.elements())};
    }
    /// Where blocks are taken one after the other, the rows of the next blocks still lie there: until all of them have
    /// met.
    void give(Place place, std::size_t j) {
        if (place.kind == Place::Kind::kTransient) return transient_.give(place.number);
        if (j >= prefix_) return rows_.give(place.number);
        waiting_.push_back(place.number);
    }
    void release() {
        for (const int number : waiting_) rows_.give(number);
        waiting_.clear();
    }

    std::span<const LayerSpec> layers_;
    std::size_t prefix_;
    const ValueLives& lives_;
    PlacePool& transient_;
    PlacePool rows_;
    std::vector<std::optional<Place>> places_;  // of the gradient of each value
    std::vector<int> waiting_;
};

}  // namespace

void plan_gradients(std::span<const LayerSpec> layers, std::size_t prefix, const ValueLives& lives,
                    PlacePool& transient, MemoryPlan& plan) {
    GradientPlanner(layers, prefix, lives, transient, plan).run(plan.back);
}

}  // namespace lockstep
