#include "cuda/comm/nccl_handle.hpp"

#include <chrono>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

#include "comm/patience.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "cuda/access.h"

namespace lockstep {
namespace {

// At the end, where the job has no deadline.
constexpr double kFinalizeS = 60;

std::string text_of(int code) {
    return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
}

ncclUniqueId meeting_place(Communicator& host) {
    ncclUniqueId id{};
    std::vector<std::byte> bytes;
    if (host.rank() == 0) {
        nccl_check(ncclGetUniqueId(&id), "ncclGetUniqueId");
        const auto view = std::as_bytes(std::span(&id, 1));
        bytes.assign(view.begin(), view.end());
    }
    host.broadcast(0, bytes);
    if (bytes.size() != sizeof id) fail(ErrorKind::kRuntime, "NCCL's unique id has {} bytes here", bytes.size());
    std::memcpy(&id, bytes.data(), sizeof id);
    return id;
}

}  // namespace

std::string nccl_version() {
    int code = 0;
    nccl_check(ncclGetVersion(&code), "ncclGetVersion");
    return text_of(code);
}

void nccl_check(ncclResult_t result, const char* call, ncclComm_t comm, std::source_location where) {
    if (!nccl_failed(result)) return;
    const char* const last = ncclGetLastError(comm);
    const std::string reason = last != nullptr ? last : "";
    const std::string message =
        fmt::format("{} at {}: {}{}{} (NCCL {}; NCCL_DEBUG=INFO tells more)", call, place_text(where),
                    ncclGetErrorString(result), reason.empty() ? "" : ": ", reason, text_of(NCCL_VERSION_CODE));
    // NCCL has no code of its own for it, only CUDA's words.
    if (result == ncclUnhandledCudaError && reason.find("out of memory") != std::string::npos) {
        out_of_device_memory(message);
    }
    throw Error(ErrorKind::kRuntime, message);
}

NcclHandle::NcclHandle(Communicator& host) : host_(host), unwinding_(std::uncaught_exceptions()) {
    const ncclUniqueId id = meeting_place(host);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
        nccl_check(ncclCommInitRankConfig(&comm_, host.size(), id, host.rank(), &config), "ncclCommInitRankConfig");
        await();
    } catch (...) {
        give_up();
        throw;
    }
}

NcclHandle::~NcclHandle() {
    if (comm_ == nullptr) return;
    try {
        if (std::uncaught_exceptions() == unwinding_ && finalize()) {
            ncclCommDestroy(comm_);
            return;
        }
    } catch (const std::exception& e) {
        log_to_file(e.what());
    }
    give_up();
}

bool NcclHandle::finalize() {
    nccl_check(ncclCommFinalize(comm_), "ncclCommFinalize", comm_);
    const double timeout = host_.job().timeout();
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout > 0 ? timeout : kFinalizeS);
    for (;;) {
        ncclResult_t state = ncclSuccess;
        nccl_check(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
        nccl_check(state, "ncclCommFinalize", comm_);
        if (state == ncclSuccess) return true;
        if (std::chrono::steady_clock::now() >= end) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
}

ncclComm_t NcclHandle::get() const {
    if (comm_ == nullptr) fail(ErrorKind::kRuntime, "the exchange between GPUs was given up after an error");
    return comm_;
}

void NcclHandle::await() {
    Patience patience(host_);
    for (;;) {
        ncclResult_t state = ncclSuccess;
        nccl_check(ncclCommGetAsyncError(get(), &state), "ncclCommGetAsyncError", comm_);
        nccl_check(state, "an operation of NCCL", comm_);
        if (state == ncclSuccess) return;
        patience.pause(Communicator::kNobody);
    }
}

void NcclHandle::check_async(const char* what) const {
    ncclResult_t state = ncclSuccess;
    nccl_check(ncclCommGetAsyncError(get(), &state), "ncclCommGetAsyncError", comm_);
    nccl_check(state, what, comm_);
}

void NcclHandle::give_up() noexcept {
    if (comm_ == nullptr) return;
    ncclCommAbort(comm_);  // it fails where the device has failed, and the first error is the one to report
    comm_ = nullptr;
}

}  // namespace lockstep
