// What the driver checks at a launch, and what the emulation checks in addition.
#include "test/emulation/kernel_call.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "test/emulation/machine.hpp"
#include "test/emulation/memory.hpp"
#include "test/emulation/runtime.hpp"

namespace lockstep::emulation {
namespace {

std::string describe(const std::source_location& place) {
    const std::string_view path = place.file_name();
    return fmt::format("kernel at {}:{}", path.substr(path.rfind('/') + 1), place.line());
}

std::string describe(const dim3& d) {
    return fmt::format("({}, {}, {})", d.x, d.y, d.z);
}

}  // namespace

void* resolve_range(const Range& range) {
    if (pinned_memory().contains(range.pointer))
        fail(cudaErrorIllegalAddress, "pinned host memory is given to a kernel");
    if (reinterpret_cast<std::uintptr_t>(range.pointer) % range.alignment != 0) {
        fail(cudaErrorMisalignedAddress,
             fmt::format("a pointer to elements of {} bytes is given to a kernel, misaligned", range.alignment));
    }
    return translate(range.pointer, range.bytes);
}

void refuse_addresses_in(const void* object, std::size_t bytes) {
    for (std::size_t at = 0; at + sizeof(void*) <= bytes; at += alignof(void*)) {
        void* word = nullptr;
        std::memcpy(&word, static_cast<const char*>(object) + at, sizeof word);
        if (device_memory().contains(word) || pinned_memory().contains(word)) {
            fail("a struct given to a kernel holds an address; pointers are parameters of their own");
        }
    }
}

cudaError_t enqueue_kernel(const LaunchSpec& spec, std::initializer_list<Range> ranges,
                           std::shared_ptr<KernelCall> kernel) {
    const std::string what = describe(spec.place);
    return call(what.c_str(), [&] {
        const dim3 b = spec.block, g = spec.grid;
        const std::uint64_t threads = std::uint64_t{b.x} * b.y * b.z;
        if (threads == 0 || threads > 1024 || b.z > 64) {
            return refuse(
                cudaErrorInvalidConfiguration,
                fmt::format("{}: a block of {} threads; 1 to 1,024 are possible, 64 of them in z", what, describe(b)));
        }
        if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7FFFFFFF || g.y > 65535 || g.z > 65535) {
            return refuse(
                cudaErrorInvalidConfiguration,
                fmt::format("{}: a grid of {} blocks; at least one, and in y and z at most 65,535", what, describe(g)));
        }
        const int device = device_of(spec.stream);
        if (device != current_device()) {
            fail(cudaErrorInvalidResourceHandle,
                 fmt::format("a stream of device {} is used while device {} is current", device, current_device()));
        }
        const std::size_t allowed = Machine::get().shared_allowed(device, spec.kernel);
        if (spec.shared > allowed) {
            return refuse(cudaErrorInvalidValue,
                          fmt::format("{}: {} bytes of dynamic shared memory; this kernel may use {} "
                                      "(allow_shared() allows more)",
                                      what, spec.shared, allowed));
        }
        for (const Range& r : ranges) access(spec.stream, r.pointer, r.bytes, r.write, what);
        Machine::get().push_kernel(spec, what, ranges, std::move(kernel));
        return cudaSuccess;
    });
}

}  // namespace lockstep::emulation
