// An update of any optimizer allocates nothing after the first.
#include <algorithm>
#include <catch2/catch.hpp>

#include "backend/cpu/cpu_backend.hpp"
#include "optim/update.hpp"
#include "support/allocation_counter.hpp"

namespace lockstep {

TEST_CASE("an update allocates nothing, clipped and with turned columns either") {
    constexpr int64_t kCount = 64 * 48;
    UpdateTensor tensor{.offset = 0, .count = kCount};
    for (int32_t j = 0; j < 48; ++j) tensor.file_columns.push_back(j % 3 * 16 + j / 3);
    for (const char* name : {"sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "adamw", "lars", "lamb"}) {
        OptimizerSpec spec;
        spec.name = name;
        spec.clip_norm = 0.5;
        spec.l2 = 1e-4;
        const auto backend = make_cpu_backend({Isa::kAuto, 3});
        Update update(spec, {tensor}, kCount, *backend);
        const auto gradient = backend->allocate(kCount * sizeof(float));
        const auto weights = backend->allocate(kCount * sizeof(float));
        std::fill_n(gradient->floats(), kCount, 1.0F);
        update.apply(gradient->floats(), 1, 4, 1, 0.1F, 0.1, weights->floats());
        const test::AllocationCounter counter;
        for (int64_t u = 2; u < 5; ++u) update.apply(gradient->floats(), 1, 4, u, 0.1F, 0.1, weights->floats());
        const int64_t count = counter.count();
        CAPTURE(name);
        CHECK(count == 0);
    }
}

}  // namespace lockstep
