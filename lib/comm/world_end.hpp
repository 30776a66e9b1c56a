// The end of a world whose ranks or launcher do not end by themselves: calls that know no deadline (MPI_Init,
// MPI_Abort, MPI_Finalize) get one, and a launcher that still waits for a host that has fallen silent is ended, too.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace lockstep {

/// While it lives: after `seconds` says `message` on stderr ("": nothing) and ends this process with exit code `code`
/// and its launcher.
class EndGuard {
  public:
    EndGuard(double seconds, std::string message, int code);
    ~EndGuard();
    EndGuard(const EndGuard&) = delete;
    EndGuard& operator=(const EndGuard&) = delete;

  private:
    std::mutex mutex_;
    std::condition_variable ended_;
    bool over_ = false;
    std::thread thread_;
};

/// This rank ends the world: a process of its own gives the mpirun or orted above this one 2.5 s to end, as it does
/// unless a host is silent (then it would wait for minutes), and kills it. Under any other launcher nothing.
void end_launcher_soon();

}  // namespace lockstep
