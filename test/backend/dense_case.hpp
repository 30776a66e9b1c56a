// Random dense layers, what the plain loops that define their sums make of them, and what a backend does.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/reference_gemm.hpp"
#include "core/canonical_tree.hpp"
#include "kernel_fixture.hpp"

namespace lockstep::test {

struct DenseCase {
    int in = 1, out = 1;
    bool relu = false, bias = true;
    int shards = 1;
    ShardRange range{0, 1};
    std::vector<int64_t> sizes;
    FoldProgram fold;
    Floats x{0}, w{0}, b{0}, dy{0};

    void fill(Random& random) {
        fold = fold_program(shards, range, sizes);
        x = Floats(random, int64_t{fold.rows} * in);
        w = Floats(random, int64_t{out} * in, 0.1F);
        b = Floats(random, out);
        dy = Floats(random, int64_t{fold.rows} * out);
        for (int64_t i = 0; i < x.size(); ++i) x[i] = relu_of(x[i]);  // zeros, as a layer below makes them
        for (int64_t i = 0; i < dy.size(); i += 3) dy[i] = 0;
    }
    std::string text() const {
        std::string s = fmt::format("{} -> {}{}{}, shards [{}, {}) of", in, out, relu ? " relu" : "",
                                    bias ? "" : " no bias", range.begin, range.end);
        for (const int64_t size : sizes) s += fmt::format(" {}", size);
        return s;
    }
};

struct DenseResult {
    Floats y, dx;
    std::vector<Floats> dw, db;

    explicit DenseResult(const DenseCase& c)
        : y(int64_t{c.fold.rows} * c.out, -3.0F),
          dx(int64_t{c.fold.rows} * c.in, -3.0F),
          dw(c.fold.roots.size(), Floats(int64_t{c.out} * c.in, -3.0F)),
          db(c.fold.roots.size(), Floats(c.out, -3.0F)) {}
};

inline DenseResult reference_result(const DenseCase& c, int chain = kChainTerms) {
    DenseResult r(c);
    const float* bias = c.bias ? c.b.data() : nullptr;
    reference_dense_forward(c.fold.rows, c.in, c.out, c.x.data(), c.w.data(), bias, c.relu, r.y.data(), chain);
    reference_dense_backward_data(c.fold.rows, c.in, c.out, c.dy.data(), c.w.data(), r.dx.data(), chain);
    const auto dw = pointers(r.dw), db = pointers(r.db);
    reference_dense_weight_gradient(c.fold, c.in, c.out, {0, c.out}, c.x.data(), c.dy.data(), dw, chain);
    if (c.bias) reference_dense_bias_gradient(c.fold, c.out, {0, c.out}, c.dy.data(), db);
    return r;
}

// A layer planned on a backend, with its arrays there.
class DenseOnDevice {
  public:
    DenseOnDevice(const DenseCase& c, const NamedBackend& on)
        : result_(c),
          bias_given_(c.bias),
          dense_(on->plan_dense(c.in, c.out, c.fold, c.relu)),
          x_(on, c.x),
          w_(on, c.w),
          bias_(on, c.b),
          dy_(on, c.dy),
          y_(on, result_.y),
          dx_(on, result_.dx),
          dw_(on_device(on, result_.dw)),
          db_(on_device(on, result_.db)) {}
    void run(Stream& stream) {
        dense_->forward(stream, x_.data(), w_.data(), bias_given_ ? bias_.data() : nullptr, y_.data());
        dense_->backward_data(stream, dy_.data(), w_.data(), dx_.data());
        const auto db = bias_given_ ? pointers(db_) : std::vector<float*>();
        dense_->backward_weights(stream, x_.data(), dy_.data(), pointers(dw_), db);
    }
    DenseResult fetch() {
        result_.y = y_.fetch();
        result_.dx = dx_.fetch();
        result_.dw = test::fetch(dw_);
        result_.db = test::fetch(db_);
        return result_;
    }

  private:
    DenseResult result_;
    bool bias_given_;
    std::unique_ptr<Dense> dense_;
    OnDevice<float> x_, w_, bias_, dy_, y_, dx_;
    std::vector<OnDevice<float>> dw_, db_;
};

inline DenseResult backend_result(const DenseCase& c, const NamedBackend& on) {
    DenseOnDevice layer(c, on);
    layer.run(on.main());
    return layer.fetch();
}

inline bool same(const DenseResult& a, const DenseResult& b) {
    return same_bytes(a.y, b.y) && same_bytes(a.dx, b.dx) && same_bytes(a.dw, b.dw) && same_bytes(a.db, b.db);
}

// A random layer of at most `terms` products in each of its three passes.
inline DenseCase random_dense(Random& random, int64_t terms) {
    const auto size = [&] {
        switch (random.in(0, 5)) {
            case 0:
                return random.in(1, 4);
            case 1:
                return random.in(500, 1400);
            case 2:
                return 16 * random.in(1, 12);
            default:
                return random.in(1, 90);
        }
    };
    DenseCase c;
    c.relu = random.in(0, 1) == 0;
    c.bias = random.in(0, 4) != 0;
    c.shards = random.in(1, 13);
    c.range.begin = random.in(0, 2) == 0 ? random.in(0, c.shards - 1) : 0;
    c.range.end = random.in(0, 2) == 0 ? random.in(c.range.begin + 1, c.shards) : c.shards;
    const int most = random.in(0, 3) == 0 ? 40 : random.in(0, 2) == 0 ? 2 : 9;
    int64_t rows = 0;
    for (int v = 0; v < c.shards; ++v) {
        c.sizes.push_back(random.in(0, 4) == 0 ? 0 : random.in(1, most));
        if (v >= c.range.begin && v < c.range.end) rows += c.sizes.back();
    }
    do {
        c.in = size();
        c.out = size();
    } while (rows * c.in * c.out > terms);
    return c;
}

}  // namespace lockstep::test
