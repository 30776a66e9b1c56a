#include "backend/cpu/conv_wgrad_kernel.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "backend/cpu/reference_gemm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/conv_wgrad_kernel.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
//
#include "backend/cpu/simd.hpp"

#if LOCKSTEP_SIMD
HWY_BEFORE_NAMESPACE();
namespace lockstep::HWY_NAMESPACE {
namespace {

// 24 sums where there are 32 registers, 12 where there are 16: 6 rows of a whole panel of columns, and twice as many
// rows where the columns fill no more than half of one. Each term costs a load for every row and every vector of
// columns, so a wide tile of few rows waits for its loads the least.
constexpr int kPanelVectors = kLanes == 8 ? 2 : 4;
constexpr int kWideRows = 6;
constexpr int kNarrowRows = kLanes == 8 ? 6 : 12;
constexpr int kNarrowestRows = kLanes == 8 ? 12 : 16;
constexpr int kPanel = kPanelVectors * kLanes;  // columns

// Where rows of dy are long, lines of one panel lie far apart, in few sets of the cache, and every tile would fetch
// them from there again. Then panels of a block are copied first, for some columns at a time that fit the second-level
// cache, and so is what a tile reads of x: [panel][position][column], [position][row].
constexpr int64_t kPackedFrom = 64;      // a longer row of dy is
constexpr int64_t kPackedColumns = 256;  // copied at a time
constexpr int64_t kPackedRows = 128;     // of the gradient: fewer do not repay the copies
constexpr int64_t kPackedPanels = 3;     // nor do fewer panels that of x
constexpr int kNarrowPitch = 8;          // of a position of x

// The output rows of a block that one kernel row reads inside the image.
struct RowRun {
    int64_t x;      // start of the image row
    int64_t y;      // start of the row of dy
    int64_t times;  // rows that follow each other without a gap, 1 unless the plan is flat
};
struct BlockRuns {
    RowRun runs[kChainPositions];  // a block is at most 256 rows of one position
    int count = 0;

    /// `y_step`: from one output position to the next; `y_begin`: the output row that y = 0 is.
    void collect(const ConvWgradPlan& plan, const ConvWgradOperands& operands, int64_t block, int kernel_row,
                 int64_t y_step, int64_t y_begin) {
        const int64_t begin = block * plan.rows_per_block;
        const int64_t end = std::min(operands.samples * plan.written.height, begin + plan.rows_per_block);
        const int64_t x_row = int64_t{plan.read.width} * plan.read.channels, y_row = plan.written.width * y_step;
        if (plan.flat) {
            runs[0] = {(begin - operands.first_sample * plan.read.height) * x_row, (begin - y_begin) * y_row,
                       end - begin};
            count = 1;
            return;
        }
        count = 0;
        int64_t n = begin / plan.written.height, oh = begin % plan.written.height;
        for (int64_t row = begin; row < end; ++row) {
            const int64_t ih = oh * plan.stride_h + plan.vertical[static_cast<std::size_t>(kernel_row)];
            if (ih >= 0 && ih < plan.read.height) {
                runs[count++] = {((n - operands.first_sample) * plan.read.height + ih) * x_row, (row - y_begin) * y_row,
                                 1};
            }
            if (++oh == plan.written.height) {
                oh = 0;
                ++n;
            }
        }
    }
};

struct Tile {
    const float* x;            // with the tap's and, unless there are offsets, the first row's offset
    const int64_t* x_offsets;  // of each row, where rows of several taps stand in one tile
    const float* dy;
    const RowRun* runs;
    int run_count;
    int64_t count;  // positions of a row
    int64_t x_step, y_step;
    float* gradient;
    int64_t stride;
    int columns;
    bool first;
};

template <int R, int NV, bool kWhole, bool kOffsets>
HWY_INLINE void run_tile(const Tile& t) {
    const FloatTag d;
    FloatVec acc[R][NV];
    LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = hn::Zero(d);
    int64_t at[R];
    LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) at[r] = kOffsets ? t.x_offsets[r] : r;
    for (int i = 0; i < t.run_count; ++i) {
        const float* x = t.x + t.runs[i].x;
        const float* y = t.dy + t.runs[i].y;
        for (int64_t k = t.count * t.runs[i].times; k > 0; --k, x += t.x_step, y += t.y_step) {
            FloatVec yv[NV];
            LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) yv[v] =
                kWhole || v < NV - 1 ? hn::LoadU(d, y + v * kLanes) : load(y + v * kLanes, t.columns - v * kLanes);
            LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) {
                const FloatVec a = hn::Set(d, x[kOffsets ? at[r] : r]);
                LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[r][v] = fma(a, yv[v], acc[r][v]);
            }
        }
    }
    LOCKSTEP_UNROLL for (int r = 0; r < R; ++r) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) {
        float* p = t.gradient + r * t.stride + v * kLanes;
        const FloatVec total = t.first ? hn::Zero(d) : hn::LoadU(d, p);
        hn::StoreU(hn::Add(total, acc[r][v]), d, p);
    }
}

template <int R, int NV, bool kOffsets>
HWY_INLINE void run_columns(const Tile& t) {
    if constexpr (NV > 1) {
        if (t.columns <= (NV - 1) * kLanes) return run_columns<R, NV - 1, kOffsets>(t);
    }
    if (t.columns >= NV * kLanes) {
        run_tile<R, NV, true, kOffsets>(t);
    } else {
        run_tile<R, NV, false, kOffsets>(t);
    }
}

template <int R>
HWY_NOINLINE void run_rows(const Tile& t) {
    constexpr int kVectors = R <= kWideRows ? kPanelVectors : R <= kNarrowRows ? 2 : 1;
    if (t.x_offsets != nullptr) {
        run_columns<R, kVectors, true>(t);
    } else {
        run_columns<R, kVectors, false>(t);
    }
}

using RunRows = void (*)(const Tile&);
template <std::size_t... R>
constexpr std::array<RunRows, sizeof...(R) + 1> run_rows_table(std::index_sequence<R...>) {
    return {nullptr, run_rows<static_cast<int>(R) + 1>...};
}
constexpr auto kRunRows = run_rows_table(std::make_index_sequence<kNarrowestRows>());

// How the rows of the gradient are cut into tiles of nearly equal height: those of each tap apart or, where that makes
// fewer tiles and all taps read the same positions, those of all taps together.
struct Cut {
    bool together = false;
    int64_t rows;   // that are cut together
    int64_t tiles;  // they make

    explicit Cut(const ConvWgradPlan& plan) : rows(plan.tap_rows) {
        const int most = plan.n > 2 * kLanes ? kWideRows : plan.n > kLanes ? kNarrowRows : kNarrowestRows;
        const auto tiles_of = [most](int64_t n) { return (n + most - 1) / most; };
        tiles = tiles_of(rows);
        const int64_t all_rows = plan.gradient_rows();
        // With one vector of columns the loads set the speed, and offsets cost registers.
        if (plan.n > kLanes && plan.same_positions &&
            tiles_of(all_rows) < static_cast<int64_t>(plan.taps.size()) * tiles) {
            together = true;
            rows = all_rows;
            tiles = tiles_of(all_rows);
        }
    }
    int64_t row_of(int64_t tile) const { return tile * rows / tiles; }
};

int64_t tiles(const ConvWgradPlan& plan) {
    const Cut cut(plan);
    return cut.together ? cut.tiles : static_cast<int64_t>(plan.taps.size()) * cut.tiles;
}

// Where row `row` of the gradient reads x, from where row 0 does.
int64_t x_offset(const ConvWgradPlan& plan, int64_t row) {
    const ConvWgradTap& tap = plan.taps[static_cast<std::size_t>(row / plan.tap_rows)];
    const int lines = plan.vertical[static_cast<std::size_t>(tap.kernel_row)] - plan.vertical[0];
    return int64_t{lines} * plan.read.width * plan.read.channels + tap.x - plan.taps[0].x + row % plan.tap_rows;
}

bool packs(const ConvWgradPlan& plan) {
    return plan.y_step > kPackedFrom && plan.n > kPanel && plan.gradient_rows() >= kPackedRows;
}

int64_t positions_of_block(const ConvWgradPlan& plan) {
    return int64_t{plan.rows_per_block} * plan.written.width;
}

int64_t scratch_floats(const ConvWgradPlan& plan) {
    return packs(plan) ? positions_of_block(plan) * (kPackedColumns + kNarrowestRows) : 0;
}

// `count` columns of `positions` positions of dy, as panels that are `pitch` positions long.
void pack_panels(const float* dy, int64_t y_step, int64_t positions, int64_t count, int64_t pitch, float* to) {
    for (int64_t k = 0; k < positions; ++k, dy += y_step, to += kPanel) {
        float* row = to;
        int64_t c = 0;
        for (; c + kPanel <= count; c += kPanel, row += pitch * kPanel) {
            LOCKSTEP_UNROLL for (int v = 0; v < kPanel; v += kLanes) {
                hn::StoreU(hn::LoadU(FloatTag(), dy + c + v), FloatTag(), row + v);
            }
        }
        for (int64_t j = 0; c + j < count; j += kLanes) {
            hn::StoreU(load(dy + c + j, count - c - j), FloatTag(), row + j);
        }
    }
}

// What `rows` rows of a tile read of x, and its runs of that copy.
void pack_rows(Tile& t, int rows, RowRun* runs, float* to) {
    const int pitch = rows <= kNarrowPitch ? kNarrowPitch : kNarrowestRows;
    float* const begin = to;
    for (int i = 0; i < t.run_count; ++i) {
        runs[i] = {to - begin, t.runs[i].y, t.runs[i].times};
        const float* x = t.x + t.runs[i].x;
        for (int64_t k = t.count * t.runs[i].times; k > 0; --k, x += t.x_step, to += pitch) {
            if (t.x_offsets == nullptr) {
                for (int r = 0; r < rows; r += kLanes) store(load(x + r, rows - r), to + r, rows - r);
            } else {
                for (int r = 0; r < rows; ++r) to[r] = x[t.x_offsets[r]];
            }
        }
    }
    t.x = begin;
    t.x_offsets = nullptr;
    t.x_step = pitch;
    t.runs = runs;
}

void run_columns_of_block(const ConvWgradPlan& plan, const ConvWgradOperands& operands, IndexRange tile_range,
                          int64_t block, IndexRange columns) {
    const Cut cut(plan);
    const bool packed = packs(plan);
    const int64_t block_row = block * plan.rows_per_block, pitch = positions_of_block(plan);
    float* const x_copy = packed ? operands.scratch + pitch * kPackedColumns : nullptr;
    if (packed) {
        const int64_t end = std::min(operands.samples * plan.written.height, block_row + plan.rows_per_block);
        pack_panels(operands.dy + block_row * plan.written.width * plan.y_step + columns.begin, plan.y_step,
                    (end - block_row) * plan.written.width, columns.end - columns.begin, pitch, operands.scratch);
    }
    const float* const dy = packed ? operands.scratch : operands.dy + columns.begin;
    const int64_t y_step = packed ? kPanel : plan.y_step, next_panel = packed ? pitch * kPanel : kPanel;
    BlockRuns runs, runs_of_copy;
    int64_t offsets[kNarrowestRows];
    int kernel_row = -1;
    for (int64_t i = tile_range.begin; i < tile_range.end; ++i) {
        const ConvWgradTap& tap = plan.taps[static_cast<std::size_t>(i / cut.tiles)];
        if (tap.kernel_row != kernel_row) {
            kernel_row = tap.kernel_row;
            runs.collect(plan, operands, block, kernel_row, y_step, packed ? block_row : 0);
        }
        const int64_t row = cut.row_of(i % cut.tiles), end = cut.row_of(i % cut.tiles + 1);
        for (int64_t r = row; cut.together && r < end; ++r) offsets[r - row] = x_offset(plan, r);
        Tile t{operands.x + tap.x + (cut.together ? 0 : row),
               cut.together ? offsets : nullptr,
               dy + tap.first * y_step,
               runs.runs,
               runs.count,
               tap.count,
               plan.x_step,
               y_step,
               operands.gradient + (i / cut.tiles * cut.rows + row) * operands.stride + columns.begin,
               operands.stride,
               static_cast<int>(columns.end - columns.begin),
               block == 0};
        if (packed && t.columns > (kPackedPanels - 1) * kPanel)
            pack_rows(t, static_cast<int>(end - row), runs_of_copy.runs, x_copy);
        for (; t.columns > 0; t.columns -= kPanel) {
            kRunRows[static_cast<std::size_t>(end - row)](t);
            t.dy += next_panel;
            t.gradient += kPanel;
        }
    }
}

void run(const ConvWgradPlan& plan, const ConvWgradOperands& operands, IndexRange tile_range, IndexRange blocks) {
    const int64_t together = packs(plan) ? kPackedColumns : plan.n;
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
        for (int64_t c = 0; c < plan.n; c += together) {
            run_columns_of_block(plan, operands, tile_range, block, {c, std::min<int64_t>(c + together, plan.n)});
        }
    }
}

// One tap, NV vectors of channels, all blocks.
template <int NV>
HWY_INLINE void depthwise_tap(const ConvWgradPlan& plan, const ConvWgradOperands& operands, const ConvWgradTap& tap,
                              int64_t c, int64_t lanes, float* gradient) {
    const FloatTag d;
    BlockRuns runs;
    FloatVec total[NV];
    LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) total[v] = hn::Zero(d);
    for (int64_t block = 0; block < plan.blocks(operands.samples); ++block) {
        runs.collect(plan, operands, block, tap.kernel_row, plan.y_step, 0);
        FloatVec acc[NV];
        LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[v] = hn::Zero(d);
        for (int i = 0; i < runs.count; ++i) {
            const float* x = operands.x + tap.x + runs.runs[i].x + c;
            const float* y = operands.dy + tap.first * plan.y_step + runs.runs[i].y + c;
            for (int64_t k = tap.count * runs.runs[i].times; k > 0; --k, x += plan.x_step, y += plan.y_step) {
                LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) acc[v] =
                    NV > 1 ? fma(hn::LoadU(d, x + v * kLanes), hn::LoadU(d, y + v * kLanes), acc[v])
                           : fma(load(x, lanes), load(y, lanes), acc[v]);
            }
        }
        LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) total[v] = hn::Add(total[v], acc[v]);
    }
    LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v)
        store(total[v], gradient + c + v * kLanes, NV > 1 ? int64_t{kLanes} : lanes);
}

void depthwise(const ConvWgradPlan& plan, const ConvWgradOperands& operands, int64_t channels, IndexRange taps) {
    for (int64_t t = taps.begin; t < taps.end; ++t) {
        const ConvWgradTap& tap = plan.taps[static_cast<std::size_t>(t)];
        float* gradient = operands.gradient + t * operands.stride;
        int64_t c = 0;
        for (; c + 4 * kLanes <= channels; c += 4 * kLanes) depthwise_tap<4>(plan, operands, tap, c, kLanes, gradient);
        for (; c < channels; c += kLanes) depthwise_tap<1>(plan, operands, tap, c, channels - c, gradient);
    }
}

template <int NV>
HWY_INLINE void sum_columns(int64_t rows, int64_t channels, const float* x, int64_t lanes, float* sums) {
    const FloatTag d;
    FloatVec total[NV];
    LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) total[v] = hn::Zero(d);
    for (int64_t begin = 0; begin < rows; begin += kChainPositions) {
        const int64_t end = std::min<int64_t>(rows, begin + kChainPositions);
        FloatVec chain[4][NV];
        LOCKSTEP_UNROLL for (int j = 0; j < 4; ++j) LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) chain[j][v] =
            hn::Zero(d);
        const auto add = [&](int j, const float* p) LOCKSTEP_LAMBDA {
            LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) chain[j][v] =
                hn::Add(chain[j][v], NV > 1 ? hn::LoadU(d, p + v * kLanes) : load(p, lanes));
        };
        int64_t row = begin;
        for (; row + 4 <= end; row += 4) {
            LOCKSTEP_UNROLL for (int j = 0; j < 4; ++j) add(j, x + (row + j) * channels);
        }
        if (row < end) add(0, x + row * channels);
        if (row + 1 < end) add(1, x + (row + 1) * channels);
        if (row + 2 < end) add(2, x + (row + 2) * channels);
        LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) total[v] =
            hn::Add(total[v], hn::Add(hn::Add(chain[0][v], chain[1][v]), hn::Add(chain[2][v], chain[3][v])));
    }
    LOCKSTEP_UNROLL for (int v = 0; v < NV; ++v) store(total[v], sums + v * kLanes, NV > 1 ? int64_t{kLanes} : lanes);
}

void channel_sums(int64_t rows, int64_t channels, IndexRange columns, const float* x, float* sums) {
    int64_t c = columns.begin;
    for (; c + 2 * kLanes <= columns.end; c += 2 * kLanes) sum_columns<2>(rows, channels, x + c, kLanes, sums + c);
    for (; c < columns.end; c += kLanes) sum_columns<1>(rows, channels, x + c, columns.end - c, sums + c);
}

}  // namespace

constexpr ConvWgradKernels kConvWgrad{kLanes, tiles, scratch_floats, run, depthwise, channel_sums};

}  // namespace lockstep::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // LOCKSTEP_SIMD

#if HWY_ONCE
namespace lockstep {
namespace {

constexpr ConvWgradKernels kNone{};

}  // namespace

const ConvWgradKernels& conv_wgrad_kernels(Isa isa) {
    return LOCKSTEP_PICK_TABLE(isa, kConvWgrad, kNone);
}

}  // namespace lockstep
#endif  // HWY_ONCE
