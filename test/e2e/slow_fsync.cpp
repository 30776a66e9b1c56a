// Stands before the C library's fsync in the ranks that a test gives it to (LD_PRELOAD): a disk so slow that saving
// takes longer than the others would wait for a silent rank.
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

extern "C" int fsync(int descriptor) {
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    return static_cast<int>(syscall(SYS_fsync, descriptor));
}
