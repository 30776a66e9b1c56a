// Launchers of the kernels that the emulation's own tests run: right ones, and ones with a bug that must be found.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace lockstep::planted {

/// y = a x.
void scale(float* y, const float* x, std::size_t n, float a, cudaStream_t stream);
/// The same in groups of four, with a scalar tail (right) or the last group rounded up (writes past the end).
void scale_by_four(float* y, std::size_t n, float a, bool with_tail, cudaStream_t stream);
/// Adds 1 at a distance, in elements, from the start of x.
void touch(float* x, std::size_t n, std::ptrdiff_t at, cudaStream_t stream);

/// Sums of 1,024 elements in a fixed order: 4 elements a thread, then warps by shuffles, then the 8 warps through
/// shared memory, with or without the barrier between.
void block_sums(float* sums, const float* x, std::size_t n, bool with_barrier, cudaStream_t stream);
/// One sum of all, in whatever order the threads come.
void atomic_sum(float* sum, const float* x, std::size_t n, cudaStream_t stream);
/// Threads beyond n leave before the barrier (bug) or after it.
void barrier_below_return(float* x, std::size_t n, bool return_first, cudaStream_t stream);
/// Half of the threads stand at another barrier than the rest.
void two_barriers(float* x, cudaStream_t stream);
/// Half of a warp's lanes call a shuffle that names all of them.
void half_a_warp_shuffles(float* x, cudaStream_t stream);
/// 33 elements written to a shared array of 32.
void past_shared(float* x, cudaStream_t stream);
/// Reverses x, at most 1,024 elements by at most 256 threads, in `shared` bytes of dynamic shared memory.
void reverse(float* x, std::size_t n, std::size_t shared, bool opt_in, cudaStream_t stream);
/// float4 loads from x + offset.
void sum_of_four(float* sum, const float* x, std::size_t offset, cudaStream_t stream);
/// x[0] = 7 / divisor, in integers.
void divide(int* x, int divisor, cudaStream_t stream);
/// A function that calls itself `depth` times, with 1 KiB on its stack each time.
void recurse(int* x, int depth, cudaStream_t stream);
/// A struct of numbers (right), and one into which a pointer was hidden.
void struct_of_numbers(float* x, cudaStream_t stream);
void struct_with_padding(float* x, cudaStream_t stream);
void struct_with_pointer(float* x, cudaStream_t stream);
/// out[t] for each of 32 lanes: results of a warp operation named by `what`.
enum class WarpOperation { kXor, kDown, kUp, kBroadcast, kBallot };
void warp_operation(int* out, WarpOperation what, cudaStream_t stream);
/// Writes for each thread the number that its built-in variables give it; the grid and block are three-dimensional.
void number_threads(int* out, dim3 grid, dim3 block, cudaStream_t stream);
/// A grid or block of any shape and dynamic shared memory, for launches that must be refused.
void launch_shape(dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream);
/// `rounds` barriers in blocks of 256 threads: what a barrier costs.
void many_barriers(float* x, std::size_t blocks, int rounds, cudaStream_t stream);

}  // namespace lockstep::planted
