// Files that are named as tables and are none: told by name and place, as data that are wrong and not as a config that
// is.
#include <catch2/catch.hpp>

#include "data/csv.hpp"
#include "data/libsvm.hpp"
#include "data/table_config.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// What the reader of `format` says of a file that holds `bytes`, without its folder.
std::string said(const std::string& format, const std::string& bytes, ErrorKind kind = ErrorKind::kData) {
    const TempFolder folder;
    for (const bool packed : {true, false}) {
        const std::string path = packed ? folder.write("a", gzip(bytes_of(bytes))) : folder.write("a", bytes);
        const Config config = table_config(format, path);
        const auto error = caught([&] { format == "csv" ? open_csv(config) : open_libsvm(config); });
        REQUIRE(error);
        CHECK(error->kind == kind);
        CHECK(error->one_line());
        CHECK(error->message.starts_with(path));
        if (!packed) return error->message.substr(folder.path().size() + 1);
    }
    return "";
}

}  // namespace

TEST_CASE("bytes that are no text are refused with the place of the first, by every reader of tables") {
    for (const char* format : {"csv", "libsvm"}) {
        CHECK(said(format, std::string(5000, '\0')) == "a: no text: a byte 00 at 0x0; is it a table, in UTF-8?");
        CHECK(said(format, std::string("1 1:2\n0 1:\0", 11)).find("a byte 00 at 0xa") != std::string::npos);
        CHECK(said(format, "PAR1...") == "a: no text: a Parquet file: save the table as CSV");
        CHECK(said(format, "\x89PNG\r\n") == "a: no text: a PNG picture");
        CHECK(said(format, "BZh91AY") == "a: no text: packed with bzip2: run bunzip2 on it");
        CHECK(said(format, "\xff\xfex").find("UTF-16") != std::string::npos);
        CHECK(said(format, "") == "a: empty");
    }
}

TEST_CASE("a CSV of one field is no table, unless another separator stands in it") {
    CHECK(said("csv", "Call me Ishmael.\nSome years ago\n") ==
          "a:1: one field alone, \"Call me Ishmael.\", where a table has two at least: the label and what it follows "
          "from; is it a table, and data.separator = \",\" its separator?");
    CHECK(said("csv", "x;y\n1;2\n", ErrorKind::kUsage) == "a:1: one field alone, \"x;y\": set data.separator = \";\"");
    CHECK(said("csv", "x\ty\n1\t2\n", ErrorKind::kUsage).ends_with("set data.separator = \"\\t\""));
}

TEST_CASE("line ends of old Macs are told") {
    CHECK(said("csv", "x,y\r1,a\r2,b\r") ==
          "a:1: a byte 0d within the line; save the file with line ends of 0a, or 0d 0a");
    CHECK(said("libsvm", "1 1:2\r0 1:3\r").starts_with("a:1: "));
    // In quotes it may stand.
    const TempFolder folder;
    const Config config = table_config("csv", folder.write("a.csv", std::string("x,\"y\rz\"\n1,a\n2,b\n")));
    CHECK(open_csv(config).train->size() == 2);
}

TEST_CASE("a label with line ends is told in one line, cut where it is long") {
    const std::string label = "one\ntwo\n" + std::string(200, 'x');
    CHECK(said("csv", "x,y\n1,\"" + label + "\"\n2,\"" + label + "\"\n") ==
          "a: column y: one label alone (one two " + std::string(52, 'x') + "…), at least 2 are needed");
}
