#include "cuda/backend/host_copies.hpp"

#include <algorithm>
#include <cstring>

#include "cuda/access.h"

namespace lockstep {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;

bool pinned(const void* host) {
    cudaPointerAttributes attributes{};
    const cudaError_t status = cudaPointerGetAttributes(&attributes, host);
    if (status == cudaErrorInvalidValue) {  // how some drivers say that they have never heard of it
        cudaGetLastError();
        return false;
    }
    cuda_check(status, "cudaPointerGetAttributes(&attributes, host)");
    return attributes.type == cudaMemoryTypeHost;
}

std::size_t piece_bytes(std::size_t piece, std::size_t bytes) {
    return std::min(kChunk, bytes - piece * kChunk);
}

std::size_t pieces(std::size_t bytes) {
    return (bytes + kChunk - 1) / kChunk;
}

}  // namespace

HostCopies::Chunk& HostCopies::chunk(std::size_t piece) {
    Chunk& chunk = chunks_[piece % chunks_.size()];
    if (chunk.memory == nullptr) chunk.memory = context_.allocate_host(kChunk);
    return chunk;
}

void HostCopies::upload(cudaStream_t stream, const void* host, void* device, std::size_t bytes) {
    if (bytes == 0) return;
    if (pinned(host)) {
        CUDA_CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
        return;
    }
    for (std::size_t piece = 0; piece < pieces(bytes); ++piece) {
        Chunk& via = chunk(piece);
        if (piece >= chunks_.size()) via.copied.wait();
        const std::size_t at = piece * kChunk, count = piece_bytes(piece, bytes);
        std::memcpy(via.memory->data(), static_cast<const std::byte*>(host) + at, count);
        CUDA_CHECK(cudaMemcpyAsync(static_cast<std::byte*>(device) + at, via.memory->data(), count,
                                   cudaMemcpyHostToDevice, stream));
        via.copied.record(stream);
    }
    chunk(pieces(bytes) - 1).copied.wait();  // done on return, for every stream; the pieces before it are done too
}

void HostCopies::download(cudaStream_t stream, const void* device, void* host, std::size_t bytes) {
    if (bytes == 0) return;
    if (pinned(host)) {
        CUDA_CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
        return;
    }
    const auto fetch = [&](std::size_t piece) {
        Chunk& via = chunk(piece);
        CUDA_CHECK(cudaMemcpyAsync(via.memory->data(), static_cast<const std::byte*>(device) + piece * kChunk,
                                   piece_bytes(piece, bytes), cudaMemcpyDeviceToHost, stream));
        via.copied.record(stream);
    };
    fetch(0);
    for (std::size_t piece = 0; piece < pieces(bytes); ++piece) {
        if (piece + 1 < pieces(bytes)) fetch(piece + 1);  // the other chunk, emptied a turn ago
        chunk(piece).copied.wait();
        std::memcpy(static_cast<std::byte*>(host) + piece * kChunk, chunk(piece).memory->data(),
                    piece_bytes(piece, bytes));
    }
}

}  // namespace lockstep
