// A format whose samples are pictures, as one sees it who makes samples of them: how many, which label, the picture
// itself, decoded. Pure, thread-safe, random access, as a Dataset; pixels stay on the disk until they are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/data_facts.hpp"
#include "data/dataset.hpp"
#include "io/picture.hpp"

namespace lockstep {

class PictureSource {
  public:
    virtual ~PictureSource() = default;

    virtual int64_t size() const = 0;
    virtual int32_t label(int64_t index) const = 0;
    /// How many classes the format has, or 0 where the labels say it.
    virtual int classes() const = 0;
    /// Their names, where the format has any.
    virtual std::vector<std::string> class_names() const { return {}; }
    /// Decoded, with one channel or three. kData naming file, and offset where it is known.
    virtual Picture picture(int64_t index) const = 0;
    /// Told by the header alone.
    virtual PictureSize picture_size(int64_t index) const = 0;
    /// Where the picture lies, for people.
    virtual std::string name(int64_t index) const = 0;
    /// As Dataset::fingerprint; may read much, so it is asked for once.
    virtual std::string fingerprint() const = 0;
    /// What it keeps in memory.
    virtual int64_t memory_bytes() const = 0;
};

/// Opens data.train or data.test (`key`), paths in `paths`. `train`: the opened training data while test data are
/// opened, else null.
using OpenPictures = std::function<std::unique_ptr<PictureSource>(
    const Config& config, const char* key, const std::vector<std::string>& paths, const PictureSource* train)>;

/// Both splits as data sets: pictures resized to data.shape where they have other sizes, pixels normalised. Without
/// data.shape all pictures must have one size, and are taken with three channels; kUsage naming two files otherwise.
DataSplits open_pictures(const Config& config, const OpenPictures& open);

/// One such data set, of a shape that is known.
std::unique_ptr<Dataset> picture_dataset(std::unique_ptr<PictureSource> source, SampleShape shape, int classes,
                                         const Config& config);

/// The same facts, without a pixel.
DataFacts picture_facts(const Config& config, const OpenPictures& open);

}  // namespace lockstep
