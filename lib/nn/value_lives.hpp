// The values of a network: a layer's output and the outputs of the layers that work in place on it are one value. When
// it is read last, and whether it lives where blocks of rows cannot: across a border, where all of them meet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "nn/layer.hpp"

namespace lockstep {

class ValueLives {
  public:
    ValueLives(std::span<const LayerSpec> layers, std::size_t prefix, bool training) : prefix_(prefix) {
        for (std::size_t i = 0; i < layers.size(); ++i) {
            const LayerSpec& layer = layers[i];
            root_.push_back(layer.in_place() ? root_[static_cast<std::size_t>(layer.inputs[0])] : i);
            last_use_.push_back(i);
            for (const int input : layer.inputs) {
                if (input >= 0) last_use_[root_[static_cast<std::size_t>(input)]] = i;
            }
            if (training && layer.is_border()) borders_.push_back(i);
        }
        if (!layers.empty()) last_use_[root_.back()] = layers.size();  // by the loss
    }

    /// The layer that makes the value which layer i leaves.
    std::size_t root(std::size_t i) const { return root_[i]; }
    std::size_t last_use(std::size_t root) const { return last_use_[root]; }
    bool is_border(std::size_t i) const { return std::find(borders_.begin(), borders_.end(), i) != borders_.end(); }

    /// Whether the value outlives its block on the way forward: at layer i all shards' inputs meet before its output.
    bool crosses_forward(std::size_t root) const {
        return last_use_[root] >= prefix_ || std::any_of(borders_.begin(), borders_.end(), [&](std::size_t i) {
                   return root < i && i <= last_use_[root];
               });
    }
    /// On the way back: the gradients of layer i's output meet before that of its input.
    bool crosses_backward(std::size_t root) const {
        return last_use_[root] >= prefix_ || std::any_of(borders_.begin(), borders_.end(), [&](std::size_t i) {
                   return root <= i && i < last_use_[root];
               });
    }

  private:
    std::size_t prefix_;
    std::vector<std::size_t> root_, last_use_, borders_;
};

/// Places of one kind, handed out again once free: the smallest that fits, else the largest, which grows.
class PlacePool {
  public:
    explicit PlacePool(std::vector<int64_t>& elements) : elements_(elements) {}

    int take(int64_t elements) {
        auto best = free_.end();
        for (auto place = free_.begin(); place != free_.end(); ++place) {
            if (best == free_.end() || better(of(*place), of(*best), elements)) best = place;
        }
        if (best == free_.end()) {
            elements_.push_back(elements);
            return static_cast<int>(elements_.size()) - 1;
        }
        const int number = *best;
        free_.erase(best);
        elements_[static_cast<std::size_t>(number)] = std::max(of(number), elements);
        return number;
    }
    void give(int number) { free_.push_back(number); }

  private:
    int64_t of(int number) const { return elements_[static_cast<std::size_t>(number)]; }
    static bool better(int64_t a, int64_t b, int64_t wanted) {
        if ((a >= wanted) != (b >= wanted)) return a >= wanted;
        return a >= wanted ? a < b : a > b;
    }

    std::vector<int64_t>& elements_;
    std::vector<int> free_;
};

}  // namespace lockstep
