#include "core/version.hpp"

namespace lockstep {

const char* version() {
    return LOCKSTEP_VERSION;
}

}  // namespace lockstep
