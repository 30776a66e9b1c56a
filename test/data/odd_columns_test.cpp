// Tables whose columns are unusual: tens of thousands of them, or some that are of no use and are left out.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>

#include "data/csv.hpp"
#include "data/table_config.hpp"
#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

/// Three rows of so many numbers and a label.
std::string wide_table(int columns) {
    std::string text;
    for (int c = 0; c < columns; ++c) text += fmt::format("gene_expression_{},", c);
    text += "y\n";
    for (int row = 0; row < 3; ++row) {
        for (int c = 0; c < columns; ++c) text += fmt::format("{},", row * c % 7);
        text += row == 1 ? "yes\n" : "no\n";
    }
    return text;
}

/// Of this process, so that others on the machine do not count.
double cpu_seconds(const Config& config) {
    const std::clock_t start = std::clock();
    open_csv(config);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::vector<std::string> read_as(const Config& config) {
    std::vector<std::string> names;
    for (const Column& column : open_csv(config).train->columns()) names.push_back(column.name);
    return names;
}

ConfigTable skipped(const std::string& name) {
    return column({{"name", name}, {"type", std::string("skip")}});
}

}  // namespace

TEST_CASE("four times the columns take about four times as long, and not sixteen") {
    const TempFolder folder;
    const auto table = [&](int columns) {
        return table_config("csv", folder.write(fmt::format("{}.csv", columns), wide_table(columns)));
    };
    const Config few = table(5'000);
    double shortest = cpu_seconds(few);
    for (int i = 0; i < 4; ++i) shortest = std::min(shortest, cpu_seconds(few));
    const Config many = table(20'000);
    CHECK(open_csv(many).train->shape().channels == 20'000);
    CHECK(std::min(cpu_seconds(many), cpu_seconds(many)) < 10 * shortest);
}

TEST_CASE("a test file with thousands of columns in another order finds them as quickly") {
    const TempFolder folder;
    const auto reversed = [](int columns) {
        std::string header = "y", row = "yes";
        for (int c = columns; c-- > 0;) {
            header += fmt::format(",gene_expression_{}", c);
            row += fmt::format(",{}", c % 7);
        }
        return header + "\n" + row + "\n";
    };
    Config config = table_config("csv", folder.write("train.csv", wide_table(20'000)));
    config.data.test.paths = {folder.write("test.csv", reversed(20'000))};
    const DataSplits splits = open_csv(config);
    CHECK(splits.test->columns().front().name == "gene_expression_0");
    config.data.test.paths.clear();
    const double alone = cpu_seconds(config);
    config.data.test.paths = {folder.path() + "/test.csv"};
    CHECK(cpu_seconds(config) < 10 * alone + 0.5);
}

TEST_CASE("entries that skip alone leave those columns out, and the others are guessed") {
    const TempFolder folder;
    Config config =
        table_config("csv", folder.write("a.csv", "id,x,color,y\na7,1,red,no\nb9,2,blue,yes\nc3,3,red,no\n"));
    CHECK(read_as(config) == std::vector<std::string>{"id", "x", "color"});
    config.data.columns = {skipped("id")};
    CHECK(read_as(config) == std::vector<std::string>{"x", "color"});
    CHECK(open_csv(config).train->classes() == 2);
    // The label is the last of those that are left; a test file need not have what is skipped.
    config.data.columns = {skipped("id"), skipped("y")};
    CHECK(read_as(config) == std::vector<std::string>{"x"});
    config.data.columns = {skipped("id")};
    config.data.test.paths = {folder.write("b.csv", "y,color,x\nyes,red,5\n")};
    CHECK(open_csv(config).test->size() == 1);
    config.data.label_column = "color";
    CHECK(read_as(config) == std::vector<std::string>{"x", "y"});
}

TEST_CASE("what is skipped must be there, and something must be left") {
    const TempFolder folder;
    Config config = table_config("csv", folder.write("a.csv", "id,x,y\na,1,no\nb,2,yes\n"));
    const auto refused = [&](std::vector<ConfigTable> columns) {
        config.data.columns = std::move(columns);
        const auto error = caught([&] { open_csv(config); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kUsage);
        return error->message;
    };
    CHECK(refused({skipped("ID")}) ==
          "exp.toml:3:1: data.columns: ID: the data have no such column to skip; they have id, x, y");
    CHECK(refused({skipped("id"), skipped("x"), skipped("y")}) == "data.columns: every column is skipped");
    CHECK(refused({skipped("id"), skipped("x")}) == "data.columns: no column but the label is read");
    config.data.header = false;  // fields are c1, c2, …
    config.data.train.paths = {folder.write("c.csv", "a,1,no\nb,2,yes\n")};
    config.data.columns = {skipped("c1")};
    CHECK(read_as(config) == std::vector<std::string>{"c2"});
}
