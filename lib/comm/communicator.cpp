#include "comm/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/patience.hpp"
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

void Communicator::announce_wait(int /*peer*/, bool /*first*/) {}

int Communicator::announced_wait(int /*rank*/) {
    return kSilent;
}

}  // namespace lockstep
