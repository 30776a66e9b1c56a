// What ranks say to each other. Three implementations: MPI, threads of one process (tests, larger worlds), and one
// rank. The same code path serves all of them. All calls come from one thread of a rank (MPI_THREAD_FUNNELED).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/watch.hpp"
#include "core/function_ref.hpp"

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
    virtual void broadcast(int root, std::vector<std::byte>& bytes) = 0;  // resized on the others
    virtual std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> bytes) = 0;  // one per rank
    /// Waits, as wait() does, until all that was sent and received is done, where test() of a request tells only that
    /// it stands in the device's queue, in the order of its other work.
    virtual void settle() {}
    /// fp32 sum in the order of the transport: `reduce.algorithm = "native"` alone uses it.
    virtual void all_reduce_native(std::span<float> values) = 0;
    /// Ends the whole world at once, every rank with this exit code. Does not return.
    [[noreturn]] virtual void abort(int code) = 0;

    void set_timeout(double seconds) { timeout_s_ = seconds; }  // device.timeout_s; 0 = none
    double timeout() const { return timeout_s_; }

    std::vector<std::string> all_gather(const std::string& text);
    std::string broadcast(int root, const std::string& text);

    /// The whole job's communicator and a rank's number in it, where this one is only a part of the job. Deadlines and
    /// news are the job's.
    virtual Communicator& job() { return *this; }
    virtual int job_rank(int rank) const { return rank; }

    /// Work begins that may be long. Called between its pieces, still_working() tells the others now and then, from an
    /// eighth of the deadline on, that this rank is at work: whoever waits for it goes on waiting. Nearly always both
    /// are a look at the clock, and nobody is told anything. A part of a job speaks at any time: the rest of the job
    /// does not see its steps.
    void begin_work();
    void still_working();
    /// Runs long `work`, which makes no call here, on another thread, while this one says that the rank is at work.
    void work_aside(FunctionRef<void()> work);
    /// Tells the others that this rank fails, so that they stop waiting, and hears for a moment who else does. To be
    /// called before the memory goes that messages under way point to. Once: later calls tell what was heard then.
    Failures announce_failure();
    /// How long this rank's own work takes a step lately; rank 0 hears it of all (in order of ranks, 0 = not told).
    void tell_pace(double seconds);
    std::vector<double> take_paces();

  protected:
    friend class Patience;
    /// CPUs that the ranks of this host have together: with fewer than ranks, nobody should spin.
    virtual int local_cpus() const;
    /// Gives the core away for about that long; may return as soon as something arrives.
    virtual void nap(double seconds);
    /// Short news outside the order of messages. Never waits; a rank that takes none may miss some.
    virtual void send_news(int to, const News& news);
    /// Gives what has arrived to watch().
    virtual void collect_news();
    Watch& watch();

  private:
    void tell_all(const News& news);
    void speak_later();

    double timeout_s_ = 120;
    std::optional<Watch> watch_;
    std::optional<Failures> failures_;  // of announce_failure
    Watch::Clock::time_point next_word_{};
};

/// One rank, no MPI.
std::unique_ptr<Communicator> make_single_communicator();

}  // namespace lockstep
