// Features that move on a GPU: parts of rows, and columns of a table to one-hot.
#include <algorithm>

#include "backend/expand_columns.hpp"
#include "cuda/backend/cuda_backend.hpp"
#include "cuda/kernels/features.h"

namespace lockstep {
namespace {

class CudaExpand final : public Expand {
  public:
    CudaExpand(CudaContext& context, int in_columns, std::span<const ExpandColumn> columns)
        : columns_(in_columns), elements_(static_cast<int>(expanded_elements(in_columns, columns))) {
        std::vector<ExpandedElement> plan;
        for (const ExpandColumn& each : columns) {
            if (each.width == 0) plan.push_back({each.column, -1});
            for (int id = 0; id < each.width; ++id) plan.push_back({each.column, id});
        }
        const std::size_t bytes = plan.size() * sizeof(ExpandedElement);
        if (bytes == 0) return;
        const auto host = context.allocate_host(bytes);
        std::copy(plan.begin(), plan.end(), reinterpret_cast<ExpandedElement*>(host->data()));
        plan_ = context.allocate(bytes);
        const cudaStream_t stream = context.main().get();
        CUDA_CHECK(cudaMemcpyAsync(plan_->data(), host->data(), bytes, cudaMemcpyHostToDevice, stream));
        CUDA_CHECK(cudaStreamSynchronize(stream));
    }
    void forward(Stream& stream, int rows, const float* x, float* y) override {
        if (elements_ == 0) return;
        launch_expand(rows, columns_, elements_, reinterpret_cast<const ExpandedElement*>(plan_->data()), x, y,
                      cuda_stream(stream));
    }

  private:
    int columns_, elements_;
    std::unique_ptr<Buffer> plan_;  // an ExpandedElement for each element of a row
};

}  // namespace

std::unique_ptr<Expand> CudaBackend::plan_expand(int in_columns, std::span<const ExpandColumn> columns) {
    return std::make_unique<CudaExpand>(context_, in_columns, columns);
}

void CudaBackend::copy_part(Stream& stream, int64_t rows, int width, const float* from, RowPart from_part, float* to,
                            RowPart to_part) {
    launch_copy_part(rows, width, from, from_part, to, to_part, cuda_stream(stream));
}

void CudaBackend::fill(Stream& stream, int64_t n, float value, float* x) {
    launch_fill(n, value, x, cuda_stream(stream));
}

}  // namespace lockstep
