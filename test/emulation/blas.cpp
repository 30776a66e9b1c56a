// The emulated cuBLAS: the C functions that vendor arithmetic calls, and no others (a further one does not link). What
// the real library would do with bits that vary (no workspace of one's own, measuring, reduced sums) is refused here.
#include <cublas_v2.h>
#include <fmt/format.h>

#include <algorithm>

#include "test/emulation/blas_product.hpp"
#include "test/emulation/memory.hpp"
#include "test/emulation/runtime.hpp"

using namespace lockstep::emulation;

struct cublasContext {
    static constexpr uint64_t kAlive = 0x5341'4c42'5553'4c41ULL;
    uint64_t alive = kAlive;
    int device = 0;
    cudaStream_t stream = nullptr;
    void* workspace = nullptr;
    size_t workspace_bytes = 0;
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

namespace {

// Of a workspace after each call: enough to catch whoever keeps something in it, cheap for 32 MiB.
constexpr size_t kSpoiledBytes = 64 << 10;

struct Operand {
    const void* pointer;
    Number number;
    int64_t leading;  // elements from column to column
    int64_t rows, columns;
    bool transposed;
    size_t bytes() const {
        return static_cast<size_t>(leading * (columns - 1) + rows) * lockstep::emulation::bytes_of(number);
    }
    // Of the matrix as the product reads it.
    int64_t at(int64_t row, int64_t column) const {
        return transposed ? row * leading + column : column * leading + row;
    }
};

struct Gemm {
    int64_t m, n, k;
    Operand a, b, c;
};

/// The body of a C function: its status is the library's own unless the device is at fault.
template <class Body>
cublasStatus_t blas_call(const char* name, Body body) {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    const cudaError_t error = call(name, [&] {
        status = body();
        return cudaSuccess;
    });
    return error == cudaSuccess ? status : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t refuse_value(const std::string& message) {
    refuse(cudaErrorInvalidValue, message);
    return CUBLAS_STATUS_INVALID_VALUE;
}

void need_alive(cublasHandle_t handle, const char* name) {
    if (handle == nullptr || handle->alive != cublasContext::kAlive) {
        fail(fmt::format("{}: no cuBLAS handle, or one that was destroyed", name));
    }
    if (handle->device != current_device()) {
        fail(fmt::format("{}: handle of device {} used while device {} is current", name, handle->device,
                         current_device()));
    }
}

Number number_of(cudaDataType type, cublasMath_t math, const char* what) {
    switch (type) {
        case CUDA_R_32F:
            return (math & 0xf) == CUBLAS_TF32_TENSOR_OP_MATH ? Number::kTf32 : Number::kFp32;
        case CUDA_R_16BF:
            return Number::kBf16;
        case CUDA_R_16F:
            return Number::kFp16;
        default:
            fail(fmt::format("cublasGemmEx: type {} of {} is not emulated", static_cast<int>(type), what));
    }
}

bool transposed(cublasOperation_t operation) {
    if (operation != CUBLAS_OP_N && operation != CUBLAS_OP_T) {
        fail(fmt::format("cublasGemmEx: operation {} is not emulated", static_cast<int>(operation)));
    }
    return operation == CUBLAS_OP_T;
}

void run(const Gemm& g) {
    const void* const a = translate(g.a.pointer, g.a.bytes());
    const void* const b = translate(g.b.pointer, g.b.bytes());
    void* const c = translate(g.c.pointer, g.c.bytes());
    Product product(g.m, g.n, g.k);
    for (int64_t l = 0; l < g.k; ++l) {
        for (int64_t i = 0; i < g.m; ++i) product.a(l, i) = load(g.a.number, a, g.a.at(i, l));
    }
    for (int64_t j = 0; j < g.n; ++j) {
        for (int64_t l = 0; l < g.k; ++l) product.b(j, l) = load(g.b.number, b, g.b.at(l, j));
    }
    OrderOf order;
    order.add(g.m).add(g.n).add(g.k).add(g.a.transposed).add(g.b.transposed);
    order.add_alignment(g.a.pointer).add_alignment(g.b.pointer).add_alignment(g.c.pointer);
    product.run(order.length());
    for (int64_t j = 0; j < g.n; ++j) {
        for (int64_t i = 0; i < g.m; ++i) store(g.c.number, product.c(j, i), c, g.c.at(i, j));
    }
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    return blas_call("cublasCreate", [&] {
        if (libraries_lack_memory()) return CUBLAS_STATUS_ALLOC_FAILED;
        *handle = new cublasContext;
        (*handle)->device = current_device();
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    // Also after a fault, as destructors do; so no call(), which would refuse.
    if (handle == nullptr || handle->alive != cublasContext::kAlive) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->alive = 0;
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    return blas_call("cublasSetStream", [&] {
        need_alive(handle, "cublasSetStream");
        if (device_of(stream) != handle->device) return refuse_value("cublasSetStream: a stream of another device");
        handle->stream = stream;
        handle->workspace = nullptr;  // as the real one: back to the workspace that all handles of a device share
        handle->workspace_bytes = 0;
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* workspace, size_t bytes) {
    return blas_call("cublasSetWorkspace", [&] {
        need_alive(handle, "cublasSetWorkspace");
        if (reinterpret_cast<std::uintptr_t>(workspace) % 256 != 0) {
            return refuse_value("cublasSetWorkspace: the workspace does not lie on a 256-byte border");
        }
        handle->workspace = workspace;
        handle->workspace_bytes = bytes;
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    return blas_call("cublasSetMathMode", [&] {
        need_alive(handle, "cublasSetMathMode");
        const int base = mode & 0xf;
        if ((base != CUBLAS_DEFAULT_MATH && base != CUBLAS_TF32_TENSOR_OP_MATH && base != CUBLAS_PEDANTIC_MATH) ||
            (mode & ~(0xf | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)) != 0) {
            fail(fmt::format("cublasSetMathMode: mode {} is not emulated", static_cast<int>(mode)));
        }
        handle->math = mode;
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void* alpha, const void* A, cudaDataType Atype, int lda, const void* B,
                            cudaDataType Btype, int ldb, const void* beta, void* C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
    return blas_call("cublasGemmEx", [&] {
        need_alive(handle, "cublasGemmEx");
        if (handle->stream == nullptr) fail("cublasGemmEx: the handle has no stream; the default one is never used");
        if (handle->workspace == nullptr) {
            fail("cublasGemmEx: no workspace of the stream's own since cublasSetStream: bits would not repeat");
        }
        if (algo != CUBLAS_GEMM_DEFAULT) {
            fail(fmt::format("cublasGemmEx: algorithm {}; only the library's default repeats its bits",
                             static_cast<int>(algo)));
        }
        if (computeType != CUBLAS_COMPUTE_32F) {
            fail(fmt::format("cublasGemmEx: compute type {} is not emulated", static_cast<int>(computeType)));
        }
        if (alpha == nullptr || beta == nullptr) return refuse_value("cublasGemmEx: no alpha or no beta");
        if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0) {
            fail(fmt::format("cublasGemmEx: alpha {} and beta {} are not emulated, only 1 and 0",
                             *static_cast<const float*>(alpha), *static_cast<const float*>(beta)));
        }
        const bool ta = transposed(transa), tb = transposed(transb);
        const Gemm g{m,
                     n,
                     k,
                     {A, number_of(Atype, handle->math, "A"), lda, ta ? k : m, ta ? m : k, ta},
                     {B, number_of(Btype, handle->math, "B"), ldb, tb ? n : k, tb ? k : n, tb},
                     {C, number_of(Ctype, CUBLAS_DEFAULT_MATH, "C"), ldc, m, n, false}};
        if (g.a.number != g.b.number || (g.c.number != Number::kFp32 && g.c.number != g.a.number)) {
            refuse(cudaErrorInvalidValue, "cublasGemmEx: this combination of types does not exist");
            return CUBLAS_STATUS_NOT_SUPPORTED;
        }
        if (g.a.number != Number::kFp32 && g.a.number != Number::kTf32 &&
            (handle->math & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) == 0) {
            fail("cublasGemmEx: 16-bit operands without CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION");
        }
        if (m < 0 || n < 0 || k < 0 || lda < std::max<int64_t>(1, g.a.rows) || ldb < std::max<int64_t>(1, g.b.rows) ||
            ldc < std::max(1, m)) {
            return refuse_value(
                fmt::format("cublasGemmEx: m {} n {} k {}, leading dimensions {} {} {}", m, n, k, lda, ldb, ldc));
        }
        if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
        if (k == 0) fail("cublasGemmEx: k = 0 is not emulated");
        void* const workspace = handle->workspace;
        const size_t workspace_bytes = handle->workspace_bytes;
        access(handle->stream, A, g.a.bytes(), false, "A of cublasGemmEx");
        access(handle->stream, B, g.b.bytes(), false, "B of cublasGemmEx");
        access(handle->stream, C, g.c.bytes(), true, "C of cublasGemmEx");
        access(handle->stream, workspace, workspace_bytes, true, "workspace of cublasGemmEx");
        push(handle->stream, "cublasGemmEx", [g, workspace, workspace_bytes] {
            run(g);
            fill_nan(translate(workspace, workspace_bytes), std::min(workspace_bytes, kSpoiledBytes));
        });
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
    switch (type) {
        case MAJOR_VERSION:
            *value = CUBLAS_VER_MAJOR;
            return CUBLAS_STATUS_SUCCESS;
        case MINOR_VERSION:
            *value = CUBLAS_VER_MINOR;
            return CUBLAS_STATUS_SUCCESS;
        case PATCH_LEVEL:
            *value = CUBLAS_VER_PATCH;
            return CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

const char* cublasGetStatusName(cublasStatus_t status) {
    switch (status) {
        case CUBLAS_STATUS_SUCCESS:
            return "CUBLAS_STATUS_SUCCESS";
        case CUBLAS_STATUS_ALLOC_FAILED:
            return "CUBLAS_STATUS_ALLOC_FAILED";
        case CUBLAS_STATUS_INVALID_VALUE:
            return "CUBLAS_STATUS_INVALID_VALUE";
        case CUBLAS_STATUS_NOT_SUPPORTED:
            return "CUBLAS_STATUS_NOT_SUPPORTED";
        case CUBLAS_STATUS_EXECUTION_FAILED:
            return "CUBLAS_STATUS_EXECUTION_FAILED";
        default:
            return "CUBLAS_STATUS_…";
    }
}

const char* cublasGetStatusString(cublasStatus_t) {
    return "emulated cuBLAS; the reason stands above";
}

}  // extern "C"
