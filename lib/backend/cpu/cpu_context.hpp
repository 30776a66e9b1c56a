// What every planned operation of one CPU backend shares: the instruction set in force, the threads, and scratch
// memory.
//
// The instruction set belongs to a backend and never to the process: ranks that run as threads of one process may each
// have another one, so kernels are picked from a table of function pointers when an operation is planned.
#pragma once

#include <cstddef>
#include <vector>

#include "backend/backend.hpp"
#include "backend/cpu/cpu_backend.hpp"
#include "backend/cpu/cpu_memory.hpp"
#include "core/function_ref.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

class CpuContext {
  public:
    /// `isa` is never kAuto: make_cpu_backend has chosen.
    CpuContext(Isa isa, int threads) : isa_(isa), pool_(threads), workspaces_(static_cast<std::size_t>(pool_.size())) {}

    Isa isa() const { return isa_; }
    ThreadPool& pool() { return pool_; }
    int threads() const { return pool_.size(); }

    /// Scratch of one thread, 64-byte aligned, shared by all operations: nothing in it outlives the operation that
    /// wrote it. Thread `part` of the main stream, and the single-thread stream of index `part`, own workspace `part`
    /// (CpuStream::workspace_index). Ask for it in every run, not at planning: a later plan may move it.
    std::byte* workspace(int index) const { return workspaces_[static_cast<std::size_t>(index)].data(); }
    float* float_workspace(int index) const { return reinterpret_cast<float*>(workspace(index)); }

    /// Makes every workspace at least this large. At planning only: no operation may be under way.
    void reserve_workspace(std::size_t bytes) {
        for (CpuMemory& memory : workspaces_) {
            if (memory.bytes() < bytes) memory = CpuMemory(bytes);
        }
    }

  private:
    Isa isa_;
    ThreadPool pool_;
    std::vector<CpuMemory> workspaces_;
};

/// The main stream runs on the whole pool; the others are one thread each, the one that runs the caller.
class CpuStream : public Stream {
  public:
    /// `pool` null: a single-thread stream.
    CpuStream(int index, ThreadPool* pool) : Stream(index), pool_(pool) {}

    int parts() const { return pool_ != nullptr ? pool_->size() : 1; }
    /// body(part, parts) for each part at once, and waits; a plain call body(0, 1) on a single-thread stream.
    void parallel(FunctionRef<void(int part, int parts)> body) {
        if (pool_ != nullptr) {
            pool_->run(body);
        } else {
            body(0, 1);
        }
    }
    /// Which workspace the given part of a parallel call owns.
    int workspace_index(int part) const { return index() + part; }

  private:
    ThreadPool* pool_;
};

/// Every Stream that a CPU backend is given is its own.
inline CpuStream& cpu_stream(Stream& stream) {
    return static_cast<CpuStream&>(stream);
}

}  // namespace lockstep
