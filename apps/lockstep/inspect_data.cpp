#include "inspect_data.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/thread_pool.hpp"
#include "data/data_facts.hpp"
#include "data/data_file.hpp"
#include "data/dataset.hpp"
#include "data/file_sets.hpp"
#include "data/idx_file.hpp"
#include "data/npz_array.hpp"
#include "data/recognise.hpp"
#include "data/tf_example.hpp"
#include "data/tfrecord_file.hpp"
#include "data/unreadable.hpp"
#include "io/files.hpp"
#include "io/picture.hpp"
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

/// One that trains on it, with a word about nothing else. Pictures may have any size.
Config config_for(const std::string& format, const std::string& path) {
    Config config;
    config.data.format = format;
    config.data.train.paths = {path};
    if (path.find(".tsv") != std::string::npos) config.data.separator.assign(1, '\t');
    if (format == "image_folder" || format == "tfrecord") config.data.shape = {1, 1, 3};
    return config;
}

/// Of what is known but for its samples: which of them cannot be read.
void read_all(Json& facts) {
    const std::string format = facts.at("kind");
    if (format == "csv" || format == "libsvm") facts["samples_read"] = facts.at("samples");  // all told its columns
    const bool pictures = format == "cifar" || format == "image_folder" || format == "tfrecord";
    if (!pictures && !(format == "npz" && facts.contains("samples"))) return;
    const DataSplits data = open_data(config_for(format, facts.at("path")));
    const std::vector<std::string> damaged = unreadable_samples(*data.train, available_cpus());
    facts["samples_read"] = data.train->size();
    if (!damaged.empty()) facts["damaged"] = damaged;
}

/// What data.format would make of it without a word about its columns.
Json described_table(const std::string& path, const std::string& format) {
    const DataFacts facts = data_facts(config_for(format, path));
    return {{"kind", format},           {"path", path},
            {"samples", facts.samples}, {"shape", {facts.shape.height, facts.shape.width, facts.shape.channels}},
            {"classes", facts.classes},  // 0: a regression
            {"read_as", facts.notes}};
}

Json described_idx(const std::string& path) {
    const IdxArray array = read_idx(path);
    return {{"kind", "idx"},
            {"path", path},
            {"type", idx_type_name(array.type)},
            {"extents", array.extents},
            {"hash", hex16(array.hash)}};
}

/// A file, or the files of a folder. The features of the first record stand for all.
Json described_tfrecords(const std::string& path) {
    std::vector<std::byte> data;
    int64_t records = 0;
    Json features = Json::object();
    const std::vector<DataFile> files = open_data_files(complete_files({path}, "inspect"), Config().device.cache);
    for (const DataFile& file : files) {
        int64_t record = 0;
        for (int64_t offset = 0; offset < file.bytes->size(); ++record) {
            const RecordPlace place = read_record_header(*file.bytes, file.path, record, offset);
            read_record(*file.bytes, file.path, record, place, data);
            if (records + record == 0) {
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
        records += record;
    }
    Json found = {{"kind", "tfrecord"}, {"path", path}};
    if (fs::is_directory(path)) found["files"] = files.size();
    found["records"] = records;
    found["features"] = features;
    return found;
}

Json described_set(const std::string& format, const std::string& path) {
    const Config config = config_for(format, path);
    const DataFacts facts = data_facts(config);
    Json found = {{"kind", format}, {"path", path}, {"samples", facts.samples}, {"classes", facts.classes}};
    if (!facts.class_names.empty()) found["class_names"] = facts.class_names;
    if (config.data.shape.empty()) found["shape"] = {facts.shape.height, facts.shape.width, facts.shape.channels};
    return found;
}

Json described_npy(const RandomFile& file) {
    constexpr int64_t kMostHeader = 1 << 16;
    std::vector<std::byte> head(static_cast<size_t>(std::min(file.size(), kMostHeader)));
    file.read(0, head);
    const NpyHeader header = parse_npy_header(head, file.path());
    return {{"kind", "npy"}, {"path", file.path()}, {"type", npy_name(header.type)}, {"shape", header.shape}};
}

/// Arrays that data.format = "npz" would read without being told their names; and all that are there.
Json described_npz(const RandomFile& file) {
    std::vector<std::string> names;
    Json tensors = Json::array();
    for (const NpzEntry& array : arrays_of(file)) {
        names.push_back(array.name);
        const std::string type = array.fault.empty() ? npy_name(array.header.type) : "unreadable";
        tensors.push_back({{"name", array.name}, {"dtype", type}, {"shape", array.header.shape}});
    }
    const auto has = [&](const std::string& name) {
        return std::find(names.begin(), names.end(), name) != names.end();
    };
    const Config::Data usual;
    Json found = has(usual.x) && has(usual.y) ? described_table(file.path(), "npz")
                                              : Json{{"kind", "npz"}, {"path", file.path()}};
    found["arrays"] = names;
    found["tensors"] = tensors;
    return found;
}

Json described(DataKind kind, const std::string& path) {
    switch (kind) {
        case DataKind::kPicture:
            return described_picture(path);
        case DataKind::kNpy:
            return described_npy(RandomFile(path));
        case DataKind::kNpz:
            return described_npz(RandomFile(path));
        case DataKind::kTfrecord:
            return described_tfrecords(path);
        case DataKind::kCifar:
            return described_set("cifar", path);
        case DataKind::kCsv:
            return described_table(path, "csv");
        case DataKind::kLibsvm:
            return described_table(path, "libsvm");
        case DataKind::kIdx:
            return described_idx(path);
        case DataKind::kImageFolder:
            return described_set("image_folder", path);
    }
    return {};
}

}  // namespace

std::optional<Json> describe_data(const std::string& path, bool deep) {
    const std::optional<DataKind> kind = fs::is_directory(path) ? kind_of_folder(path) : kind_of_file(path);
    if (!kind) return {};
    Json facts = described(*kind, path);
    if (deep) read_all(facts);
    return facts;
}

}  // namespace lockstep
