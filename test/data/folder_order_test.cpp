// The order of samples is a function of names alone: not of the locale, nor of the order in which a file system lists a
// folder. This process has a readdir of its own, which lists every folder in a shuffled order.
#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <clocale>
#include <cstring>
#include <deque>
#include <filesystem>
#include <locale>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "data/picture_fixture.hpp"
#include "io/source_files.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

/// What readdir does here; the state of a fake C library.
struct Listing {
    std::mutex mutex;
    unsigned seed = 0;  // 0: as the file system has it
    std::map<DIR*, std::deque<dirent>> left;
    int folders = 0;  // that were listed in a shuffled order
};
Listing listing;

/// Sets the shuffle for as long as it lives.
struct Shuffled {
    explicit Shuffled(unsigned seed) { listing.seed = seed; }
    ~Shuffled() { listing.seed = 0; }
};

}  // namespace

extern "C" dirent* readdir(DIR* folder) {
    static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
    if (listing.seed == 0) return real(folder);
    thread_local dirent given;
    const std::lock_guard lock(listing.mutex);
    auto [at, first] = listing.left.try_emplace(folder);
    if (first) {
        while (const dirent* entry = real(folder)) at->second.push_back(*entry);
        std::shuffle(at->second.begin(), at->second.end(), std::mt19937(listing.seed));
        ++listing.folders;
    }
    if (at->second.empty()) {
        listing.left.erase(at);
        return nullptr;
    }
    given = at->second.front();
    at->second.pop_front();
    return &given;
}

namespace {

/// Texts in the reverse of their byte order, numbers as 1.234,5.
class Reversed final : public std::collate<char> {
    int do_compare(const char* a, const char* a_end, const char* b, const char* b_end) const override {
        return std::collate<char>::do_compare(b, b_end, a, a_end);
    }
};
class Comma final : public std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

/// A locale that differs from "C" wherever one may, whatever is installed here.
struct OddLocale {
    std::locale before;
    OddLocale() {
        const std::locale odd(std::locale(std::locale::classic(), new Reversed), new Comma);
        before = std::locale::global(odd);
        for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "en_US.UTF-8", "C.UTF-8"}) {
            if (std::setlocale(LC_ALL, name) != nullptr) break;
        }
    }
    ~OddLocale() {
        std::locale::global(before);
        std::setlocale(LC_ALL, "C");
    }
};

// Byte order: 10 9 B Zebra _ apfel z Äpfel. By a dictionary: _ 9 10 apfel Äpfel B z Zebra.
const std::vector<std::string> kClasses{"10", "9", "B", "Zebra", "_", "apfel", "z", "Äpfel"};

/// In a folder the same picture under many names, and its order as it must be.
void fill(const TempFolder& folder) {
    for (const char* name : {"z", "Zebra", "10", "apfel", "_", "Äpfel", "9", "B"}) {
        for (const char* picture : {"b.png", "A.png", "a.png", "ä.png", "10.png", "9.png", "sub/1.png"}) {
            const fs::path to = fs::path(folder.path()) / name / picture;
            fs::create_directories(to.parent_path());
            fs::copy_file(kPictures + "cifar10_png/3/00.png", to);
        }
    }
}

struct Order {
    std::vector<std::string> classes;
    std::vector<int32_t> labels;
    std::string fingerprint;
    bool operator==(const Order&) const = default;
};

Order order_of(const TempFolder& folder) {
    const Config config = config_for("image_folder", {folder.path()}, {4, 4, 3});
    const auto data = open_data(config).train;
    Order order{data_facts(config).class_names, {}, data->fingerprint()};
    for (int64_t i = 0; i < data->size(); ++i) order.labels.push_back(data->label(i));
    return order;
}

}  // namespace

TEST_CASE("classes and pictures have their places by the bytes of their names, however a folder is listed") {
    const TempFolder folder;
    fill(folder);
    const Order expected = order_of(folder);
    CHECK(expected.classes == kClasses);
    CHECK(expected.labels.size() == 56);
    std::set<std::vector<std::string>> listings;
    for (unsigned seed = 1; seed <= 8; ++seed) {
        const Shuffled shuffled(seed);
        listing.folders = 0;
        CHECK(order_of(folder) == expected);
        CHECK(listing.folders > 16);  // of the set, its classes and what is in them, twice
        listings.insert(TempFolder::names_in(folder.path()));
    }
    // The twin: who took the order of the listing would have seen other ones.
    CHECK(listings.size() > 4);
}

TEST_CASE("a locale that sorts otherwise changes no place") {
    const TempFolder folder;
    fill(folder);
    const Order expected = order_of(folder);
    const OddLocale odd;
    CHECK(order_of(folder) == expected);
    // The twin: this locale does sort otherwise, and writes other numbers.
    std::vector<std::string> sorted = kClasses;
    std::sort(sorted.begin(), sorted.end(), std::locale());
    CHECK(sorted != kClasses);
    CHECK(fmt::format(std::locale(), "{:L}", 1234.5) == "1.234,5");
}

TEST_CASE(
    "files of a folder or a glob go by the bytes of their names in any locale and listing, and numbers are read "
    "alike") {
    const TempFolder folder;
    for (const char* name : {"b.csv", "A.csv", "ä.csv", "10.csv", "9.csv", "_.csv"}) {
        folder.write(name, std::string("x,y\n1234.5,") + name + "\n-2.25e-3," + name + "\n");
    }
    const std::vector<std::string> expected{folder / "10.csv", folder / "9.csv", folder / "A.csv",
                                            folder / "_.csv",  folder / "b.csv", folder / "ä.csv"};
    const auto values = [&] {
        Config config;
        config.data.format = "csv";
        config.data.train.paths = {folder.path()};
        const auto data = open_data(config).train;
        std::vector<float> all;
        for (int64_t i = 0; i < data->size(); ++i) {
            float value = 0;
            all.push_back(static_cast<float>(data->read(i, std::span(&value, 1))));
            all.push_back(value);
        }
        return all;
    };
    const std::vector<float> alike = values();
    const OddLocale odd;
    for (unsigned seed = 0; seed <= 3; ++seed) {
        const Shuffled shuffled(seed);
        CHECK(source_files({folder.path()}, "data.train") == expected);
        CHECK(source_files({folder / "*.csv"}, "data.train") == expected);
        CHECK(values() == alike);
    }
}
