// The reading half of safetensors.hpp. Nothing in a file is trusted: lengths before anything is allocated for them, the
// JSON, every entry, and at last that the tensors cover the data exactly, without a hole or an overlap.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.hpp"
#include "io/files.hpp"
#include "io/safetensors.hpp"
#include "io/tensor_type.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;  // the reference reader's limit
constexpr int kDeepest = 8;  // a list in a tensor's entry in the header: three; copies of very deep ones end the stack
constexpr size_t kLongestMessage = 400;

struct Entry {
    TensorView tensor;
    uint64_t begin = 0, end = 0;  // in the data behind the header
};

class Parser {
  public:
    Parser(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

    std::string_view header() const {
        const uint64_t size = bytes_.size();
        if (size < kLengthBytes) {
            refuse("truncated: {} bytes, where a safetensors file starts with 8 bytes of header length", size);
        }
        uint64_t length = 0;
        for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(bytes_[i]) << (8 * i);
        if (length > kLongestHeader) {
            refuse("no safetensors file: header length {} at 0x0, at most {} are allowed", length, kLongestHeader);
        }
        if (length > size - kLengthBytes) {
            refuse("truncated: header length {} at 0x0, but {} bytes follow", length, size - kLengthBytes);
        }
        const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + kLengthBytes, length);
        if (text.empty() || text[0] != '{') refuse("no safetensors file: the header at 0x8 does not start with '{{'");
        return text;
    }

    Json parse_header(std::string_view text) const {
        std::vector<std::set<std::string>> keys;  // of the objects that are open
        const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
            if (depth > kDeepest) refuse("the header at 0x8 nests lists or objects deeper than any entry does");
            if (event == Json::parse_event_t::object_start) keys.emplace_back();
            if (event == Json::parse_event_t::object_end) keys.pop_back();
            if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
                refuse("the header at 0x8 holds the key {} twice", parsed.dump());
            }
            return true;
        };
        try {
            return Json::parse(text, watch);
        } catch (const Json::parse_error& e) {
            const std::string_view what = e.what();  // "[json.exception.parse_error.101] parse error at line 1, …"
            const size_t bracket = what.find("] ");
            refuse("the header is no JSON, at 0x{:x}: {}", kLengthBytes + (e.byte == 0 ? 0 : e.byte - 1),
                   bracket == std::string_view::npos ? what : what.substr(bracket + 2));
        } catch (const Json::out_of_range&) {
            refuse("the header holds a number beyond the range of doubles");
        }
    }

    std::map<std::string, std::string> metadata(const Json& json) const {
        if (!json.is_object()) refuse("__metadata__ is no object of strings");
        std::map<std::string, std::string> map;
        for (const auto& [key, value] : json.items()) {
            if (!value.is_string()) refuse("__metadata__.{} is {}, a string is needed", key, value.dump());
            map.emplace(key, value.get<std::string>());
        }
        return map;
    }

    Entry entry(const std::string& tensor, const Json& json) const {
        Entry entry;
        entry.tensor.name = tensor;
        if (!json.is_object()) refuse("tensor {}: {} is no object", tensor, json.dump());
        const Json dtype = json.value("dtype", Json());
        if (!dtype.is_string()) refuse("tensor {}: dtype is missing or no string", tensor);
        entry.tensor.dtype = dtype.get<std::string>();
        for (const uint64_t extent : numbers(tensor, json, "shape")) {
            entry.tensor.shape.push_back(static_cast<int64_t>(extent));  // one above 2^63 turns negative, refused below
        }
        const std::vector<uint64_t> offsets = numbers(tensor, json, "data_offsets");
        if (offsets.size() != 2) refuse("tensor {}: {} data_offsets, two are needed", tensor, offsets.size());
        entry.begin = offsets[0];
        entry.end = offsets[1];
        return entry;
    }

    // Entries in file order and complete, or an error.
    void place(std::vector<Entry>& entries, uint64_t data_start) const {
        std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
            return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
        });
        const uint64_t size = bytes_.size() - data_start;
        uint64_t expected = 0;
        for (Entry& e : entries) {
            check_size(e);
            if (e.begin != expected) {
                refuse("tensor {} starts at data offset {}, {} (file offset 0x{:x}); it {}", e.tensor.name, e.begin,
                       expected == 0 ? std::string("the data at 0")
                                     : fmt::format("the one before it ends at {}", expected),
                       data_start + e.begin, e.begin < expected ? "overlaps" : "leaves a hole");
            }
            if (e.end > size) {
                refuse("truncated: tensor {} ends at data offset {} (file offset 0x{:x}), but the data end at {}",
                       e.tensor.name, e.end, data_start + e.end, size);
            }
            e.tensor.bytes = bytes_.subspan(data_start + e.begin, e.end - e.begin);
            expected = e.end;
        }
        if (expected != size) {
            refuse("{} bytes at 0x{:x}, behind the last tensor, belong to none", size - expected,
                   data_start + expected);
        }
    }

  private:
    template <class... Args>
    [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
        std::string what = fmt::format(format, std::forward<Args>(args)...);
        std::replace_if(
            what.begin(), what.end(), [](unsigned char c) { return c < 0x20; }, ' ');  // in a name
        if (what.size() > kLongestMessage) what.replace(kLongestMessage / 2, what.size() - kLongestMessage, "…");
        fail(ErrorKind::kData, "{}: {}", name_, what);
    }

    std::vector<uint64_t> numbers(const std::string& tensor, const Json& json, const char* key) const {
        const Json list = json.value(key, Json());
        if (!list.is_array()) refuse("tensor {}: {} is missing or no list", tensor, key);
        std::vector<uint64_t> values;
        for (const Json& value : list) {
            if (!value.is_number_unsigned())
                refuse("tensor {}: {} in {} is no whole number >= 0", tensor, value.dump(), key);
            values.push_back(value.get<uint64_t>());
        }
        return values;
    }

    void check_size(const Entry& e) const {
        const TensorView& t = e.tensor;
        const TensorType* type = find_tensor_type(t.dtype);
        if (!type) refuse("tensor {}: unknown dtype {}", t.name, t.dtype);
        if (e.end < e.begin) refuse("tensor {}: data_offsets [{},{}] run backwards", t.name, e.begin, e.end);
        const auto needed = tensor_bytes(*type, t.shape);
        if (!needed) refuse("tensor {}: no tensor of type {} has the shape {}", t.name, t.dtype, shape_text(t.shape));
        if (*needed != e.end - e.begin) {
            refuse("tensor {}: shape {} of {} needs {} bytes, data_offsets [{},{}] give {}", t.name,
                   shape_text(t.shape), t.dtype, *needed, e.begin, e.end, e.end - e.begin);
        }
    }

    std::span<const std::byte> bytes_;
    const std::string& name_;
};

}  // namespace

SafetensorsFile SafetensorsFile::read(const std::string& path) {
    return parse(read_file(path), path);
}

SafetensorsFile SafetensorsFile::parse(std::vector<std::byte> bytes, const std::string& name) {
    SafetensorsFile file;
    file.bytes_ = std::move(bytes);
    const Parser parser(file.bytes_, name);
    const std::string_view header = parser.header();
    const Json json = parser.parse_header(header);
    std::vector<Entry> entries;
    for (const auto& [key, value] : json.items()) {
        if (key == "__metadata__") {
            file.metadata_ = parser.metadata(value);
        } else {
            entries.push_back(parser.entry(key, value));
        }
    }
    parser.place(entries, kLengthBytes + header.size());
    for (Entry& e : entries) file.tensors_.push_back(std::move(e.tensor));
    return file;
}

const TensorView* SafetensorsFile::find(const std::string& name) const {
    const auto found =
        std::find_if(tensors_.begin(), tensors_.end(), [&](const TensorView& t) { return t.name == name; });
    return found == tensors_.end() ? nullptr : &*found;
}

}  // namespace lockstep
