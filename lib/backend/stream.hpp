// A queue of work of a device: on the CPU one thread or the whole pool, on a GPU a CUDA stream. Operations are run on
// it.
#pragma once

namespace lockstep {

class Stream {
  public:
    virtual ~Stream() = default;
    int index() const { return index_; }  // 0 … Backend::streams()-1: picks the caller's per-stream buffers

  protected:
    explicit Stream(int index) : index_(index) {}

  private:
    int index_;
};

}  // namespace lockstep
