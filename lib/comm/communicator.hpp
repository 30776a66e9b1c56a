// What ranks say to each other. Three implementations: MPI, threads of one process (tests, larger worlds), and one rank.
// The same code path serves all of them. All calls come from one thread of a rank (MPI_THREAD_FUNNELED).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A message under way.
class Request {
  public:
    virtual ~Request() = default;
    /// True once the message has left or arrived; makes progress. Throws where the transport reports an error.
    virtual bool test() = 0;
};

class Communicator {
  public:
    virtual ~Communicator() = default;

    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual int local_rank() const = 0;  // among the ranks of this host
    virtual int local_size() const = 0;

    /// Point to point. Messages between two ranks with one tag arrive in order. `bytes` stay in place until done.
    /// `slot` in 0 … kSlots-1 names a reusable request, so that a step allocates nothing; the last two serve send_recv.
    /// A message has the length that its receiver expects, or the receiver throws.
    virtual Request& send(int slot, int to, int tag, std::span<const std::byte> bytes) = 0;
    virtual Request& receive(int slot, int from, int tag, std::span<std::byte> bytes) = 0;
    static constexpr int kSlots = 4096;

    /// Polls until done, giving up the core between polls; past the deadline throws kRuntime naming the peer's rank.
    void wait(Request& request, int peer);
    /// Both at once, of any length; `to` or `from` may be kNobody.
    static constexpr int kNobody = -1;
    void send_recv(int to, std::span<const std::byte> out, int from, std::span<std::byte> in, int tag = 0);

    // Collectives on small things (start, stop, checks). Built on point to point unless an implementation has better.
    virtual void barrier() = 0;
    virtual void broadcast(int root, std::vector<std::byte>& bytes) = 0;           // resized on the others
    virtual std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> bytes) = 0;  // one per rank
    /// fp32 sum in the order of the transport: `reduce.algorithm = "native"` alone uses it.
    virtual void all_reduce_native(std::span<float> values) = 0;
    /// Ends the whole world at once, every rank with this exit code. Does not return.
    [[noreturn]] virtual void abort(int code) = 0;

    void set_timeout(double seconds) { timeout_s_ = seconds; }  // device.timeout_s; 0 = none
    double timeout() const { return timeout_s_; }

    std::vector<std::string> all_gather(const std::string& text);
    std::string broadcast(int root, const std::string& text);

  protected:
    friend class Patience;
    /// CPUs that the ranks of this host have together: with fewer than ranks, nobody should spin.
    virtual int local_cpus() const;
    /// Gives the core away for about that long; may return as soon as something arrives.
    virtual void nap(double seconds);
    /// Tells all ranks that this one is alive and waits for `peer` (-1: for some rank), so that they can name the silent one
    /// and not the one next to them. Called now and then late in a long wait; `first` forgets what was heard before.
    virtual void announce_wait(int peer, bool first);
    /// What `rank` announced since: the rank it waits for, -1 for some rank, or kSilent.
    virtual int announced_wait(int rank);
    static constexpr int kSilent = -2;

  private:
    double timeout_s_ = 120;
};

/// One rank, no MPI.
std::unique_ptr<Communicator> make_single_communicator();

}  // namespace lockstep
