#include "inspect_data.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <string_view>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "data/data_facts.hpp"
#include "data/idx_file.hpp"
#include "data/npz_array.hpp"
#include "data/npz_zip.hpp"
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

/// The format of a table by its name, packed or not; empty: of no table.
std::string table_format(std::string name) {
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    const auto ends_with = [&](std::initializer_list<const char*> endings) {
        return std::any_of(endings.begin(), endings.end(), [&](const char* ending) { return name.ends_with(ending); });
    };
    if (ends_with({".csv", ".tsv"})) return "csv";
    return ends_with({".libsvm", ".svmlight", ".svm"}) ? "libsvm" : "";
}

/// What data.format would make of it without a word about its columns.
Json described_table(const std::string& path, const std::string& format) {
    Config config;
    config.data.format = format;
    config.data.train.paths = {path};
    if (path.find(".tsv") != std::string::npos) config.data.separator.assign(1, '\t');
    const DataFacts facts = data_facts(config);
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

Json described_npy(const RandomFile& file) {
    constexpr int64_t kMostHeader = 1 << 16;
    std::vector<std::byte> head(static_cast<size_t>(std::min(file.size(), kMostHeader)));
    file.read(0, head);
    const NpyHeader header = parse_npy_header(head, file.path());
    return {{"kind", "npy"}, {"path", file.path()}, {"type", npy_name(header.type)}, {"shape", header.shape}};
}

/// Arrays that data.format = "npz" would read without being told their names, else the names of all.
Json described_npz(const RandomFile& file) {
    std::vector<std::string> names;
    for (const ZipMember& member : zip_members(file)) {
        const bool array = member.name.ends_with(".npy");
        names.push_back(array ? member.name.substr(0, member.name.size() - 4) : member.name);
    }
    const auto has = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    const Config::Data usual;
    if (!has(usual.x.c_str()) || !has(usual.y.c_str())) {
        return {{"kind", "npz"}, {"path", file.path()}, {"arrays", names}};
    }
    Json found = described_table(file.path(), "npz");
    found["arrays"] = names;
    return found;
}

// A TFRecord file shows itself by the checksum of its first length.
bool is_tfrecord(std::span<const std::byte> start) {
    if (start.size() < 12) return false;
    uint32_t stored = 0;
    for (size_t i = 0; i < 4; ++i) stored |= std::to_integer<uint32_t>(start[8 + i]) << (8 * i);
    return masked_crc32c(start.first(8)) == stored;
}

bool starts_with(std::span<const std::byte> start, std::string_view magic) {
    return std::string_view(reinterpret_cast<const char*>(start.data()), start.size()).starts_with(magic);
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
    if (starts_with(start, "\x93NUMPY")) return described_npy(file);
    if (starts_with(start, "PK\x03\x04")) return described_npz(file);
    if (is_tfrecord(start)) return described_tfrecord(file);
    const bool cifar =
        fs::path(path).extension() == ".bin" && file.size() > 0 && (file.size() % 3073 == 0 || file.size() % 3074 == 0);
    if (cifar) return described_set("cifar", path, {});
    if (const std::string format = table_format(path); !format.empty()) return described_table(path, format);
    constexpr std::string_view kIdxMagic("\0\0", 2);
    if (start.empty() || starts_with(start, kIdxMagic) || looks_gzipped(start)) return described_idx(path);
    fail(ErrorKind::kData,
         "{}: its first bytes are of no kind of file known here (safetensors, IDX, CIFAR's .bin, TFRecord, JPEG, PNG, "
         "NumPy), and its name is not one of a table (.csv, .tsv, .libsvm, .svmlight, .svm); with data.format in a "
         "config, lockstep plan reads a table of any name",
         path);
}

}  // namespace lockstep
