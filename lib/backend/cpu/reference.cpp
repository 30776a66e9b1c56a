#include "backend/cpu/reference.hpp"

#include <array>
#include <cmath>

#include "core/fixed_math.hpp"

namespace lockstep::reference {
namespace {

/// 16 chains to one value: i + (i+8), then +4, +2, +1.
template <class T>
T fold_chains(std::array<T, 16>& chains) {
    for (std::size_t width = 8; width > 0; width /= 2) {
        for (std::size_t i = 0; i < width; ++i) chains[i] = chains[i] + chains[i + width];
    }
    return chains[0];
}

struct SoftmaxRow {
    float maximum;
    float sum;
};

/// Writes e to `exponentials` unless it is null.
SoftmaxRow softmax_row(int classes, const float* z, float* exponentials) {
    float maximum = z[0];
    for (int c = 1; c < classes; ++c) maximum = z[c] > maximum ? z[c] : maximum;
    std::array<float, 16> chains{};
    for (int c = 0; c < classes; ++c) {
        const float e = exp_fixed(z[c] - maximum);
        float& chain = chains[static_cast<std::size_t>(c % 16)];
        chain = chain + e;
        if (exponentials != nullptr) exponentials[c] = e;
    }
    return {maximum, fold_chains(chains)};
}

float scaled_gradient(float total, float w, float divisor, float l2) {
    float g = divisor == 1.0F ? total : total / divisor;
    if (l2 != 0.0F) g = std::fma(l2, w, g);
    return g;
}

/// The divisor of adagrad and rmsprop.
float root(const UpdateParams& p, float s) {
    return p.epsilon_inside ? std::sqrt(s + p.epsilon) : std::sqrt(s) + p.epsilon;
}

/// Adam's step for a learning rate of 1, without decay.
float adam_direction(const UpdateParams& p, float g, float& m, float& v) {
    m = std::fma(p.beta1, m, p.one_minus_beta1 * g);
    v = std::fma(p.beta2, v, p.one_minus_beta2 * (g * g));
    return (m / p.correction1) / (std::sqrt(v / p.correction2) + p.epsilon);
}

void update_element(const UpdateParams& p, float total, float& w, float* slot0, float* slot1, float* direction) {
    float g = scaled_gradient(total, w, p.divisor, p.l2);
    if (p.clip_active) g = g * p.clip;
    if (p.weight_decay != 0.0F && decay_is_coupled(p.kind)) g = std::fma(p.weight_decay, w, g);
    switch (p.kind) {
        case OptimizerKind::kSgd:
            w = std::fma(-p.lr, g, w);
            return;
        case OptimizerKind::kLars:
            g = g * p.trust;
            [[fallthrough]];
        case OptimizerKind::kMomentum:
            *slot0 = std::fma(p.momentum, *slot0, g);
            w = std::fma(-p.lr, *slot0, w);
            return;
        case OptimizerKind::kNesterov:
            *slot0 = std::fma(p.momentum, *slot0, g);
            w = std::fma(-p.lr, std::fma(p.momentum, *slot0, g), w);
            return;
        case OptimizerKind::kAdamW:
            w = w * p.decay_factor;
            [[fallthrough]];
        case OptimizerKind::kAdam:
            w = std::fma(-p.lr, adam_direction(p, g, *slot0, *slot1), w);
            return;
        case OptimizerKind::kAdagrad:
            *slot0 = std::fma(g, g, *slot0);
            w = std::fma(-p.lr, g / root(p, *slot0), w);
            return;
        case OptimizerKind::kRmsprop:
            *slot0 = std::fma(p.beta2, *slot0, p.one_minus_beta2 * (g * g));
            w = std::fma(-p.lr, g / root(p, *slot0), w);
            return;
        case OptimizerKind::kRmspropMomentum:
            *slot0 = std::fma(p.beta2, *slot0, p.one_minus_beta2 * (g * g));
            *slot1 = std::fma(p.momentum, *slot1, p.lr * (g / root(p, *slot0)));
            w = w - *slot1;
            return;
        case OptimizerKind::kLamb:
            *direction = adam_direction(p, g, *slot0, *slot1);
            if (p.weight_decay != 0.0F) *direction = std::fma(p.weight_decay, w, *direction);
            return;
    }
}

}  // namespace

void relu(int64_t n, const float* x, float* y) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] <= 0.0F ? 0.0F : x[i];
}

void relu_backward(int64_t n, const float* y, float* dy) {
    for (int64_t i = 0; i < n; ++i) dy[i] = y[i] > 0.0F ? dy[i] : 0.0F;
}

void add(int64_t n, const float* left, const float* right, float* dst) {
    for (int64_t i = 0; i < n; ++i) dst[i] = left[i] + right[i];
}

void scale(int64_t n, float factor, float* x) {
    for (int64_t i = 0; i < n; ++i) x[i] = factor * x[i];
}

bool all_below(int64_t n, const float* x, float limit) {
    for (int64_t i = 0; i < n; ++i) {
        if (!(std::fabs(x[i]) < limit)) return false;
    }
    return true;
}

void fold_rows(const FoldProgram& fold, int columns, int begin, int end, const float* x, std::span<float* const> out) {
    for (int c = begin; c < end; ++c) {
        std::array<float, kMaxFoldStack> stack;
        std::size_t top = 0;
        for (const FoldProgram::Leaf& leaf : fold.leaves) {
            float sum = 0.0F;
            for (int r = leaf.begin; r < leaf.end; ++r) sum = sum + x[int64_t{r} * columns + c];
            stack[top++] = sum;
            for (int i = 0; i < leaf.adds; ++i) {
                --top;
                stack[top - 1] = stack[top - 1] + stack[top];
            }
            if (leaf.root >= 0) out[static_cast<std::size_t>(leaf.root)][c] = stack[--top];
        }
    }
}

void softmax_cross_entropy(int rows, int classes, const float* logits, const int32_t* labels, float* loss,
                           float* dlogits) {
    for (int r = 0; r < rows; ++r) {
        const float* z = logits + int64_t{r} * classes;
        float* dz = dlogits == nullptr ? nullptr : dlogits + int64_t{r} * classes;
        const float at_label = z[labels[r]];  // read first: dlogits may be logits
        const SoftmaxRow row = softmax_row(classes, z, dz);
        loss[r] = log_fixed(row.sum) - (at_label - row.maximum);
        if (dz == nullptr) continue;
        for (int c = 0; c < classes; ++c) dz[c] = dz[c] / row.sum;
        dz[labels[r]] = dz[labels[r]] - 1.0F;
    }
}

void softmax(int rows, int classes, const float* logits, float* probabilities) {
    for (int r = 0; r < rows; ++r) {
        float* p = probabilities + int64_t{r} * classes;
        const SoftmaxRow row = softmax_row(classes, logits + int64_t{r} * classes, p);
        for (int c = 0; c < classes; ++c) p[c] = p[c] / row.sum;
    }
}

void exponentials(int64_t n, const float* x, float* y) {
    for (int64_t i = 0; i < n; ++i) y[i] = exp_fixed(x[i]);
}

void logarithms(int64_t n, const float* x, float* y) {
    for (int64_t i = 0; i < n; ++i) y[i] = log_fixed(x[i]);
}

void dropout_row(const DropoutMask& mask, int64_t position, int64_t first, int64_t count, const float* x, float* y) {
    const auto at = static_cast<uint64_t>(position);
    for (int64_t i = 0; i < count; ++i) {
        const auto element = static_cast<uint64_t>(first + i);
        const uint64_t block = element / 4;
        const PhiloxCounter counter = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                                       static_cast<uint32_t>(at), static_cast<uint32_t>(at >> 32)};
        const uint32_t bits = philox4x32(counter, mask.key)[element % 4];
        y[i] = bits >= mask.threshold ? x[i] * mask.scale : 0.0F;
    }
}

void block_square_sums(int64_t n, const float* gradient, const float* w, float divisor, float l2, double* sums) {
    for (int64_t begin = 0; begin < n; begin += kSquareBlock) {
        const int64_t end = begin + kSquareBlock < n ? begin + kSquareBlock : n;
        std::array<double, 16> chains{};
        for (int64_t i = begin; i < end; ++i) {
            const double g = scaled_gradient(gradient[i], w[i], divisor, l2);
            double& chain = chains[static_cast<std::size_t>(i % 16)];
            chain = std::fma(g, g, chain);
        }
        *sums++ = fold_chains(chains);
    }
}

void update(const UpdateParams& params, int64_t n, const float* gradient, float* w, float* slot0, float* slot1,
            float* direction) {
    const int slots = update_slots(params.kind);
    const bool leaves_direction = params.kind == OptimizerKind::kLamb;
    for (int64_t i = 0; i < n; ++i) {
        update_element(params, gradient[i], w[i], slots > 0 ? slot0 + i : nullptr, slots > 1 ? slot1 + i : nullptr,
                       leaves_direction ? direction + i : nullptr);
    }
}

}  // namespace lockstep::reference
