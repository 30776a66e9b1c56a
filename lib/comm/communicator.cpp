#include "comm/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "comm/patience.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {
namespace {

// Longer messages go in pieces: MPI counts bytes in an int.
constexpr std::size_t kPiece = std::size_t{1} << 30;

template <class Byte>
std::span<Byte> piece_at(std::span<Byte> bytes, std::size_t offset) {
    return bytes.subspan(std::min(offset, bytes.size()),
                         std::min(kPiece, bytes.size() - std::min(offset, bytes.size())));
}

std::vector<std::byte> bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

std::string text_of(const std::vector<std::byte>& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void Communicator::wait(Request& request, int peer) {
    Patience patience(*this);
    while (!request.test()) patience.pause(peer);
}

void Communicator::send_recv(int to, std::span<const std::byte> out, int from, std::span<std::byte> in, int tag) {
    for (std::size_t offset = 0; offset == 0 || offset < std::max(out.size(), in.size()); offset += kPiece) {
        const bool sends = to != kNobody && (offset == 0 || offset < out.size());
        const bool receives = from != kNobody && (offset == 0 || offset < in.size());
        Request* arriving = receives ? &receive(kSlots - 1, from, tag, piece_at(in, offset)) : nullptr;
        Request* leaving = sends ? &send(kSlots - 2, to, tag, piece_at(out, offset)) : nullptr;
        if (arriving != nullptr) wait(*arriving, from);
        if (leaving != nullptr) wait(*leaving, to);
    }
}

std::vector<std::string> Communicator::all_gather(const std::string& text) {
    std::vector<std::string> texts;
    for (const auto& bytes : all_gather(std::span<const std::byte>(bytes_of(text)))) texts.push_back(text_of(bytes));
    return texts;
}

std::string Communicator::broadcast(int root, const std::string& text) {
    std::vector<std::byte> bytes = bytes_of(text);
    broadcast(root, bytes);
    return text_of(bytes);
}

int Communicator::local_cpus() const {
    return available_cpus();
}

void Communicator::nap(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

void Communicator::send_news(int /*to*/, const News& /*news*/) {}

void Communicator::collect_news() {}

Watch& Communicator::watch() {
    if (!watch_) watch_.emplace(rank(), size());
    return *watch_;
}

void Communicator::tell_all(const News& news) {
    for (int to = 0; to < size(); ++to) {
        if (to != rank()) send_news(to, news);
    }
}

void Communicator::begin_work() {
    if (&job() == this) speak_later();
}

void Communicator::speak_later() {
    next_word_ = Watch::Clock::now() +
                 std::chrono::duration_cast<Watch::Clock::duration>(std::chrono::duration<double>(timeout_s_ / 8));
}

void Communicator::still_working() {
    if (&job() != this) return job().still_working();
    if (timeout_s_ <= 0 || Watch::Clock::now() < next_word_) return;
    speak_later();
    tell_all({News::Kind::kWorks});
    collect_news();
}

void Communicator::work_aside(FunctionRef<void()> work) {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
    std::exception_ptr failure;
    begin_work();
    // Joined also where this thread cannot speak to the others: it uses what is above.
    std::jthread worker([&] {
        std::exception_ptr caught;
        try {
            work();
        } catch (...) {
            caught = std::current_exception();
        }
        const std::lock_guard lock(mutex);
        failure = caught;
        done = true;
        changed.notify_all();
    });
    const double timeout = job().timeout_s_;
    const std::chrono::duration<double> pause(timeout > 0 ? std::min(timeout / 16, 1.0) : 1.0);
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, pause, [&] { return done; })) {
        lock.unlock();
        still_working();
        lock.lock();
    }
    lock.unlock();
    worker.join();
    if (failure) std::rethrow_exception(failure);
}

Failures Communicator::announce_failure() {
    constexpr std::chrono::milliseconds kMoment{300};  // the others look around every 20 ms
    if (&job() != this) return job().announce_failure();
    if (failures_) return *failures_;
    failures_.emplace();
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const double time = std::chrono::duration<double>(now).count();
    watch().fail(rank(), time);
    // Telling may fail, too: the error that this rank fails of is the one to report.
    const auto attempt = [](FunctionRef<void()> act) {
        try {
            act();
        } catch (const Error& e) {
            log_to_file(e.what());
        }
    };
    for (int to = 0; to < size(); ++to) {
        if (to != rank()) attempt([&] { send_news(to, {News::Kind::kFails, -1, time}); });
    }
    for (const auto end = Watch::Clock::now() + kMoment; size() > 1 && Watch::Clock::now() < end;) {
        attempt([&] { collect_news(); });
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    failures_ = watch().failures();
    return *failures_;
}

void Communicator::tell_pace(double seconds) {
    const News news{News::Kind::kPace, -1, seconds};
    if (rank() == 0) {
        watch().hear(0, news, Watch::Clock::now());
    } else {
        send_news(0, news);
    }
}

std::vector<double> Communicator::take_paces() {
    collect_news();
    return watch().take_paces();
}

}  // namespace lockstep
