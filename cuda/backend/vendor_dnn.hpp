// cuDNN's convolutions: descriptors, the choice of algorithms and the three calls. The only file that knows cuDNN.
//
// Algorithms are chosen by cuDNN's rules (never by measuring): the first of its list that is deterministic, keeps to
// the precision asked for and needs no more than kDnnWorkspaceLimit. The list is a function of the convolution, the
// number of rows, the GPU type and the library's version, so every rank chooses the same.
#pragma once

#include <cudnn.h>

#include <cstddef>
#include <source_location>
#include <string>

#include "cuda/backend/vendor.hpp"

namespace lockstep {

/// Never by what is free: it decides which algorithm is taken.
inline constexpr std::size_t kDnnWorkspaceLimit = std::size_t{256} << 20;

void cudnn_check(cudnnStatus_t status, const char* call,
                 const std::source_location& where = std::source_location::current());
#define CUDNN_CHECK(call) ::lockstep::cudnn_check((call), #call)

/// cuDNN for one stream.
class DnnHandle {
  public:
    explicit DnnHandle(cudaStream_t stream);
    ~DnnHandle();
    DnnHandle(const DnnHandle&) = delete;
    DnnHandle& operator=(const DnnHandle&) = delete;
    cudnnHandle_t get() const { return handle_; }
    cudaStream_t stream() const { return stream_; }
    /// That of a stream, made at the first call.
    static DnnHandle& of(VendorStream& stream);

  private:
    cudaStream_t stream_;
    cudnnHandle_t handle_ = nullptr;
};

struct DnnWorkspace {
    void* memory = nullptr;
    std::size_t bytes = 0;
};

/// One convolution of `rows` samples: NHWC tensors and filters [out][kh][kw][in/groups], all in one number format.
class DnnConvolution {
  public:
    /// The padding must be the same on opposite sides. Throws kUsage, naming the convolution, where cuDNN has no
    /// algorithm that may be taken.
    DnnConvolution(DnnHandle& handle, const ConvShape& shape, int rows, CudaPrecision precision, bool backward_data);
    ~DnnConvolution();
    DnnConvolution(const DnnConvolution&) = delete;
    DnnConvolution& operator=(const DnnConvolution&) = delete;

    void forward(DnnHandle& handle, const void* x, const void* filters, void* y, DnnWorkspace workspace) const;
    void backward_data(DnnHandle& handle, const void* dy, const void* filters, void* dx, DnnWorkspace workspace) const;
    void backward_filters(DnnHandle& handle, const void* x, const void* dy, void* dw, DnnWorkspace workspace) const;

    /// Bytes that any of its passes needs; may be 0.
    std::size_t workspace() const;
    /// "28x28x1 -> 28x28x32, kernel 5x5, 16 rows, fp32: forward IMPLICIT_GEMM, …"
    std::string algorithms() const;

  private:
    /// The algorithm of a pass with the math type that it runs in.
    template <class Algorithm>
    struct Choice {
        Algorithm algorithm{};
        std::size_t workspace = 0;
        cudnnConvolutionDescriptor_t how = nullptr;
    };
    template <class Algorithm, class List>
    void choose(Choice<Algorithm>& choice, const char* pass, List list);
    void create_descriptors();
    void destroy_descriptors();
    std::string text() const;

    ConvShape shape_;
    int rows_;
    CudaPrecision precision_;
    bool backward_data_;
    cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
    cudnnFilterDescriptor_t filters_ = nullptr;
    Choice<cudnnConvolutionFwdAlgo_t> forward_;
    Choice<cudnnConvolutionBwdDataAlgo_t> data_;
    Choice<cudnnConvolutionBwdFilterAlgo_t> weights_;
};

}  // namespace lockstep
