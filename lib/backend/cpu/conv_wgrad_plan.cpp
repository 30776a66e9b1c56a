#include "backend/cpu/conv_wgrad_plan.hpp"

#include <algorithm>

#include "backend/cpu/gemm_plan.hpp"
#include "backend/cpu/reference_gemm.hpp"

namespace lockstep {

ConvWgradPlan plan_conv_wgrad(const ConvShape& shape, bool bordered, bool kernel_rows) {
    ConvWgradPlan plan;
    plan.read = bordered ? bordered_in(shape) : shape.in;
    plan.written = shape.out();
    plan.stride_h = shape.stride_h;
    plan.n = shape.out_channels / shape.groups;
    plan.x_step = int64_t{shape.stride_w} * shape.in.channels;
    plan.y_step = shape.out_channels;
    plan.rows_per_block = conv_rows_per_block(shape.out_w());
    const int group_in = shape.in.channels / shape.groups;
    const int pad_top = bordered ? 0 : shape.pad_top, pad_left = bordered ? 0 : shape.pad_left;
    plan.tap_rows = kernel_rows ? shape.kernel_w * group_in : group_in;
    for (int kh = 0; kh < shape.kernel_h; ++kh) {
        plan.vertical.push_back(kh * shape.dilation_h - pad_top);
        for (int kw = 0; kw < (kernel_rows ? 1 : shape.kernel_w); ++kw) {
            const int offset = kw * shape.dilation_w - pad_left;  // of output position 0
            int first = 0, end = shape.out_w();
            while (first < end && first * shape.stride_w + offset < 0) ++first;
            while (end > first && (end - 1) * shape.stride_w + offset >= plan.read.width) --end;
            const int64_t position = int64_t{first} * shape.stride_w + offset;
            plan.taps.push_back({kh, position * shape.in.channels, first, end - first});
        }
    }
    const int last_row = (shape.out_h() - 1) * shape.stride_h + plan.vertical.back();
    plan.same_positions = plan.vertical.front() >= 0 && last_row < plan.read.height &&
                          std::all_of(plan.taps.begin(), plan.taps.end(),
                                      [&](const ConvWgradTap& tap) { return tap.count == shape.out_w(); });
    plan.flat = shape.kernel_h == 1 && shape.kernel_w == 1 && shape.stride_h == 1 && shape.stride_w == 1 &&
                plan.read.height == plan.written.height && plan.read.width == plan.written.width;
    return plan;
}

}  // namespace lockstep
