// The emulated NCCL as tests see it beside the C interface of <nccl.h>.
#pragma once

namespace lockstep::emulation {

/// How long work on a stream waits for a peer that does not come before it fails and names it (a GPU would wait for
/// ever). Holds for communicators made afterwards. At first LOCKSTEP_EMULATION_NCCL_TIMEOUT seconds, or 60.
void set_nccl_timeout(double seconds);

}  // namespace lockstep::emulation
