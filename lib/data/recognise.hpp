// What kind of data a file or a folder holds: told by its first bytes and, where they say nothing, by its name.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace lockstep {

enum class DataKind { kPicture, kNpy, kNpz, kTfrecord, kCifar, kCsv, kLibsvm, kIdx, kImageFolder };

/// Of a file, packed with gzip or not. A row "label index:value …" makes libsvm of a file of any name. kData, naming
/// the file, where neither its bytes nor its name tell, and where it is empty.
DataKind kind_of_file(const std::string& path);

/// Of a folder: CIFAR's files, TFRecords, or a folder of pictures for each class; nothing where it holds none of them.
/// kData for pictures without class folders.
std::optional<DataKind> kind_of_folder(const std::string& path);

/// What a file that starts so is, in words that end with what to do, where it is of a kind that people confuse with
/// those that are read ("packed with bzip2: unpack it"); else "".
std::string foreign_kind(std::span<const std::byte> start);

}  // namespace lockstep
