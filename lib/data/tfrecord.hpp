// TFRecord files of pictures, as tf_cnn_benchmarks and TensorFlow's ImageNet scripts write them: in each record a
// tf.Example with an encoded picture and an integer label.
#pragma once

#include "data/data_facts.hpp"
#include "data/dataset.hpp"

namespace lockstep {

/// data.train and data.test of a config whose data.format is "tfrecord": files, folders or globs, plain or packed with
/// gzip. Of a set NAME-00000-of-00008 … all must be there, unless the files are listed one by one. Samples go in the
/// order of files and records.
DataSplits open_tfrecord(const Config& config);
DataFacts tfrecord_facts(const Config& config);

}  // namespace lockstep
