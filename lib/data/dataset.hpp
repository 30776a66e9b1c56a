// A data set: how many samples, and sample number i. Pure, thread-safe, random access: read(i) is a function of i
// alone.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/column.hpp"
#include "core/shape.hpp"

namespace lockstep {

class RandomCrop;

class Dataset {
  public:
    virtual ~Dataset() = default;

    virtual int64_t size() const = 0;
    virtual SampleShape shape() const = 0;
    virtual int classes() const = 0;  // 0: a regression
    /// Of tabular samples: what each of the shape().channels values is. Empty: pixels, or plain numbers.
    virtual std::vector<Column> columns() const { return {}; }
    /// Writes sample `index` (0 … size()-1), normalised, into `pixels` (shape().elements() values, HWC) and returns its
    /// label (of a regression: the bits of its fp32 target).
    virtual int32_t read(int64_t index, std::span<float> pixels) const = 0;
    /// The same of a random part of the sample, resized to shape(): of the picture that it is made of, where it is made
    /// of one (see random_crop.hpp); else of the sample itself.
    virtual int32_t read_crop(int64_t index, const RandomCrop& crop, std::span<float> pixels) const;
    /// Of samples that are not known to be anything: -1.
    virtual int32_t label(int64_t index) const = 0;
    /// The names of labels 0, 1, …, where the format has any.
    virtual std::vector<std::string> class_names() const { return {}; }
    /// Where a sample lies, for people: its file, or its place in one; empty where the format has no such thing.
    virtual std::string sample_name(int64_t /*index*/) const { return {}; }
    /// What the data are, wherever they lie: a function of contents, never of paths. Equal on all ranks, stored in
    /// checkpoints.
    virtual std::string fingerprint() const = 0;
};

/// Train and (perhaps) test and validation split.
struct DataSplits {
    std::unique_ptr<Dataset> train;
    std::unique_ptr<Dataset> test;  // may be null
    std::unique_ptr<Dataset> validation =
        nullptr;  // data.validation's share of the training data; null where that is 0
};

struct Config;
/// Samples that nobody labelled, for a model that was trained on pictures like `train`: pictures at `paths`, each a
/// file or a folder that is searched, in byte order of their names in each path; resized and normalised as those of the
/// config. kUsage where the samples of `train` are no pictures.
std::unique_ptr<Dataset> open_unlabelled(const Config& config, const std::vector<std::string>& paths,
                                         const Dataset& train);

/// Opens what the config's [data] names. Files are read, unpacked and checked here. Throws kData naming file and
/// offset.
DataSplits open_data(const Config& config);

}  // namespace lockstep
