// A message is copied when it is sent and copied again by its receiver, never by the other side: a rank that throws
// takes its buffers with it, and nobody may be writing into them then.
#include "comm/thread_communicator.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "comm/peer_collectives.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

struct Message {
    int from;
    int tag;
    std::vector<std::byte> bytes;
};

struct Mailbox {
    std::mutex mutex;
    std::condition_variable arrival;
    std::vector<Message> arrived;
    std::vector<std::vector<std::byte>> spare;  // memory of messages read, for those to come
    std::vector<std::pair<int, News>> news;     // and who sent them
};

struct World {
    explicit World(int ranks) : size(ranks), mailboxes(static_cast<std::size_t>(ranks)) {}

    void end() {
        ended = true;
        for (Mailbox& mailbox : mailboxes) {
            const std::lock_guard lock(mailbox.mutex);  // so that nobody is between looking and sleeping
            mailbox.arrival.notify_all();
        }
    }

    int size;
    std::vector<Mailbox> mailboxes;
    std::atomic<bool> ended = false;
};

class ThreadCommunicator final : public PeerCommunicator {
  public:
    ThreadCommunicator(World& world, int rank)
        : world_(world), rank_(rank), box_(world.mailboxes[static_cast<std::size_t>(rank)]), slots_(kSlots) {
        for (Slot& slot : slots_) slot.owner = this;
        watch();  // made now: a step allocates nothing
    }

    int rank() const override { return rank_; }
    int size() const override { return world_.size; }
    int local_rank() const override { return rank_; }
    int local_size() const override { return world_.size; }

    Request& send(int slot, int to, int tag, std::span<const std::byte> bytes) override {
        Slot& request = claim(slot, to, "sent to");
        Mailbox& box = world_.mailboxes[static_cast<std::size_t>(to)];
        std::vector<std::byte> copy;
        {
            const std::lock_guard lock(box.mutex);
            if (!box.spare.empty()) {
                copy = std::move(box.spare.back());
                box.spare.pop_back();
            }
        }
        copy.assign(bytes.begin(), bytes.end());
        {
            const std::lock_guard lock(box.mutex);
            box.arrived.push_back({rank_, tag, std::move(copy)});
            box.arrival.notify_one();
        }
        return request;
    }

    Request& receive(int slot, int from, int tag, std::span<std::byte> bytes) override {
        Slot& request = claim(slot, from, "awaited from");
        request.done = false;
        request.from = from;
        request.tag = tag;
        request.into = bytes;
        posted_.push_back(&request);
        return request;
    }

    [[noreturn]] void abort(int code) override {
        fail(ErrorKind::kRuntime, "rank {} ended the world with exit code {}", rank_, code);
    }

  protected:
    void nap(double seconds) override {
        std::unique_lock lock(box_.mutex);
        box_.arrival.wait_for(lock, std::chrono::duration<double>(seconds),
                              [&] { return !box_.arrived.empty() || world_.ended.load(); });
    }
    void send_news(int to, const News& news) override {
        Mailbox& box = world_.mailboxes[static_cast<std::size_t>(to)];
        const std::lock_guard lock(box.mutex);
        box.news.emplace_back(rank_, news);
    }
    void collect_news() override {
        if (world_.ended) throw PeerFailed(rank_);  // who waits for something else than a message must hear of it, too
        const std::lock_guard lock(box_.mutex);
        for (const auto& [from, news] : box_.news) watch().hear(from, news, Watch::Clock::now());
        box_.news.clear();
    }

  private:
    struct Slot final : Request {
        bool test() override { return done || owner->progress(*this); }
        ThreadCommunicator* owner = nullptr;
        bool done = true;
        int from = 0;
        int tag = 0;
        std::span<std::byte> into;
    };

    Slot& claim(int slot, int peer, const char* what) {
        if (world_.ended) throw PeerFailed(rank_);
        if (peer < 0 || peer >= world_.size || peer == rank_) {
            fail(ErrorKind::kRuntime, "a message {} rank {} by rank {} in a world of {}", what, peer, rank_,
                 world_.size);
        }
        Slot& request = slots_.at(static_cast<std::size_t>(slot));
        if (!request.done) fail(ErrorKind::kRuntime, "request slot {} is still in use", slot);
        return request;
    }

    // Gives arrived messages to posted receives, both in order.
    bool progress(const Slot& request) {
        {
            const std::lock_guard lock(box_.mutex);
            std::move(box_.arrived.begin(), box_.arrived.end(), std::back_inserter(unread_));
            box_.arrived.clear();
        }
        std::erase_if(posted_, [&](Slot* slot) { return deliver(*slot); });
        if (!request.done && world_.ended) throw PeerFailed(rank_);
        return request.done;
    }

    bool deliver(Slot& slot) {
        const auto message = std::find_if(unread_.begin(), unread_.end(),
                                          [&](const Message& m) { return m.from == slot.from && m.tag == slot.tag; });
        if (message == unread_.end()) return false;
        if (message->bytes.size() != slot.into.size()) {
            fail(ErrorKind::kRuntime, "rank {} sent {} bytes where rank {} expects {} (tag {})", slot.from,
                 message->bytes.size(), rank_, slot.into.size(), slot.tag);
        }
        if (!slot.into.empty()) std::memcpy(slot.into.data(), message->bytes.data(), slot.into.size());
        slot.done = true;
        {
            const std::lock_guard lock(box_.mutex);
            box_.spare.push_back(std::move(message->bytes));
        }
        unread_.erase(message);
        return true;
    }

    World& world_;
    int rank_;
    Mailbox& box_;
    std::vector<Slot> slots_;
    std::vector<Slot*> posted_;    // receives not yet done, in order
    std::vector<Message> unread_;  // messages not yet asked for, in order
};

}  // namespace

void run_thread_world(int world, FunctionRef<void(Communicator&)> body) {
    World shared(world);
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(world));
    const auto run_rank = [&](int rank) {
        try {
            ThreadCommunicator comm(shared, rank);
            body(comm);
        } catch (const PeerFailed&) {  // the rank that failed has the reason
            shared.end();
        } catch (...) {
            errors[static_cast<std::size_t>(rank)] = std::current_exception();
            shared.end();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(world));
    std::string refusal;
    try {
        while (static_cast<int>(threads.size()) < world) {
            threads.emplace_back(run_rank, static_cast<int>(threads.size()));
        }
    } catch (const std::exception& e) {  // those that have started wait for the others
        refusal = e.what();
        shared.end();
    }
    for (std::thread& thread : threads) thread.join();
    if (!refusal.empty()) {
        fail(ErrorKind::kRuntime,
             "{} ranks in one process: only {} threads could be started ({}); use fewer ranks, or raise the limits on "
             "processes and memory (ulimit -u, ulimit -v, pids.max of the cgroup)",
             world, threads.size(), refusal);
    }
    for (const std::exception_ptr& error : errors) {
        if (error) std::rethrow_exception(error);
    }
}

}  // namespace lockstep
