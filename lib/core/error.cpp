#include "core/error.hpp"

namespace lockstep {

int exit_code(ErrorKind kind) {
    switch (kind) {
        case ErrorKind::kRuntime:
            return 1;
        case ErrorKind::kUsage:
            return 2;
        case ErrorKind::kData:
            return 3;
        case ErrorKind::kMismatch:
            return 4;
        case ErrorKind::kNonFinite:
            return 5;
        case ErrorKind::kStopped:
            return 75;
    }
    return 1;
}

}  // namespace lockstep
