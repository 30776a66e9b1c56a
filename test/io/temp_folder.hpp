// A folder for one test, removed with all in it; and errors as values, so that tests can look at kind and message.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace lockstep::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(const std::string& text) {
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
}

inline std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class TempFolder {
  public:
    TempFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "lockstep-test-XXXXXX").string();
        if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make a folder for a test: " + name);
        path_ = name;
    }
    ~TempFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempFolder(const TempFolder&) = delete;
    TempFolder& operator=(const TempFolder&) = delete;

    std::string path() const { return path_.string(); }
    std::string operator/(const std::string& name) const { return (path_ / name).string(); }
    /// Makes a file and returns its path.
    std::string write(const std::string& name, std::span<const std::byte> bytes) const {
        std::ofstream file(path_ / name, std::ios::binary);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        if (!file) throw std::runtime_error("cannot write a file for a test: " + name);
        return *this / name;
    }
    std::string write(const std::string& name, const std::string& text) const { return write(name, bytes_of(text)); }
    /// Names of all that lies in it.
    std::vector<std::string> names() const { return names_in(path()); }

    static std::vector<std::string> names_in(const std::string& folder) {
        std::vector<std::string> names;
        for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
        return names;
    }

  private:
    std::filesystem::path path_;
};

struct Caught {
    ErrorKind kind;
    std::string message;
    bool says(const std::string& part) const { return message.find(part) != std::string::npos; }
    bool one_line() const { return message.find('\n') == std::string::npos; }
};

/// What `body` throws; nothing if it returns.
template <class Body>
std::optional<Caught> caught(Body&& body) {
    try {
        body();
    } catch (const Error& e) {
        return Caught{e.kind(), e.what()};
    }
    return {};
}

}  // namespace lockstep::test
