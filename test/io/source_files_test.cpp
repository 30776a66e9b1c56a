// From paths, folders and globs to files: what is none is refused by name, never left out silently.
#include "io/source_files.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

std::string refusal(const std::string& path) {
    const auto error = caught([&] { source_files({path}, "data.train"); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->one_line());
    return error->message;
}

}  // namespace

TEST_CASE("a link to nothing, or to itself, is refused alone, in a folder and in a glob") {
    const TempFolder folder;
    folder.write("b.csv", std::string("x,y\n"));
    fs::create_symlink("b.csv", folder / "c.csv");  // a good one
    CHECK(source_files({folder.path()}, "data.train").size() == 2);
    for (const auto& [target, reason] : {std::pair("gone", "a link to nothing"), {"a.csv", "Too many levels"}}) {
        fs::create_symlink(target, folder / "a.csv");
        for (const std::string& path : {folder / "a.csv", folder.path(), folder / "*.csv"}) {
            INFO(path);
            const std::string message = refusal(path);
            CHECK(message.starts_with("data.train: cannot read " + (folder / "a.csv: ") + reason));
        }
        fs::remove(folder / "a.csv");
    }
}

TEST_CASE("what is there and no file is called so, and folders in a folder are passed over") {
    const TempFolder folder;
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    CHECK(refusal(folder / "pipe") == "data.train: cannot read " + (folder / "pipe: it is no file"));
    CHECK(refusal("/dev/null") == "data.train: cannot read /dev/null: it is no file");
    CHECK(refusal(folder / "none").find("no such file, and as a pattern it matches none") != std::string::npos);
    folder.write("a", std::string("x"));
    fs::create_directories(folder / "sub");
    CHECK(source_files({folder.path()}, "data.train") == std::vector<std::string>{folder / "a"});
}
