// The device that the calling thread has chosen (an executor: the device it runs).
#pragma once

namespace lockstep::emulation {

void set_current_device(int device);

}  // namespace lockstep::emulation
