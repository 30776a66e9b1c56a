// A named range in the time line of NVIDIA's profilers, for as long as the object lives. Costs a few nanoseconds where
// no profiler listens; nothing is linked, and without the headers nothing is done.
#pragma once

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define LOCKSTEP_NVTX 1
#endif

namespace lockstep {

class NvtxRange {
  public:
#ifdef LOCKSTEP_NVTX
    explicit NvtxRange(const char* name) {
        nvtxRangePushA(name);
    }
    ~NvtxRange() {
        nvtxRangePop();
    }
#else
    explicit NvtxRange(const char*) {}
#endif
    NvtxRange(const NvtxRange&) = delete;
    NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace lockstep
