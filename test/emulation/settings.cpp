// Reading of the LOCKSTEP_EMULATION_* variables, strictly: a misspelt order would test another one than was asked for.
#include "test/emulation/settings.hpp"

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <sstream>
#include <string>
#include <utility>

namespace lockstep::emulation {
namespace {

[[noreturn]] void refuse_variable(const char* name, const std::string& value, const char* allowed) {
    std::fprintf(stderr, "emulated CUDA: %s = \"%s\": must be %s\n", name, value.c_str(), allowed);
    std::_Exit(2);
}

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

std::uint64_t number(const char* name, std::uint64_t otherwise, std::uint64_t most, bool with_unit = false) {
    const std::string text = variable(name);
    if (text.empty()) return otherwise;
    char* end = nullptr;
    std::uint64_t value = std::strtoull(text.c_str(), &end, 10);
    unsigned shift = 0;
    if (with_unit && *end != '\0') {
        const std::size_t unit = std::string("KMG").find(*end);
        if (unit != std::string::npos) {
            shift = 10 * (static_cast<unsigned>(unit) + 1);
            ++end;
        }
    }
    if (end == text.c_str() || *end != '\0' || value > (most >> shift)) {
        refuse_variable(name, text, with_unit ? "a number of bytes, with K, M or G behind it" : "a small number");
    }
    return value << shift;
}

template <class Enum>
Enum choice(const char* name, Enum otherwise, std::initializer_list<std::pair<const char*, Enum>> values,
            const char* allowed) {
    const std::string text = variable(name);
    if (text.empty()) return otherwise;
    for (const auto& [word, value] : values) {
        if (text == word) return value;
    }
    refuse_variable(name, text, allowed);
}

// As the real runtime does: the list ends at the first entry that is no device.
std::vector<int> visible_devices(int devices) {
    std::vector<int> visible;
    const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
    if (list == nullptr) {
        for (int i = 0; i < devices; ++i) visible.push_back(i);
        return visible;
    }
    std::istringstream entries(list);
    for (std::string entry; std::getline(entries, entry, ',');) {
        char* end = nullptr;
        const long index = std::strtol(entry.c_str(), &end, 10);
        if (end == entry.c_str() || *end != '\0' || index < 0 || index >= devices) break;
        visible.push_back(static_cast<int>(index));
    }
    return visible;
}

Settings read() {
    Settings s;
    s.order =
        choice("LOCKSTEP_EMULATION_ORDER", s.order,
               {{"lazy", Order::kLazy}, {"eager", Order::kEager}, {"random", Order::kRandom}}, "lazy, eager or random");
    s.seed = number("LOCKSTEP_EMULATION_SEED", s.seed, std::numeric_limits<std::uint32_t>::max());
    s.devices = static_cast<int>(number("LOCKSTEP_EMULATION_DEVICES", 8, 64));
    s.visible = visible_devices(s.devices);
    s.arch = static_cast<int>(number("LOCKSTEP_EMULATION_ARCH", 90, 120));
    if (s.arch < 50) refuse_variable("LOCKSTEP_EMULATION_ARCH", std::to_string(s.arch), "50 to 120, e.g. 90 for sm_90");
    s.memory = number("LOCKSTEP_EMULATION_MEMORY", s.memory, std::size_t{1} << 36, true);
    s.driver = choice("LOCKSTEP_EMULATION_DRIVER", s.driver,
                      {{"present", Driver::kPresent},
                       {"missing", Driver::kMissing},
                       {"old", Driver::kOld},
                       {"no-device", Driver::kNoDevice}},
                      "present, missing, old or no-device");
    return s;
}

}  // namespace

Settings& settings() {
    static Settings current = read();
    return current;
}

std::uint64_t seeded(std::uint64_t counter) {
    // splitmix64 (Steele, Lea, Flood 2014), started at a place of its own for each seed
    std::uint64_t z = (settings().seed + 1) * 0xD1342543DE82EF95ULL + (counter + 1) * 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

}  // namespace lockstep::emulation
