// An optimizer on flat arrays of its own, for tests to step by hand.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"
#include "optim/update.hpp"

namespace lockstep::test {

inline constexpr const char* kAll[] = {"sgd",  "momentum", "nesterov", "adagrad", "rmsprop",
                                       "adam", "adamw",    "lars",     "lamb"};

inline OptimizerSpec optimizer(const std::string& name) {
    OptimizerSpec spec;
    spec.name = name;
    return spec;
}

/// One optimizer on its own flat arrays.
class Trial {
  public:
    Trial(const OptimizerSpec& spec, std::vector<UpdateTensor> tensors, std::vector<float> weights, CpuOptions cpu = {})
        : backend_(make_cpu_backend(cpu)),
          count_(static_cast<int64_t>(weights.size())),
          update_(spec, std::move(tensors), count_, *backend_),
          weights_(backend_->allocate(weights.size() * sizeof(float))),
          gradient_(backend_->allocate(weights.size() * sizeof(float))) {
        std::memcpy(weights_->data(), weights.data(), weights.size() * sizeof(float));
    }
    UpdateResult step(const std::vector<float>& gradient, int64_t b, double lr, float loss_sum = 1,
                      bool surely_finite = false) {
        std::memcpy(gradient_->data(), gradient.data(), gradient.size() * sizeof(float));
        return update_.apply(gradient_->floats(), loss_sum, b, ++updates_, static_cast<float>(lr), lr,
                             weights_->floats(), 1, surely_finite);
    }
    std::vector<float> weights() { return {weights_->floats(), weights_->floats() + count_}; }
    std::vector<float> everything() {
        std::vector<float> all = weights();
        for (const Update::Slot& slot : update_.slots()) all.insert(all.end(), slot.values, slot.values + count_);
        return all;
    }
    Update& update() { return update_; }

  private:
    std::unique_ptr<Backend> backend_;
    int64_t count_;
    Update update_;
    std::unique_ptr<Buffer> weights_, gradient_;
    int64_t updates_ = 0;
};

inline std::vector<UpdateTensor> one_tensor(int64_t count) {
    return {{.offset = 0, .count = count, .is_weight = true}};
}

inline bool same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline std::vector<float> random_values(std::size_t n, unsigned seed, float scale) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(n);
    for (float& value : values) value = normal(random);
    return values;
}

}  // namespace lockstep::test
