// Shared memory of one block: static arrays one after another with a checked gap behind each, dynamic memory up to an
// inaccessible page. Filled with not-a-numbers for each block, as nothing promises zeros on a device.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::emulation {

class SharedMemory {
  public:
    SharedMemory();
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;

    /// Before the first block of a grid. `limit` bounds static and dynamic memory together.
    void begin_grid(std::size_t dynamic_bytes, std::size_t limit);
    void begin_block();
    /// Fails if an array was written past its end.
    void end_block();

    void* array(const void* identity, std::size_t bytes, std::size_t alignment);
    void* dynamic();

  private:
    struct Array {
        const void* identity;
        std::size_t offset, bytes;
    };
    void* add(const void* identity, std::size_t bytes, std::size_t alignment);

    char* memory_;
    char* dynamic_ = nullptr;
    std::size_t dynamic_bytes_ = 0, limit_ = 0;
    std::size_t static_bytes_ = 0;  // declared
    std::size_t static_end_ = 0;    // with the gaps
    std::vector<Array> arrays_;
};

}  // namespace lockstep::emulation
