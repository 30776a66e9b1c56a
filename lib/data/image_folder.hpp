// A folder with a folder for each class, and in these JPEG and PNG files: the layout of torchvision's ImageFolder.
#pragma once

#include "data/data_facts.hpp"
#include "data/dataset.hpp"

namespace lockstep {

/// data.train and data.test of a config whose data.format is "image_folder": a folder or several, whose classes are
/// joined. Classes are numbered in byte order of their names, samples go by class, then by path: whatever the locale,
/// and whatever order the file system lists them in. Test classes take the numbers of the training classes.
DataSplits open_image_folder(const Config& config);
DataFacts image_folder_facts(const Config& config);

}  // namespace lockstep
