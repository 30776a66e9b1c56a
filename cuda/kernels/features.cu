#include "cuda/kernels/features.h"

#include "cuda/kernels/counts.h"
#include "cuda/kernels/elements.h"

namespace lockstep {
namespace {

template <int kWidth>
__global__ void k_copy_part(int64_t rows, int64_t packs, const float* __restrict__ from, int64_t from_stride,
                            float* __restrict__ to, int64_t to_stride) {
    for_each_item(rows, packs, [=](int64_t r, int64_t j) {
        store<kWidth>(to + (r * to_stride + j * kWidth), load_constant<kWidth>(from + (r * from_stride + j * kWidth)));
    });
}

template <int kWidth>
__global__ void k_fill(int64_t n, float value, float* __restrict__ x) {
    for_each_pack<kWidth>(n, [=](auto width, int64_t i) {
        constexpr int w = decltype(width)::value;
        Pack<w> values;
        for (float& v : values.v) v = value;
        store<w>(x + i, values);
    });
}

__global__ void k_expand(int64_t rows, int columns, int64_t elements, const ExpandedElement* __restrict__ plan,
                         const float* __restrict__ x, float* __restrict__ y) {
    for_each_item(rows, elements, [=](int64_t r, int64_t j) {
        const ExpandedElement element = plan[j];
        const float value = __ldg(x + (r * columns + element.column));
        y[r * elements + j] = element.id < 0 ? value : value == static_cast<float>(element.id) ? 1.0F : 0.0F;
    });
}

}  // namespace

void launch_copy_part(int64_t rows, int width, const float* from, RowPart from_part, float* to, RowPart to_part,
                      cudaStream_t stream) {
    if (rows == 0 || width == 0) return;
    from += from_part.first;
    to += to_part.first;
    const bool four = width % 4 == 0 && in_quads(from, from_part.stride) && in_quads(to, to_part.stride);
    const int64_t packs = width / (four ? 4 : 1);
    const LineGrid shape(rows, packs);
    const auto range = [&](const RowPart& part) { return count((rows - 1) * part.stride + width); };
    launch(four ? k_copy_part<4> : k_copy_part<1>, shape.grid, shape.block, 0, stream, rows, packs,
           in(from, range(from_part)), int64_t{from_part.stride}, out(to, range(to_part)), int64_t{to_part.stride});
}

void launch_fill(int64_t n, float value, float* x, cudaStream_t stream) {
    if (n == 0) return;
    const bool four = all_aligned(x);
    launch(four ? k_fill<4> : k_fill<1>, blocks_for(four ? n / 4 : n), kThreadsOfBlock, 0, stream, n, value,
           out(x, count(n)));
}

void launch_expand(int64_t rows, int columns, int elements, const ExpandedElement* plan, const float* x, float* y,
                   cudaStream_t stream) {
    if (rows == 0 || elements == 0) return;
    const LineGrid shape(rows, elements);
    launch(k_expand, shape.grid, shape.block, 0, stream, rows, columns, int64_t{elements}, in(plan, count(elements)),
           in(x, count(rows * columns)), out(y, count(rows * elements)));
}

}  // namespace lockstep
