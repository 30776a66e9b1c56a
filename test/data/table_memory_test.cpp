// Tables that are larger than what may be held stay on the disk: the peak of memory says so.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "data/csv.hpp"
#include "data/libsvm.hpp"
#include "data/memory_growth.hpp"
#include "data/table_config.hpp"
#include "io/files.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

void read_some(const Dataset& data) {
    for (int64_t i = 0; i < 1000; ++i) sample(data, i * 7919 % data.size());
}

}  // namespace

TEST_CASE("a table of 24 MB, plain or packed, is trained from in less than 12 MB") {
    const TempFolder folder;
    std::string rows, lines;
    for (int i = 0; i < 1000; ++i) {
        rows +=
            fmt::format("{},some text of a category that is rather long {},{}.5,0.125,17,19,23,29,31,37,41,43,47,{}\n",
                        i * 7 % 100, i % 10, i * 31 % 1000, i % 3 == 0 ? "yes" : "no");
        lines += fmt::format("{}", i % 3);
        for (int k = 1; k < 20; ++k) lines += fmt::format(" {}:{}.25", k * 3, i % 7);
        lines += '\n';
    }
    const auto repeated = [](const std::string& text, const std::string& head) {
        std::string all = head;
        while (all.size() < 24 * kMegabyte) all += text;
        return all;
    };
    Config config;
    config.device.cache = folder / "cache";
    for (const char* format : {"csv", "libsvm"}) {
        const bool csv = format == std::string("csv");
        for (const bool packed : {false, true}) {
            INFO(format << (packed ? " packed" : ""));
            {
                const std::string text = csv ? repeated(rows, "a,b,c,d,e,f,g,h,i,j,k,l,m,y\n") : repeated(lines, "");
                config.data.train.paths = {packed ? folder.write("t.gz", gzip(bytes_of(text)))
                                                  : folder.write("t", text)};
            }
            config.data.format = format;
            const int64_t grown = growth([&] {
                const DataSplits data = csv ? open_csv(config, kMegabyte) : open_libsvm(config, kMegabyte);
                REQUIRE(data.train->size() > 100'000);
                read_some(*data.train);
            });
            CHECK(grown < 12 * kMegabyte);
        }
        // And what is held shows: this measures memory.
        const int64_t held = growth([&] { csv ? open_csv(config) : open_libsvm(config); });
        CHECK(held > 12 * kMegabyte);
    }
}
