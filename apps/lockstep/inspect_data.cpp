#include "inspect_data.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "config/config.hpp"
#include "core/error.hpp"
#include "data/data_facts.hpp"
#include "data/tf_example.hpp"
#include "data/tfrecord_file.hpp"
#include "io/crc32c.hpp"
#include "io/files.hpp"
#include "io/jpeg.hpp"
#include "io/png.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json described_picture(const std::string& path) {
    const std::vector<std::byte> bytes = read_file(path);
    const Picture picture = decode_picture(bytes, path);
    return {{"kind", looks_like_png(bytes) ? "png" : "jpeg"},
            {"path", path},
            {"width", picture.width},
            {"height", picture.height},
            {"channels", picture.channels}};
}

/// The features of the first record stand for all.
Json described_tfrecord(const RandomFile& file) {
    std::vector<std::byte> data;
    int64_t records = 0;
    Json features = Json::object();
    for (int64_t offset = 0; offset < file.size(); ++records) {
        const RecordPlace place = read_record_header(file, file.path(), records, offset);
        read_record(file, file.path(), records, place, data);
        if (records == 0) {
            constexpr const char* kKinds[] = {"nothing", "bytes", "floats", "integers"};
            std::map<std::string, int> sorted;
            const TfExample first(data);
            for (const TfExample::Feature& feature : first.features()) {
                sorted[std::string(feature.name)] = feature.kind;
            }
            for (const auto& [name, kind] : sorted) features[name] = kKinds[kind];
        }
        offset = end_of(place);
    }
    return {{"kind", "tfrecord"}, {"path", file.path()}, {"records", records}, {"features", features}};
}

Json described_set(const std::string& format, const std::string& path, const std::vector<int64_t>& shape) {
    Config config;
    config.data.format = format;
    config.data.train.paths = {path};
    config.data.shape = shape;
    const DataFacts facts = data_facts(config);
    Json found = {{"kind", format}, {"path", path}, {"samples", facts.samples}, {"classes", facts.classes}};
    if (!facts.class_names.empty()) found["class_names"] = facts.class_names;
    if (shape.empty()) found["shape"] = {facts.shape.height, facts.shape.width, facts.shape.channels};
    return found;
}

// A TFRecord file shows itself by the checksum of its first length.
bool is_tfrecord(std::span<const std::byte> start) {
    if (start.size() < 12) return false;
    uint32_t stored = 0;
    for (size_t i = 0; i < 4; ++i) stored |= std::to_integer<uint32_t>(start[8 + i]) << (8 * i);
    return masked_crc32c(start.first(8)) == stored;
}

bool has_folders(const std::string& path) {
    for (const auto& entry : fs::directory_iterator(path)) {
        if (entry.is_directory()) return true;
    }
    return false;
}

}  // namespace

std::optional<Json> describe_data(const std::string& path) {
    if (fs::is_directory(path)) {
        if (!has_folders(path)) return {};
        return described_set("image_folder", path, {1, 1, 3});  // of any size
    }
    const RandomFile file(path);
    std::vector<std::byte> start(static_cast<size_t>(std::min<int64_t>(file.size(), 16)));
    file.read(0, start);
    if (looks_like_jpeg(start) || looks_like_png(start)) return described_picture(path);
    if (is_tfrecord(start)) return described_tfrecord(file);
    const bool cifar =
        fs::path(path).extension() == ".bin" && file.size() > 0 && (file.size() % 3073 == 0 || file.size() % 3074 == 0);
    if (cifar) return described_set("cifar", path, {});
    return {};
}

}  // namespace lockstep
