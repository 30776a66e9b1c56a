// What every communicator must do, whatever carries its messages. Run by all ranks; "" or what is wrong on this one
// (Catch2's assertions are not for threads).
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace lockstep::test {

inline std::string fault_in_collectives(Communicator& comm) {
    const int rank = comm.rank();
    const int size = comm.size();
    if (comm.local_rank() < 0 || comm.local_rank() >= comm.local_size() || comm.local_size() > size)
        return "local rank";
    comm.barrier();
    for (int root = 0; root < size; ++root) {
        const std::string text = "from " + std::to_string(root) + std::string(static_cast<size_t>(root) * 1000, 'x');
        if (comm.broadcast(root, rank == root ? text : "something else") != text) return "broadcast";
        if (!comm.broadcast(root, rank == root ? std::string() : "x").empty()) return "broadcast of nothing";
    }
    const auto said = [](int r) { return std::string(static_cast<size_t>(r % 3) * 70000, 'a') + std::to_string(r); };
    const std::vector<std::string> all = comm.all_gather(said(rank));
    for (int r = 0; r < size; ++r) {
        if (static_cast<int>(all.size()) != size || all[static_cast<size_t>(r)] != said(r)) return "all_gather";
    }
    for (const int length : {0, 1, 5, 1000}) {
        std::vector<float> values;
        for (int i = 0; i < length; ++i) values.push_back(static_cast<float>(rank + i));  // sums are exact in any order
        comm.all_reduce_native(values);
        for (int i = 0; i < length; ++i) {
            const float expected = static_cast<float>(size * (size - 1) / 2 + size * i);
            if (values[static_cast<size_t>(i)] != expected) return "all_reduce_native";
        }
    }
    return "";
}

/// Messages between two ranks with one tag arrive in order, tags do not mix, and requests may be tested in any order.
inline std::string fault_in_messages(Communicator& comm) {
    const int size = comm.size();
    if (size == 1) return "";
    const int to = (comm.rank() + 1) % size;
    const int from = (comm.rank() + size - 1) % size;
    constexpr int kMessages = 20;
    std::vector<int> out(2 * kMessages);
    std::vector<int> in(2 * kMessages, -1);
    const auto bytes = [](std::vector<int>& values, int i) { return std::span(&values[static_cast<size_t>(i)], 1); };
    std::vector<Request*> receives;
    std::vector<Request*> sends;
    for (int i = 0; i < 2 * kMessages; ++i) {
        receives.push_back(&comm.receive(i, from, 2000 + i / kMessages, std::as_writable_bytes(bytes(in, i))));
    }
    for (int k = 0; k < 2 * kMessages; ++k) {
        const int i = k % 2 == 0 ? k / 2 : kMessages + k / 2;  // the two tags in turn
        out[static_cast<size_t>(i)] = 100 * comm.rank() + i;
        sends.push_back(&comm.send(100 + i, to, 2000 + i / kMessages, std::as_bytes(bytes(out, i))));
    }
    for (auto receive = receives.rbegin(); receive != receives.rend(); ++receive) comm.wait(**receive, from);
    for (Request* send : sends) comm.wait(*send, to);
    for (int i = 0; i < 2 * kMessages; ++i) {
        if (in[static_cast<size_t>(i)] != 100 * from + i) return "message " + std::to_string(i) + " is another one";
    }
    std::vector<std::byte> large(3'000'001, std::byte(comm.rank()));
    std::vector<std::byte> received(large.size());
    comm.send_recv(to, large, from, received);
    const bool right = std::all_of(received.begin(), received.end(), [&](std::byte b) { return b == std::byte(from); });
    return right ? "" : "send_recv of 3 MB";
}

}  // namespace lockstep::test
