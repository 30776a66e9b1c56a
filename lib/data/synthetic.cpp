// How a sample comes about, in integers alone, so that every machine agrees and no order of additions is to be stated:
//
//   s[e] = b0 + b1 + b2 + b3 - 510, the four bytes of Philox(seed, kSyntheticSample; element e, position = index):
//   nearly
//          normal, mean 0, standard deviation 147.8;
//   label = the class k with the largest sum over the elements seen of w[k][e] s[e] (the first of equals), where
//   w[k][e] is one
//          of -15, -13 … 15, from Philox(seed, kSyntheticTeacher; element e, position = k);
//   s[e] += w[label][e], a margin: without it an mlp needs 20,000 samples to learn what the teacher does, with it
//   1,000; pixel = (s[e] / 148 - mean) / std, three fp32 operations.
//
// The teacher sees every element of small samples, and every stride-th of large ones, at most 1,024.
#include "data/synthetic.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/philox.hpp"
#include "core/thread_pool.hpp"
#include "data/normalisation.hpp"

namespace lockstep {
namespace {

constexpr int kByteSumMean = 510;      // of four bytes: 4 x 127.5
constexpr float kByteSumStd = 148.0f;  // sqrt(4 (256^2 - 1) / 12) = 147.8
constexpr int kLargestWeight = 15;
constexpr int kLargest = kByteSumMean + kLargestWeight;  // |s| at most
constexpr int64_t kMostSeen = 1024;

int16_t byte_sum(uint32_t word) {
    const uint32_t pairs = (word & 0x00ff00ff) + (word >> 8 & 0x00ff00ff);
    return static_cast<int16_t>(static_cast<int>((pairs & 0xffff) + (pairs >> 16)) - kByteSumMean);
}

class Teacher {
  public:
    Teacher(uint64_t seed, int classes, int64_t elements)
        : classes_(classes),
          stride_((elements + kMostSeen - 1) / kMostSeen),
          seen_((elements + stride_ - 1) / stride_) {
        const RandomStream random(seed, Purpose::kSyntheticTeacher);
        weights_.resize(static_cast<size_t>(classes_ * seen_));
        size_t i = 0;
        for (int k = 0; k < classes_; ++k) {
            for (int64_t j = 0; j < seen_; ++j, ++i) {
                const uint32_t bits = random.bits(static_cast<uint64_t>(j), static_cast<uint64_t>(k));
                weights_[i] = static_cast<int16_t>(2 * static_cast<int>(bits >> 28) - kLargestWeight);
            }
        }
    }

    int64_t stride() const { return stride_; }  // it sees elements 0, stride, 2 stride …
    int64_t seen() const { return seen_; }
    const int16_t* weights(int32_t label) const { return weights_.data() + label * seen_; }

    int32_t label(const int16_t* values) const {
        int32_t best = 0, best_score = score(0, values);
        for (int32_t k = 1; k < classes_; ++k) {
            const int32_t here = score(k, values);
            if (here > best_score) {
                best = k;
                best_score = here;
            }
        }
        return best;
    }

  private:
    // At most 1,024 x 510 x 15 = 7.8 million: exact in 32 bits.
    int32_t score(int32_t k, const int16_t* values) const {
        const int16_t* w = weights(k);
        int32_t sum = 0;
        for (int64_t j = 0; j < seen_; ++j) sum += int32_t{w[j]} * int32_t{values[j]};
        return sum;
    }

    int64_t classes_, stride_, seen_;
    std::vector<int16_t> weights_;  // [classes][seen]
};

/// Sample `index` of an endless sequence, as integers.
class Source {
  public:
    Source(uint64_t seed, int classes, int64_t elements)
        : elements_(elements), random_(seed, Purpose::kSyntheticSample), teacher_(seed, classes, elements) {}

    int32_t label(int64_t index) const {
        Buffer seen;
        return look(index, seen);
    }

    /// Calls sink(first element, values) piece by piece, and returns the label.
    template <class Sink>
    int32_t make(int64_t index, const Sink& sink) const {
        Buffer values;
        const int32_t label = look(index, values);
        const int16_t* push = teacher_.weights(label);
        if (teacher_.stride() == 1) {
            for (int64_t e = 0; e < elements_; ++e)
                values[static_cast<size_t>(e)] = static_cast<int16_t>(values[static_cast<size_t>(e)] + push[e]);
            sink(int64_t{0}, std::span<const int16_t>(values.data(), static_cast<size_t>(elements_)));
            return label;
        }
        for (int64_t first = 0; first < elements_; first += kMostSeen) {
            const std::span<int16_t> piece(values.data(), static_cast<size_t>(std::min(kMostSeen, elements_ - first)));
            draw(index, first, piece);
            const int64_t stride = teacher_.stride();
            for (int64_t j = (first + stride - 1) / stride; j * stride < first + static_cast<int64_t>(piece.size());
                 ++j) {
                int16_t& value = piece[static_cast<size_t>(j * stride - first)];
                value = static_cast<int16_t>(value + push[j]);
            }
            sink(first, std::span<const int16_t>(piece));
        }
        return label;
    }

  private:
    using Buffer = std::array<int16_t, kMostSeen>;

    // Elements [first, first + out.size()); first is a multiple of 4.
    void draw(int64_t index, int64_t first, std::span<int16_t> out) const {
        const auto position = static_cast<uint64_t>(index);
        auto block = static_cast<uint64_t>(first) / 4;
        size_t i = 0;
        for (; i + 4 <= out.size(); i += 4, ++block) {
            const PhiloxCounter words = random_.block(block, position);
            for (size_t lane = 0; lane < 4; ++lane) out[i + lane] = byte_sum(words[lane]);
        }
        if (i == out.size()) return;
        const PhiloxCounter words = random_.block(block, position);
        for (size_t lane = 0; i < out.size(); ++i, ++lane) out[i] = byte_sum(words[lane]);
    }

    int32_t look(int64_t index, Buffer& seen) const {
        const int64_t stride = teacher_.stride();
        if (stride == 1) {
            draw(index, 0, std::span(seen.data(), static_cast<size_t>(elements_)));
        } else {
            for (int64_t j = 0; j < teacher_.seen(); ++j) {
                const uint32_t word = random_.bits(static_cast<uint64_t>(j * stride), static_cast<uint64_t>(index));
                seen[static_cast<size_t>(j)] = byte_sum(word);
            }
        }
        return teacher_.label(seen.data());
    }

    int64_t elements_;
    RandomStream random_;
    Teacher teacher_;
};

// Whether a split is made once and kept, or each sample as it is read.
bool is_kept(int64_t samples, int64_t elements, int64_t memory) {
    return samples <= memory / (static_cast<int64_t>(sizeof(int16_t)) * elements);
}

class SyntheticDataset final : public Dataset {
  public:
    SyntheticDataset(std::shared_ptr<const Source> source, int64_t first, int64_t samples, SampleShape shape,
                     int classes, const Config& config, int64_t memory)
        : source_(std::move(source)), first_(first), samples_(samples), shape_(shape), classes_(classes) {
        for (const ChannelScale& scale : channel_scales(config.data, shape.channels)) {
            Table& table = tables_.emplace_back();
            for (int s = -kLargest; s <= kLargest; ++s) {
                table[static_cast<size_t>(s + kLargest)] = scale(static_cast<float>(s) / kByteSumStd);
            }
        }
        fingerprint_ = fmt::format("synthetic seed {} samples {} to {} shape {}x{}x{} classes {}", config.seed, first,
                                   first + samples, shape.height, shape.width, shape.channels, classes);
        if (is_kept(samples, shape.elements(), memory)) make_all();
    }

    int64_t size() const override { return samples_; }
    SampleShape shape() const override { return shape_; }
    int classes() const override { return classes_; }
    std::string fingerprint() const override { return fingerprint_; }

    int32_t label(int64_t index) const override {
        check(index);
        return labels_.empty() ? source_->label(first_ + index) : labels_[static_cast<size_t>(index)];
    }

    int32_t read(int64_t index, std::span<float> pixels) const override {
        check(index);
        const int64_t count = shape_.elements();
        if (static_cast<int64_t>(pixels.size()) != count) {
            fail(ErrorKind::kRuntime, "{} values were asked of a sample of {}", pixels.size(), count);
        }
        if (labels_.empty()) {
            return source_->make(first_ + index, [&](int64_t first, std::span<const int16_t> values) {
                scale(values, first, pixels.data() + first);
            });
        }
        scale(std::span(values_).subspan(static_cast<size_t>(index * count), static_cast<size_t>(count)), 0,
              pixels.data());
        return labels_[static_cast<size_t>(index)];
    }

  private:
    using Table = std::array<float, 2 * kLargest + 1>;

    void check(int64_t index) const {
        if (index < 0 || index >= samples_)
            fail(ErrorKind::kRuntime, "sample {} was asked of a data set of {}", index, samples_);
    }

    void scale(std::span<const int16_t> values, int64_t first, float* out) const {
        if (tables_.size() == 1) {
            const float* zero = tables_[0].data() + kLargest;
            for (size_t i = 0; i < values.size(); ++i) out[i] = zero[values[i]];
            return;
        }
        size_t channel = static_cast<size_t>(first) % tables_.size();
        for (size_t i = 0; i < values.size(); ++i) {
            out[i] = tables_[channel][static_cast<size_t>(values[i] + kLargest)];
            channel = channel + 1 == tables_.size() ? 0 : channel + 1;
        }
    }

    void make_all() {
        const int64_t count = shape_.elements();
        labels_.resize(static_cast<size_t>(samples_));
        values_.resize(static_cast<size_t>(samples_ * count));
        constexpr int64_t kWorthAThread = 2'000'000;  // elements: about 5 ms
        const int64_t useful = 1 + samples_ * count / kWorthAThread;
        ThreadPool pool(static_cast<int>(std::min<int64_t>({useful, available_cpus(), 8})));
        pool.run([&](int part, int parts) {
            const IndexRange range = part_of(samples_, part, parts);
            for (int64_t i = range.begin; i < range.end; ++i) {
                int16_t* to = values_.data() + i * count;
                labels_[static_cast<size_t>(i)] =
                    source_->make(first_ + i, [&](int64_t first, std::span<const int16_t> values) {
                        std::copy(values.begin(), values.end(), to + first);
                    });
            }
        });
    }

    std::shared_ptr<const Source> source_;
    int64_t first_, samples_;
    SampleShape shape_;
    int classes_;
    std::vector<Table> tables_;    // one, or one per channel
    std::vector<int16_t> values_;  // [samples][elements], where they are kept
    std::vector<int32_t> labels_;  // empty: made on demand
    std::string fingerprint_;
};

SampleShape synthetic_shape(const std::vector<int64_t>& wanted) {
    if (wanted.empty()) return {28, 28, 1};
    constexpr int64_t kMost = 1 << 15;
    const bool good =
        wanted.size() == 3 && std::all_of(wanted.begin(), wanted.end(), [](int64_t e) { return e >= 1 && e <= kMost; });
    if (!good) {
        fail(ErrorKind::kUsage,
             "data.shape: synthetic data need [height, width, channels], each from 1 to {}, got [{}]", kMost,
             fmt::join(wanted, ", "));
    }
    return {static_cast<int>(wanted[0]), static_cast<int>(wanted[1]), static_cast<int>(wanted[2])};
}

}  // namespace

DataFacts synthetic_facts(const Config& config, int64_t memory) {
    const Config::Data& data = config.data;
    if (data.samples < 1) fail(ErrorKind::kUsage, "data.samples = {}: at least 1 is needed", data.samples);
    if (data.test_samples < 0)
        fail(ErrorKind::kUsage, "data.test_samples = {}: 0 or more are needed", data.test_samples);
    constexpr int64_t kMostClasses = 1 << 16;
    if (data.classes < 2 || data.classes > kMostClasses) {
        fail(ErrorKind::kUsage, "data.classes = {}: from 2 to {} is needed", data.classes, kMostClasses);
    }
    DataFacts facts{data.samples, data.test_samples, synthetic_shape(data.shape), static_cast<int>(data.classes), 0};
    const int64_t elements = facts.shape.elements();
    for (const int64_t samples : {data.samples, data.test_samples}) {
        const auto each = static_cast<int64_t>(sizeof(int32_t)) + elements * static_cast<int64_t>(sizeof(int16_t));
        if (is_kept(samples, elements, memory)) facts.memory_bytes += samples * each;
    }
    return facts;
}

DataSplits open_synthetic(const Config& config, int64_t memory) {
    const DataFacts facts = synthetic_facts(config, memory);
    const auto source =
        std::make_shared<const Source>(static_cast<uint64_t>(config.seed), facts.classes, facts.shape.elements());
    const auto split = [&](int64_t first, int64_t samples) {
        return std::make_unique<SyntheticDataset>(source, first, samples, facts.shape, facts.classes, config, memory);
    };
    DataSplits splits;
    splits.train = split(0, facts.samples);
    if (facts.test_samples > 0) splits.test = split(facts.samples, facts.test_samples);
    return splits;
}

}  // namespace lockstep
