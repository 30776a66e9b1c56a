// What Backend::allocate throws where the device has too little memory: callers that know the run can say what to
// change.
#pragma once

#include <cstdint>

#include "core/error.hpp"

namespace lockstep {

class OutOfMemory : public Error {
  public:
    /// `device_bytes`: all that the device has.
    OutOfMemory(const std::string& message, std::int64_t device_bytes)
        : Error(ErrorKind::kRuntime, message), device_bytes_(device_bytes) {}
    std::int64_t device_bytes() const { return device_bytes_; }

  private:
    std::int64_t device_bytes_;
};

}  // namespace lockstep
