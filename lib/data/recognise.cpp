#include "data/recognise.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "data/cifar.hpp"
#include "data/table_text.hpp"
#include "data/tfrecord_file.hpp"
#include "io/files.hpp"
#include "io/jpeg.hpp"
#include "io/png.hpp"
#include "io/shown_path.hpp"
#include "io/unpack.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLookedAt = size_t{1} << 16;

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool ends_with_one_of(std::string_view name, std::initializer_list<std::string_view> endings) {
    return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Name without folder and .gz, in small letters.
std::string plain_name(const std::string& path) {
    std::string name = fs::path(path).filename().string();
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    return name;
}

/// "3:0.5", or "qid:7" of ranking data.
bool is_entry(std::string_view word) {
    const size_t colon = word.find(':');
    if (colon == std::string_view::npos) return false;
    const std::string_view index = word.substr(0, colon);
    const bool digits = !index.empty() && index.find_first_not_of("0123456789") == std::string_view::npos;
    return (digits || index == "qid") && parse_number(word.substr(colon + 1)).has_value();
}

/// The first row with more than a label decides. What is wrong in later rows is told by who reads them.
bool looks_like_libsvm(std::string_view text) {
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        if (line.ends_with('\r')) line.remove_suffix(1);
        line = without_blanks(line.substr(0, line.find('#')));
        const std::string_view label = line.substr(0, line.find_first_of(" \t"));
        if (label.find_first_not_of("0123456789+-.,eE") != std::string_view::npos) return false;
        line = without_blanks(line.substr(label.size()));
        if (!line.empty()) return is_entry(line.substr(0, line.find_first_of(" \t")));
    }
    return false;
}

bool is_cifar_name(const std::string& name) {
    return name.ends_with(".bin") &&
           (name.starts_with("data_batch") || name.starts_with("train") || name.starts_with("test"));
}

/// Of what is in a folder: names of files, hidden ones left out, in byte order; and whether folders are among it.
std::pair<std::vector<std::string>, bool> listed(const std::string& folder) {
    std::vector<std::string> files;
    bool folders = false;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
        std::error_code ignored;  // a link to nothing is told by who reads it
        if (entry->path().filename().string().starts_with(".")) continue;
        folders = folders || entry->is_directory(ignored);
        if (entry->is_regular_file(ignored)) files.push_back(entry->path().string());
    }
    if (error) fail(ErrorKind::kData, "cannot read {}: {}", shown_path(folder), error.message());
    std::sort(files.begin(), files.end());
    return {files, folders};
}

}  // namespace

std::string foreign_kind(std::span<const std::byte> start) {
    using namespace std::string_view_literals;
    constexpr const char* kPickle =
        "a Python pickle, which is never read here: of CIFAR take the binary version, else save arrays with np.savez";
    constexpr std::array<std::pair<std::string_view, const char*>, 14> kForeign{{
        {"BZh"sv, "packed with bzip2: run bunzip2 on it"},
        {"\xfd"
         "7zXZ\0"sv,
         "packed with xz: run unxz on it"},
        {"\x28\xb5\x2f\xfd"sv, "packed with zstd: run unzstd on it"},
        {"7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive: unpack it"},
        {"PK\x03\x04"sv, "a zip archive, as spreadsheets are, too: unpack it, or save the table as CSV"},
        {"PAR1"sv, "a Parquet file: save the table as CSV"},
        {"ARROW1"sv, "an Arrow file: save the table as CSV"},
        {"\x89HDF\r\n"sv, "an HDF5 file: save its arrays as .npz, or its table as CSV"},
        {"\x80\x02"sv, kPickle},
        {"\x80\x03"sv, kPickle},
        {"\x80\x04"sv, kPickle},
        {"\x80\x05"sv, kPickle},
        {"\x89PNG"sv, "a PNG picture"},
        {"\xff\xd8\xff"sv, "a JPEG picture"},
    }};
    constexpr size_t kTarMagicAt = 257;
    const std::string_view text = as_text(start);
    for (const auto& [magic, words] : kForeign) {
        if (text.starts_with(magic)) return words;
    }
    const bool tar = text.size() > kTarMagicAt && text.substr(kTarMagicAt).starts_with("ustar");
    return tar ? "a tar archive: unpack it (tar -xf)" : "";
}

DataKind kind_of_file(const std::string& path) {
    const RandomFile file(path);  // refuses what is no file
    const bool packed = is_gzipped(path);
    const std::vector<std::byte> start = read_file_start(path, kLookedAt);
    if (start.empty())
        fail(ErrorKind::kData, "{}: empty{}", shown_path(path), packed ? ": 0 bytes after unpacking" : "");
    const std::string_view text = as_text(start);
    const std::string name = plain_name(path);
    if (!packed) {
        if (looks_like_jpeg(start) || looks_like_png(start)) return DataKind::kPicture;
        if (text.starts_with("\x93NUMPY")) return DataKind::kNpy;
        if (text.starts_with("PK\x03\x04") && !ends_with_one_of(name, {".csv", ".tsv", ".xlsx"})) return DataKind::kNpz;
    }
    if (starts_as_tfrecord(start)) return DataKind::kTfrecord;
    const bool cifar_name = name.ends_with(".bin");
    if (cifar_name && (packed || is_cifar_size(file.size()))) return DataKind::kCifar;
    if (ends_with_one_of(name, {".csv", ".tsv"})) return DataKind::kCsv;
    if (ends_with_one_of(name, {".libsvm", ".svmlight", ".svm"})) return DataKind::kLibsvm;
    if (const std::string words = foreign_kind(start); !words.empty()) {
        fail(ErrorKind::kData, "{}: {}", shown_path(path), words);
    }
    if (text.starts_with(std::string_view("\0\0", 2))) return DataKind::kIdx;
    if (cifar_name) return DataKind::kCifar;  // of the wrong size, which its reader tells
    if (looks_like_libsvm(text)) return DataKind::kLibsvm;
    fail(ErrorKind::kData,
         "{}: its first bytes are of no kind of file known here (safetensors, IDX, CIFAR's .bin, TFRecord, JPEG, PNG, "
         "NumPy, libsvm), and its name is not that of a table (.csv, .tsv); with data.format in a config, lockstep "
         "plan reads a table of any name",
         shown_path(path));
}

std::optional<DataKind> kind_of_folder(const std::string& path) {
    const auto [files, folders] = listed(path);
    if (std::any_of(files.begin(), files.end(), [](const auto& file) { return is_cifar_name(plain_name(file)); })) {
        return DataKind::kCifar;
    }
    if (folders) return DataKind::kImageFolder;
    constexpr size_t kMostLookedAt = 16;
    for (size_t f = 0; f < std::min(files.size(), kMostLookedAt); ++f) {
        const std::vector<std::byte> start = read_file_start(files[f], kLookedAt);
        if (starts_as_tfrecord(start)) return DataKind::kTfrecord;
        if (looks_like_jpeg(start) || looks_like_png(start)) {
            fail(ErrorKind::kData, "{}: pictures must lie in a folder for each class, but {} does not", path,
                 shown_path(files[f]));
        }
    }
    return {};
}

}  // namespace lockstep
