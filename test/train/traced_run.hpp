// A run that is watched from outside: which indices its data set is asked for, and which messages its communicator is
// given. What `plan` foretells is compared with this.
#pragma once

#include <map>
#include <mutex>
#include <ostream>
#include <vector>

#include "backend/cpu/cpu_backend.hpp"
#include "comm/thread_communicator.hpp"
#include "train/point.hpp"
#include "train/step_engine.hpp"

namespace lockstep::test {

class RecordingDataset final : public Dataset {
  public:
    explicit RecordingDataset(const Dataset& data) : data_(data) {}
    int64_t size() const override { return data_.size(); }
    SampleShape shape() const override { return data_.shape(); }
    int classes() const override { return data_.classes(); }
    int32_t label(int64_t index) const override { return data_.label(index); }
    std::string fingerprint() const override { return data_.fingerprint(); }
    int32_t read(int64_t index, std::span<float> pixels) const override {
        const std::scoped_lock lock(mutex_);
        read_.push_back(index);
        return data_.read(index, pixels);
    }
    const std::vector<int64_t>& indices_read() const { return read_; }

  private:
    const Dataset& data_;
    mutable std::mutex mutex_;
    mutable std::vector<int64_t> read_;
};

/// Passes everything on, and notes every message that is sent.
class CountingCommunicator final : public Communicator {
  public:
    struct Message {
        const std::byte* memory;
        int64_t bytes;
    };
    explicit CountingCommunicator(Communicator& inner) : inner_(inner) { set_timeout(300); }
    std::vector<Message> take_messages() { return std::exchange(messages_, {}); }

    int rank() const override { return inner_.rank(); }
    int size() const override { return inner_.size(); }
    int local_rank() const override { return inner_.local_rank(); }
    int local_size() const override { return inner_.local_size(); }
    Request& send(int slot, int to, int tag, std::span<const std::byte> bytes) override {
        messages_.push_back({bytes.data(), static_cast<int64_t>(bytes.size())});
        return inner_.send(slot, to, tag, bytes);
    }
    Request& receive(int slot, int from, int tag, std::span<std::byte> bytes) override {
        return inner_.receive(slot, from, tag, bytes);
    }
    void barrier() override { inner_.barrier(); }
    void broadcast(int root, std::vector<std::byte>& bytes) override { inner_.broadcast(root, bytes); }
    std::vector<std::vector<std::byte>> all_gather(std::span<const std::byte> bytes) override {
        return inner_.all_gather(bytes);
    }
    void all_reduce_native(std::span<float> values) override { inner_.all_reduce_native(values); }
    void abort(int code) override { inner_.abort(code); }

  private:
    Communicator& inner_;
    std::vector<Message> messages_;
};

struct TracedStep {
    int64_t rows = 0;
    int64_t bytes = 0;  // of gradients: without the 16 floats of the lead, in the messages that begin with one
    int64_t messages = 0;
    bool operator==(const TracedStep&) const = default;
    friend std::ostream& operator<<(std::ostream& out, const TracedStep& step) {
        return out << step.rows << " rows, " << step.bytes << " bytes, " << step.messages << " messages";
    }
};

struct TracedRank {
    std::vector<int64_t> indices;  // in the order in which they were read
    std::vector<TracedStep> steps;
    int64_t counted_bytes = 0;  // by the reducer itself, over all steps
    int64_t arena_bytes = 0;
    int64_t gradient_sums = 0;
    int64_t slots = 0;
};

/// Notes where the lead of each partial sum lies, so that messages that carry one are known.
class LeadFinder final : public StepWatcher {
  public:
    void batch_read(const Batch& batch) override { rows_ = batch.rows; }
    void partials_final(int64_t, int64_t, std::span<float* const> partial) override {
        for (const float* p : partial) leads_[reinterpret_cast<const std::byte*>(p)] = true;
    }
    void reduced(const Batch&, const float* total) override {
        leads_[reinterpret_cast<const std::byte*>(total)] = true;
    }

    TracedStep step_of(const std::vector<CountingCommunicator::Message>& messages) const {
        constexpr int64_t kLeadBytes = kLead * static_cast<int64_t>(sizeof(float));
        TracedStep step{rows_, 0, static_cast<int64_t>(messages.size())};
        for (const auto& message : messages)
            step.bytes += message.bytes - (leads_.contains(message.memory) ? kLeadBytes : 0);
        return step;
    }
    int64_t sums() const { return static_cast<int64_t>(leads_.size()); }

  private:
    int64_t rows_ = 0;
    std::map<const std::byte*, bool> leads_;
};

/// Trains all steps of `config`; `spoil` may change a rank's own config (twins that must be found out).
inline std::vector<TracedRank> traced_run(const Config& config, int world,
                                          const std::function<void(Config&, int rank)>& spoil = {}) {
    const DataSplits data = open_data(config);
    std::vector<TracedRank> ranks(static_cast<std::size_t>(world));
    run_thread_world(world, [&](Communicator& inner) {
        Config own = config;
        if (spoil) spoil(own, inner.rank());
        CountingCommunicator comm(inner);
        const RecordingDataset recorded(*data.train);
        const RunPlan plan = make_run_plan(own, recorded.size());
        const auto backend = make_cpu_backend({Isa::kAuto, 1});
        const TrainOptions options;
        StepEngine engine(comm, *backend, own, plan, recorded, options);
        LeadFinder leads;
        engine.watch(leads);
        engine.restore({});
        TracedRank& rank = ranks[static_cast<std::size_t>(comm.rank())];
        comm.take_messages();
        for (int64_t u = 0; u < plan.total_steps; ++u) {
            engine.step();
            rank.steps.push_back(leads.step_of(comm.take_messages()));
        }
        rank.indices = recorded.indices_read();
        rank.counted_bytes = engine.reducer().bytes_sent();
        rank.arena_bytes = engine.network().arena_bytes();
        rank.gradient_sums = leads.sums();
        rank.slots = static_cast<int64_t>(engine.update().slots().size());
    });
    return ranks;
}

}  // namespace lockstep::test
