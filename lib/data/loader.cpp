// A ring of depth + 1 batch buffers: one held by the caller of next(), the others being filled or full. A batch is cut
// into as many chunks of rows as there are readers; readers take chunks in order, batch after batch, so that the batch
// needed next is always the one worked on. One mutex guards the ring and is taken a few times per batch; rows are read
// outside it.
#include "data/loader.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {
namespace {

constexpr size_t kAlignment = 64;
constexpr std::chrono::milliseconds kWord{100};  // how often the caller of next() hears that it still waits

// The most samples that one step can give the local shards. In layout epoch a shard's part of a step varies by one or
// two, so this is a bound over all steps and not the count of the first.
int64_t most_local_rows(const ShardPlan& plan, ShardRange local) {
    const int64_t most_of_shard = (plan.batch() + plan.shards() - 1) / plan.shards() + 1;
    return std::min({plan.batch(), plan.samples(), most_of_shard * local.size()});
}

int buffer_count(const LoaderOptions& options) {
    return options.threads == 0 ? 1 : options.depth + 1;
}

std::shared_ptr<std::byte> memory_for(const LoaderOptions& options, size_t bytes) {
    if (options.memory) return options.memory(bytes);
    const auto free = [](std::byte* memory) { ::operator delete (memory, std::align_val_t{kAlignment}); };
    std::shared_ptr<std::byte> memory(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment})),
                                      free);
    std::fill_n(memory.get(), bytes, std::byte{0});
    return memory;
}

// `count` values in memory that the caller of the loader may choose.
template <class T>
class Values {
  public:
    Values(const LoaderOptions& options, int64_t count)
        : memory_(memory_for(options, static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(T))) {}
    T* data() const { return reinterpret_cast<T*>(memory_.get()); }
    T& operator[](size_t i) const { return data()[i]; }

  private:
    std::shared_ptr<std::byte> memory_;
};

// One buffer of the ring with what it stands for.
struct Slot {
    Batch batch;
    int64_t number = -1;  // of the batch it holds or is being filled with, from 0
    Values<float> pixels;
    Values<int32_t> labels;
    Values<int64_t> positions;
    std::vector<int64_t> indices;
    std::optional<EpochOrder> order;  // of batch.at.epoch
    int chunks_left = 0;              // being filled while > 0
    std::exception_ptr failure;       // of the first chunk, in row order, that could not be read
    int failed_chunk = 0;

    static int64_t bytes(int64_t rows, int64_t elements, int shards) {
        constexpr auto kEachRow = static_cast<int64_t>(sizeof(int32_t) + 2 * sizeof(int64_t));
        return rows * (elements * static_cast<int64_t>(sizeof(float)) + kEachRow) +
               shards * static_cast<int64_t>(sizeof(int64_t));
    }
    Slot(const LoaderOptions& options, int64_t rows, int64_t elements, int shards)
        : pixels(options, rows * elements),
          labels(options, rows),
          positions(options, rows),
          indices(static_cast<size_t>(rows)) {
        batch.pixels = pixels.data();
        batch.labels = labels.data();
        batch.positions = positions.data();
        batch.indices = indices.data();
        batch.shard_sizes.reserve(static_cast<size_t>(shards));
    }
};

}  // namespace

struct Loader::State {
    const Dataset& data;
    const ShardPlan plan;
    const LoaderOptions options;
    const int64_t elements;
    const int64_t total;  // batches from first_update to last_update
    const int chunks;     // of each batch
    std::optional<Augmentation> augmentation;

    std::vector<std::unique_ptr<Slot>> ring;
    std::atomic<bool> stopping{false};  // also looked at between rows, so that stopping waits for one row at most

    std::mutex mutex;  // guards what follows, and every slot's number, chunks_left and failure
    std::condition_variable work;
    std::condition_variable ready;
    int64_t next_batch = 0;  // whose chunk number next_chunk is the next to be taken
    int next_chunk = 0;
    int64_t released = 0;  // batches that the caller has done with
    int64_t given = 0;     // batches that the caller was given

    std::vector<std::thread> readers;

    State(const Dataset& data_, const ShardPlan& plan_, const LoaderOptions& options_);
    ~State();
    void start();

    Slot& slot_of(int64_t batch) { return *ring[static_cast<size_t>(batch % static_cast<int64_t>(ring.size()))]; }
    void begin(int64_t batch);
    void read_rows(Slot& slot, IndexRange rows) const;
    void read_chunk(Slot& slot, int chunk);
    void read_ahead();
};

Loader::State::State(const Dataset& data_, const ShardPlan& plan_, const LoaderOptions& options_)
    : data(data_),
      plan(plan_),
      options(options_),
      elements(data_.shape().elements()),
      total(std::max<int64_t>(0, options_.last_update - options_.first_update + 1)),
      chunks(std::max(1, options_.threads)) {
    if (data.size() != plan.samples()) {
        fail(ErrorKind::kRuntime, "the data set has {} samples, the plan of batches {}", data.size(), plan.samples());
    }
    if (options.local.begin < 0 || options.local.end < options.local.begin || options.local.end > plan.shards()) {
        fail(ErrorKind::kRuntime, "shards [{}, {}) are not among the {} of the plan", options.local.begin,
             options.local.end, plan.shards());
    }
    if (options.threads < 0 || options.depth < 1) {
        fail(ErrorKind::kUsage, "the loader needs 0 or more threads and a depth of at least 1, not {} and {}",
             options.threads, options.depth);
    }
    if (options.augmentation.any()) augmentation.emplace(options.augmentation, options.seed, data.shape());
    const int64_t rows = most_local_rows(plan, options.local);
    if (rows > INT32_MAX) fail(ErrorKind::kUsage, "{} samples of a batch on one rank: at most {} fit", rows, INT32_MAX);
    for (int i = 0; i < buffer_count(options); ++i)
        ring.push_back(std::make_unique<Slot>(options, rows, elements, plan.shards()));
}

// Apart from the constructor, so that threads already running are stopped and joined if one cannot start.
void Loader::State::start() {
    readers.reserve(static_cast<size_t>(options.threads));
    for (int i = 0; i < options.threads; ++i) {
        try {
            readers.emplace_back([this] { read_ahead(); });
        } catch (const std::system_error& error) {
            fail(ErrorKind::kRuntime, "cannot start reader {} of {}: {}; use fewer or raise `ulimit -u`", i + 1,
                 options.threads, error.what());
        }
    }
}

Loader::State::~State() {
    {
        const std::lock_guard lock(mutex);
        stopping = true;
    }
    work.notify_all();
    for (std::thread& reader : readers) reader.join();
}

// Fixes what batch number `batch` is. Called with the mutex held, by whoever takes its first chunk.
void Loader::State::begin(int64_t number) {
    Slot& slot = slot_of(number);
    const StepPosition at = step_position(options.first_update + number, plan.steps_per_epoch());
    if (!slot.order || slot.batch.at.epoch != at.epoch) {
        slot.order.emplace(options.seed, at.epoch, plan.samples(), options.shuffle, options.block);
    }
    slot.number = number;
    slot.batch.at = at;
    slot.batch.global_size = plan.batch_size(at.step);
    plan.shard_sizes(at.step, slot.batch.shard_sizes);
    const auto sizes = slot.batch.shard_sizes.begin();
    slot.batch.rows =
        static_cast<int>(std::accumulate(sizes + options.local.begin, sizes + options.local.end, int64_t{0}));
    slot.chunks_left = chunks;
}

void Loader::State::read_rows(Slot& slot, IndexRange rows) const {
    int64_t row = 0;
    for (int v = options.local.begin; v < options.local.end && row < rows.end; ++v) {
        const PositionRange range = plan.shard(slot.batch.at.step, v);
        for (int64_t i = std::max<int64_t>(0, rows.begin - row); i < std::min(range.count, rows.end - row); ++i) {
            if (stopping.load(std::memory_order_relaxed)) return;
            const size_t at = static_cast<size_t>(row + i);
            slot.positions[at] = range.first + i;
            slot.indices[at] = slot.order->index(range.first + i);
            const std::span<float> pixels(slot.pixels.data() + static_cast<int64_t>(at) * elements,
                                          static_cast<size_t>(elements));
            try {
                slot.labels[at] = augmentation ? augmentation->read(data, slot.indices[at], slot.batch.at.epoch,
                                                                    slot.positions[at], pixels)
                                               : data.read(slot.indices[at], pixels);
            } catch (const Error& error) {
                const char* const advice =
                    error.kind() == ErrorKind::kData ? "; lockstep inspect --deep names all that are damaged" : "";
                fail(error.kind(), "{} (sample {}, at position {} of epoch {}){}", error.what(), slot.indices[at],
                     slot.positions[at], slot.batch.at.epoch, advice);
            }
        }
        row += range.count;
    }
}

// Reads a chunk outside the mutex and books it as done.
void Loader::State::read_chunk(Slot& slot, int chunk) {
    std::exception_ptr failure;
    try {
        read_rows(slot, part_of(slot.batch.rows, chunk, chunks));
    } catch (...) {
        failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    if (failure && (!slot.failure || chunk < slot.failed_chunk)) {
        slot.failure = std::move(failure);
        slot.failed_chunk = chunk;
    }
    if (--slot.chunks_left == 0) ready.notify_one();
}

void Loader::State::read_ahead() {
    std::unique_lock lock(mutex);
    for (;;) {
        work.wait(lock, [&] {
            return stopping || next_batch == total || next_batch < released + static_cast<int64_t>(ring.size());
        });
        if (stopping || next_batch == total) return;
        const int64_t number = next_batch;
        const int chunk = next_chunk;
        if (chunk == 0) begin(number);
        if (++next_chunk == chunks) {
            next_chunk = 0;
            ++next_batch;
        }
        lock.unlock();
        read_chunk(slot_of(number), chunk);
        lock.lock();
    }
}

Loader::Loader(const Dataset& data, const ShardPlan& plan, const LoaderOptions& options)
    : state_(std::make_unique<State>(data, plan, options)) {
    state_->start();
}

Loader::~Loader() = default;

const Batch& Loader::next(FunctionRef<void()> waiting) {
    State& state = *state_;
    waiting();
    std::unique_lock lock(state.mutex);
    if (state.given == state.total) {
        fail(ErrorKind::kRuntime, "the loader was asked for a batch after the last update, {}",
             state.options.last_update);
    }
    Slot& slot = state.slot_of(state.given);
    state.released = state.given;
    if (state.readers.empty()) {
        state.begin(state.given);
        lock.unlock();
        state.read_chunk(slot, 0);
        lock.lock();
    } else {
        state.work.notify_all();
        const auto there = [&] { return slot.number == state.given && slot.chunks_left == 0; };
        while (!state.ready.wait_for(lock, kWord, there)) {
            lock.unlock();
            waiting();
            lock.lock();
        }
    }
    if (slot.failure) std::rethrow_exception(slot.failure);
    ++state.given;
    return slot.batch;
}

const Batch* Loader::ahead() {
    State& state = *state_;
    const std::lock_guard lock(state.mutex);
    if (state.readers.empty() || state.given == state.total) return nullptr;
    const Slot& slot = state.slot_of(state.given);
    const bool there = slot.number == state.given && slot.chunks_left == 0 && !slot.failure;
    return there ? &slot.batch : nullptr;
}

int64_t loader_bytes(const ShardPlan& plan, const LoaderOptions& options, int64_t elements) {
    return buffer_count(options) * Slot::bytes(most_local_rows(plan, options.local), elements, plan.shards());
}

}  // namespace lockstep
