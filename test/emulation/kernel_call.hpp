// A kernel launch as the emulation keeps it: the kernel, its arguments and the memory that they name. Typed at the
// launch and untyped behind it, because the interpreter runs every kernel in the same way.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <tuple>
#include <type_traits>

#include "cuda/access.h"

namespace lockstep::emulation {

/// Where the running thread stands in its grid. Plain data in the static TLS block: kernels read it all the time.
struct Position {
    uint3 thread, block, block_dim, grid_dim;
    unsigned linear;  // the thread's number in its block, x fastest
};
extern constinit thread_local Position position [[gnu::tls_model("initial-exec")]];

inline unsigned lane() {
    return position.linear % 32;
}

// What a kernel may ask of the block that it runs in.
void barrier(const char* file, int line);
void* static_shared(const void* identity, std::size_t bytes, std::size_t alignment);
void* dynamic_shared();
/// The value that lane `source` of the warp brings to the same operation.
std::uint64_t exchange(unsigned mask, std::uint64_t value, int source);
/// One bit for each lane of the mask whose predicate holds.
unsigned ballot(unsigned mask, bool predicate);

template <class T>
T shuffle(unsigned mask, T value, int source) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "shuffles move 4 or 8 bytes");
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = exchange(mask, bits, source);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

/// A launch whose argument types are forgotten.
class KernelCall {
  public:
    virtual ~KernelCall() = default;
    /// Looks every pointer up; called once, when the kernel's turn on its stream comes.
    virtual void bind() = 0;
    /// The kernel itself, for the thread at `position`.
    virtual void run_thread() = 0;
};

struct Range {
    const void* pointer = nullptr;
    std::size_t bytes = 0;
    bool write = false;
    std::size_t alignment = 1;
};

/// The memory behind an argument of launch(); fails on any fault of the range.
void* resolve_range(const Range& range);
/// Fails if a struct given to a kernel holds an address: it would reach the kernel untranslated and unchecked.
void refuse_addresses_in(const void* object, std::size_t bytes);

template <class T, AccessMode kMode>
Range range_of(const Access<T, kMode>& argument) {
    return {argument.pointer, argument.count * sizeof(T), kMode != AccessMode::kRead, alignof(T)};
}
template <class T>
Range range_of(const T&) {
    return {};
}

template <class T, AccessMode kMode>
T* resolve(const Access<T, kMode>& argument) {
    if (argument.pointer == nullptr || argument.count == 0) return argument.pointer;
    return static_cast<T*>(resolve_range(range_of(argument)));
}
template <class T>
T resolve(const T& argument) {
    if constexpr (std::is_class_v<T>) {
        T members = argument;
#if __has_builtin(__builtin_clear_padding)
        __builtin_clear_padding(&members);  // it holds whatever lay there before, half an address among it
#endif
        refuse_addresses_in(&members, sizeof(T));
    }
    return argument;
}

template <class Given, class... Parameters>
class TypedCall final : public KernelCall {
  public:
    TypedCall(void (*kernel)(Parameters...), const Given& given) : kernel_(kernel), given_(given) {}
    void bind() override {
        std::apply([this](const auto&... each) { real_.reset(new Real(resolve(each)...)); }, given_);
    }
    void run_thread() override { std::apply(kernel_, *real_); }

  private:
    using Real = std::tuple<Parameters...>;
    void (*kernel_)(Parameters...);
    Given given_;
    std::unique_ptr<Real> real_;
};

/// Everything about a launch but its arguments' types.
struct LaunchSpec {
    const void* kernel;
    dim3 grid, block;
    std::size_t shared;
    cudaStream_t stream;
    std::source_location place;
};

/// Checks the launch as the driver would, states its ranges and puts it on the stream.
cudaError_t enqueue_kernel(const LaunchSpec& spec, std::initializer_list<Range> ranges,
                           std::shared_ptr<KernelCall> kernel);

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream,
                   std::source_location place, const Arguments&... arguments) {
    using Given = std::tuple<Arguments...>;
    return enqueue_kernel({reinterpret_cast<const void*>(kernel), grid, block, shared, stream, place},
                          {range_of(arguments)...},
                          std::make_shared<TypedCall<Given, Parameters...>>(kernel, Given(arguments...)));
}

}  // namespace lockstep::emulation
