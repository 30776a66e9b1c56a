// Which instruction sets this machine has, and what they are called.
#include <algorithm>
#include <string>

#include "backend/cpu/cpu_isa.hpp"
#include "core/error.hpp"
#include "hwy/targets.h"

namespace lockstep {

const char* isa_name(Isa isa) {
    switch (isa) {
        case Isa::kAuto:
            return "auto";
        case Isa::kAvx2:
            return "avx2";
        case Isa::kAvx512:
            return "avx512";
        case Isa::kNeon:
            return "neon";
        case Isa::kScalar:
            return "scalar";
    }
    return "unknown";
}

std::vector<Isa> available_isas() {
    std::vector<Isa> isas;
#if HWY_ARCH_X86
    const int64_t targets = hwy::SupportedTargets();
    if ((targets & HWY_AVX3) != 0) isas.push_back(Isa::kAvx512);
    if ((targets & HWY_AVX2) != 0) isas.push_back(Isa::kAvx2);  // Highway asks for FMA, too
#elif HWY_ARCH_ARM_A64
    isas.push_back(Isa::kNeon);  // every 64-bit ARM has it, fma included
#endif
    isas.push_back(Isa::kScalar);
    return isas;
}

Isa choose_isa(Isa asked, std::span<const Isa> available) {
    std::string names;
    for (const Isa isa : available) names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
    if (asked == Isa::kAuto) {
        if (!available.empty() && available.front() != Isa::kScalar) return available.front();
        fail(ErrorKind::kUsage,
             "this CPU has neither AVX2 with FMA nor AVX-512 nor NEON, which the fast kernels need; set device.isa = "
             "\"scalar\" for the same results, slowly");
    }
    if (std::find(available.begin(), available.end(), asked) == available.end()) {
        fail(ErrorKind::kUsage, "device.isa = \"{}\": this CPU does not have it; it has: {} (or \"auto\")",
             isa_name(asked), names);
    }
    return asked;
}

}  // namespace lockstep
