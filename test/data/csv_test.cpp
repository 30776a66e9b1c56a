// Tables as CSV: records as their authors meant them, real files read without a word about their columns, columns
// declared and guessed, and what is refused with its place.
#include "data/csv.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/hash.hpp"
#include "data/csv_scan.hpp"
#include "data/table_config.hpp"
#include "io/files.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

using Rows = std::vector<std::vector<std::string>>;

Rows rows_of(const std::string& path, const CsvFormat& format = {}) {
    const TableText text(path, "", kTableMemory);
    CsvScan scan(text, format, 0);
    Rows rows;
    while (scan.next()) rows.emplace_back(scan.record().fields.begin(), scan.record().fields.end());
    return rows;
}

Rows rows_of_text(const std::string& text, const CsvFormat& format = {}) {
    const TempFolder folder;
    return rows_of(folder.write("a.csv", text), format);
}

Config of_text(const TempFolder& folder, const std::string& train, const std::string& test = "") {
    const std::string path = folder.write("train.csv", train);
    return table_config("csv", path, test.empty() ? "" : folder.write("test.csv", test));
}

std::string refusal(const Config& config, ErrorKind kind = ErrorKind::kData) {
    const auto error = caught([&] { open_csv(config); });
    REQUIRE(error);
    CHECK(error->kind == kind);
    CHECK(error->one_line());
    return error->message;
}

}  // namespace

TEST_CASE("quotes, line ends and blank fields are read as their authors meant") {
    for (const char* name : {"comma_in_quotes", "empty", "escaped_quotes", "json", "newlines", "quotes_and_newlines",
                             "simple", "utf8", "empty_crlf", "newlines_crlf", "simple_crlf"}) {
        INFO(name);
        const std::string plain = std::string(name).substr(0, std::string(name).find("_crlf"));
        const bool crlf = plain != name;
        const Rows rows = rows_of(kFiles + "/spectrum/" + name + ".csv");
        const std::string text = text_of(read_file(kFiles + "/spectrum/" + plain + ".json"));
        const auto expected = nlohmann::ordered_json::parse(text);
        REQUIRE(rows.size() == expected.size() + 1);
        for (size_t r = 0; r < expected.size(); ++r) {
            for (size_t c = 0; c < rows[0].size(); ++c) {
                std::string value = expected[r].at(rows[0][c]).get<std::string>();
                // The line ends within quotes are those of the file.
                for (size_t at = 0; crlf && (at = value.find('\n', at)) != std::string::npos; at += 2) {
                    value.replace(at, 1, "\r\n");
                }
                CHECK(rows[r + 1][c] == value);
            }
        }
    }
}

TEST_CASE("a line end that two pieces of the file share is one, so that later lines have their numbers") {
    constexpr size_t kPiece = size_t{1} << 20;
    const std::string start = "a,b\r\n1,\"\n", end = "\"\r\n1,2,3\r\n";
    for (const size_t cut : {1, 2, 3}) {  // bytes of `end` in the first piece
        const TempFolder folder;
        const std::string text = start + std::string(kPiece - start.size() - cut, 'x') + end;
        CHECK_THAT(refusal(of_text(folder, text)), Catch::Contains("train.csv:4: 3 fields"));
    }
}

TEST_CASE("blanks around fields, comments and empty lines are no data") {
    CHECK(rows_of_text("|1x3 Cross validator\n 1 , b c ,\" d \"\n\n  \n2, , \"e\" \r\n", {',', "|"}) ==
          Rows{{"1", "b c", " d "}, {"2", "", "e"}});
    CHECK(rows_of_text("  1  2\t3 \n4 \"5 6\" 7 \n", {' ', ""}) == Rows{{"1", "2", "3"}, {"4", "5 6", "7"}});
    CHECK(rows_of_text("1\t\t 3\n", {'\t', ""}) == Rows{{"1", "", "3"}});
    CHECK(rows_of_text("\xef\xbb\xbf\"a\";b\n", {';', ""}) == Rows{{"a", "b"}});
    CHECK(rows_of_text("5\" pipe,2") == Rows{{"5\" pipe", "2"}});
}

TEST_CASE("a record longer than what is read at once is read whole") {
    const std::string text(3'000'000, 'x');
    const Rows rows = rows_of_text("a,b\n\"" + text + "\n" + text + "\",2\n3,4\n");
    REQUIRE(rows.size() == 3);
    CHECK(rows[1][0] == text + "\n" + text);
    CHECK(rows[2] == std::vector<std::string>{"3", "4"});
}

TEST_CASE("the penguins are read without a word about their columns") {
    const DataSplits data = open_csv([] {
        Config config = table_config("csv", kFiles + "/penguins.csv");
        config.data.label_column = "species";
        return config;
    }());
    CHECK(data.train->size() == 344);
    CHECK(data.train->classes() == 3);
    const auto columns = data.train->columns();
    REQUIRE(columns.size() == 7);
    CHECK(columns[0].name == "island");
    CHECK(columns[0].categories == 3);
    CHECK(columns[1].categories == 0);
    CHECK(columns[5].categories == 3);  // female, male and a category of those missing
    std::vector<int> counts(3);
    for (int64_t i = 0; i < 344; ++i) ++counts[static_cast<size_t>(data.train->label(i))];
    CHECK(counts == std::vector<int>{152, 68, 124});  // Adelie, Chinstrap, Gentoo: byte order
}

TEST_CASE("a byte order mark, CRLF and no final newline change nothing") {
    Config config = table_config("csv", kFiles + "/penguins.csv");
    config.data.label_column = "species";
    Config odd = config;
    odd.data.train.paths = {kFiles + "/penguins_bom_crlf_noeol.csv"};
    CHECK(contents(*open_csv(config).train) == contents(*open_csv(odd).train));
}

TEST_CASE("the raw Adult files are read as they are") {
    Config config = table_config("csv", kFiles + "/adult.data", kFiles + "/adult.test");
    config.data.header = false;
    config.data.comment = "|";
    config.data.columns = adult_columns();
    const DataSplits data = open_csv(config);
    CHECK(data.train->size() == 2000);
    CHECK(data.test->size() == 1000);
    CHECK(data.train->classes() == 2);
    CHECK(data.test->classes() == 2);
    CHECK(data.train->columns()[1].categories == 8);  // with one of those missing
    CHECK(data.train->columns()[2].categories == 0);
    // Without strip the test labels end in a dot; the message says what would help.
    config.data.columns.back() = column({{"name", std::string("income")}});
    CHECK(refusal(config).find("adult.test:2: column income: label \"<=50K.\" is none of the 2 known: <=50K, >50K; "
                               "strip = \".\"") != std::string::npos);
}

TEST_CASE("rows from the disk are those from memory") {
    const TempFolder folder;
    Config config = table_config("csv", kFiles + "/adult.data", kFiles + "/adult.test");
    config.data.header = false;
    config.data.comment = "|";
    config.data.columns = adult_columns();
    const DataSplits held = open_csv(config);
    const DataSplits made = open_csv(config, 0);
    CHECK(contents(*held.train) == contents(*made.train));
    CHECK(contents(*held.test) == contents(*made.test));

    config.data.train.paths = {folder.write("adult.data.gz", gzip(read_file(kFiles + "/adult.data")))};
    config.device.cache = folder / "cache";
    CHECK(contents(*open_csv(config).train) == contents(*held.train));
    CHECK_FALSE(std::filesystem::exists(folder / "cache"));
    CHECK(contents(*open_csv(config, 0).train) == contents(*held.train));
    CHECK(TempFolder::names_in(folder / "cache").size() == 2);
    CHECK(contents(*open_csv(config, 0).train) == contents(*held.train));
    CHECK(TempFolder::names_in(folder / "cache").size() == 2);
}

TEST_CASE("several files are one data set, each with its header") {
    const TempFolder folder;
    folder.write("b.csv", std::string("y,x\nno,3\n"));
    folder.write("a.csv", std::string("x,y\n1,yes\n2,no\n"));
    const Config config = table_config("csv", folder.path() + "/*.csv");
    for (const int64_t memory : {kTableMemory, int64_t{0}}) {
        const DataSplits data = open_csv(config, memory);
        REQUIRE(data.train->size() == 3);
        CHECK(data.train->label(0) == 1);
        CHECK(data.train->label(2) == 0);
        CHECK(sample(*data.train, 1)[0] == 0.0F);  // the mean of 1, 2, 3
        CHECK(sample(*data.train, 2)[0] > 0.0F);
    }
}

TEST_CASE("columns become the values that were declared") {
    const TempFolder folder;
    Config config = of_text(folder, "age,job,city,pay\n17,cook,Rome,1\n25,,Oslo,2.5\n40,cook,NA,4\n,judge,Rome,2\n");
    using Texts = std::vector<std::string>;
    using Numbers = std::vector<double>;
    const auto text = [](const char* t) { return std::string(t); };
    config.data.columns = {
        column({{"name", text("age")}, {"type", text("numeric")}, {"mean", 1.0}, {"std", 2.0}, {"fill", 9.0}}),
        column({{"name", text("job")}, {"type", text("categorical")}, {"vocabulary", Texts{"judge", "cook"}}}),
        column({{"name", text("city")}, {"type", text("categorical")}, {"hash", int64_t{100}}}),
        column({{"name", text("ages")},
                {"type", text("bucket")},
                {"of", Texts{"age"}},
                {"boundaries", Numbers{18, 25, 30}}}),
        column(
            {{"name", text("jobs")}, {"type", text("cross")}, {"of", Texts{"ages", "job"}}, {"hash", int64_t{1000}}}),
        column({{"name", text("pay")}, {"type", text("target")}, {"mean", 1.0}, {"std", 0.5}}),
    };
    const DataSplits data = open_csv(config);
    CHECK(data.train->classes() == 0);
    const auto hashed = [](std::string_view t, uint64_t n) {
        return static_cast<float>(hash64(std::as_bytes(std::span(t))) % n);
    };
    CHECK(sample(*data.train, 0) == std::vector<float>{8, 1, hashed("Rome", 100), 0,
                                                       hashed("0\x1f"
                                                              "cook",
                                                              1000)});
    CHECK(sample(*data.train, 1) == std::vector<float>{12, 2, hashed("Oslo", 100), 2, hashed("2\x1f", 1000)});
    CHECK(sample(*data.train, 2) == std::vector<float>{19.5, 1, 100, 3,
                                                       hashed("3\x1f"
                                                              "cook",
                                                              1000)});
    CHECK(sample(*data.train, 3) == std::vector<float>{4, 0, hashed("Rome", 100), 4, hashed("\x1fjudge", 1000)});
    CHECK(std::bit_cast<float>(data.train->label(1)) == 3.0F);
    const auto columns = data.train->columns();
    CHECK(columns[0].categories == 0);
    CHECK(columns[1].categories == 3);
    CHECK(columns[2].categories == 101);
    CHECK(columns[3].categories == 5);
    CHECK(columns[4].categories == 1000);
    CHECK_FALSE(columns[4].deep);
    CHECK(hashed("Rome", 1'000'000) == 517163.0F);  // the hash is a promise
}

TEST_CASE("standard scaling is of the training data, for both splits") {
    const TempFolder folder;
    const Config config = of_text(folder, "x,y\n1,a\n2,b\n6,a\n", "x,y\n3,b\n10,a\n");
    const DataSplits data = open_csv(config);
    const auto std = static_cast<float>(std::sqrt(14.0 / 3.0));
    CHECK(sample(*data.train, 0)[0] == (1.0F - 3.0F) / std);
    CHECK(sample(*data.test, 0)[0] == 0.0F);
    CHECK(sample(*data.test, 1)[0] == (10.0F - 3.0F) / std);
}

TEST_CASE("what a column is, is guessed from all rows") {
    const TempFolder folder;
    std::string text = "a,b,c,y\n";
    for (int i = 0; i < 2000; ++i) text += "1," + std::to_string(i % 7) + ",-1e3,10\n";
    text += "x,1,2,9\n";
    const DataFacts facts = csv_facts(of_text(folder, text));
    CHECK(facts.columns[0].categories == 2);
    CHECK(facts.columns[1].categories == 0);
    CHECK(facts.columns[2].categories == 0);
    CHECK(facts.classes == 2);
    CHECK(facts.notes.back() == "y: label, 2 classes (9, 10)");  // numbers in their order
    // Numbers that are not whole are no labels.
    CHECK(csv_facts(of_text(folder, "x,y\n1,2.5\n2,3\n")).classes == 0);
    Config squared = of_text(folder, "x,y\n1,2\n2,3\n");
    CHECK(csv_facts(squared).classes == 2);
    squared.train.loss = "mse";
    CHECK(csv_facts(squared).classes == 0);
}

TEST_CASE("a NaN among numbers is a missing value, not a text that makes categories of them") {
    const TempFolder folder;
    for (const char* nan : {"nan", "NaN", "NAN"}) {
        const std::string text = "x,y\n1,0.5\n2,1.5\n" + std::string(nan) + ",2.5\n";
        const DataFacts facts = csv_facts(of_text(folder, text));
        CHECK(facts.columns[0].categories == 0);
        CHECK(facts.classes == 0);
        CHECK(refusal(of_text(folder, text + "3," + nan + "\n")).find("train.csv:5: column y: the target is missing") !=
              std::string::npos);
    }
}

TEST_CASE("a label of more than 100 numbers that nobody declared may be a target: said once they are that many") {
    const TempFolder folder;
    const auto last_note = [&](int classes, const std::string& prefix) {
        std::string text = "x,y\n";
        for (int i = 0; i < classes; ++i) text += "1," + prefix + std::to_string(i) + "\n";
        return csv_facts(of_text(folder, text)).notes.back();
    };
    CHECK(last_note(101, "").find("; a number to be learned? Then type = \"target\"") != std::string::npos);
    CHECK(last_note(100, "").find("learned") == std::string::npos);
    CHECK(last_note(101, "id").find("learned") == std::string::npos);
}

TEST_CASE("a header that is one field names the separator that it holds") {
    const TempFolder folder;
    CHECK(refusal(of_text(folder, "x;y\n1;a\n2;b\n"), ErrorKind::kUsage)
              .find("train.csv:1: one field alone, \"x;y\": set data.separator = \";\"") != std::string::npos);
    CHECK(refusal(of_text(folder, "x\ty\n1\ta\n2\tb\n"), ErrorKind::kUsage).find("set data.separator = \"\\t\"") !=
          std::string::npos);
}

TEST_CASE("what is unknown in the test split has no category") {
    const TempFolder folder;
    const DataSplits data = open_csv(of_text(folder, "x,y\nu,a\nv,b\n", "x,y\nw,b\nv,a\n"));
    CHECK(sample(*data.test, 0)[0] == -1.0F);
    CHECK(sample(*data.test, 1)[0] == 1.0F);
}

TEST_CASE("bad rows are refused with file and line") {
    const TempFolder folder;
    const auto says = [&](const std::string& train, const std::string& test, const std::string& words) {
        INFO(train << "/" << test);
        const std::string message = refusal(of_text(folder, train, test));
        INFO(message);
        CHECK(message.find(words) != std::string::npos);
    };
    says("x,y\n1,a\n2\n", "", "train.csv:3: 1 field, but the header has 2: \"2\"");
    says("x,y\n1,a\n2,b,3\n", "", "train.csv:3: 3 fields, but the header has 2: \"2,b,3\"");
    says("x,y\n1,a\n2,b\n", "x,y\n1,a\n\nno,b\n", "test.csv:4: column x: \"no\" is no number");
    says("x,y\n1,a\n2,b\n", "x,y\n1,a\n2,c\n", "test.csv:3: column y: label \"c\" is none of the 2 known: a, b");
    says("x,y\n1,a\n2,\n", "", "train.csv:3: column y: the label is missing");
    says("x,y\n1,\"a\n2,b\n", "",
         "train.csv:2: a quote (\") that opens in the record that starts here is never closed");
    says("x,y\n1,\"a\"b\n", "", "train.csv:2: after the closing quote of field 2 neither");
    says("x,y\n\"1\n\n\",a\n7\n", "", "train.csv:5: 1 field,");
    says("x,y\n1,a\n1,a\n", "", "column y: one label alone (a)");
    says("x,x\n1,a\n", "", "the name \"x\" stands twice in the header");
    says("x,y\n", "", "no records");
    says("", "", "train.csv: empty");
    says("\xff\xfex", "", "UTF-16");
    says("x,y\n1,a\n2,b\n", "z,y\n1,a\n", "its header lacks x of the training data; it has z, y");
}

TEST_CASE("numbers beyond fp32 are text unless declared, and then refused") {
    const TempFolder folder;
    Config config = of_text(folder, "x,y\n1e39,a\n2,b\n");
    CHECK(open_csv(config).train->columns()[0].categories == 2);
    config.data.columns = {column({{"name", std::string("x")}, {"type", std::string("numeric")}}),
                           column({{"name", std::string("y")}, {"type", std::string("label")}})};
    CHECK(refusal(config).find("train.csv:2: column x: \"1e39\" is no number that fp32 can hold") != std::string::npos);
}

TEST_CASE("columns that do not fit the file or each other are refused with their place") {
    const TempFolder folder;
    Config config = of_text(folder, "x,y\n1,a\n2,b\n");
    const auto says = [&](std::vector<ConfigTable> columns, const std::string& words) {
        config.data.columns = std::move(columns);
        const std::string message = refusal(config, ErrorKind::kUsage);
        INFO(message);
        CHECK(message.find(words) != std::string::npos);
    };
    const auto text = [](const char* t) { return std::string(t); };
    const ConfigTable y = column({{"name", text("y")}, {"type", text("label")}});
    says({column({{"name", text("z")}}), y}, "exp.toml:3:1: data.columns: z: the data have no column z");
    says({column({{"name", text("x")}, {"type", text("cross")}}), y}, "must name two columns");
    says({column({{"name", text("x")}, {"type", text("bucket")}}), y}, "boundaries are not set");
    says({column({{"name", text("x")}, {"type", text("bucket")}, {"boundaries", std::vector<double>{2, 1}}}), y},
         "boundaries must rise");
    says({column({{"name", text("x")}, {"type", text("text")}}), y}, "one of guess, numeric");
    says({y}, "no column but the label is read");
    says({y, y}, "the name stands twice");
    says({column({{"name", text("x")}, {"type", text("label")}}), y}, "2 columns are label or target");
    using Texts = std::vector<std::string>;
    const ConfigTable x = column({{"name", text("x")}});
    says({column({{"name", text("x")}, {"type", text("numeric")}, {"embedding", int64_t{4}}}), y},
         "x (numeric): embedding is for categories");
    says({column({{"name", text("x")}, {"type", text("numeric")}, {"vocabulary", Texts{"1"}}}), y},
         "x (numeric): vocabulary is for categories and labels");
    says({column({{"name", text("x")}, {"type", text("numeric")}, {"boundaries", std::vector<double>{1}}}), y},
         "x (numeric): boundaries are for a bucket");
    // What is to be learned must not be told, by whatever name.
    const std::string leak = " is made of y, which is the label: the network would be told what it is to learn";
    says({x, y, column({{"name", text("xy")}, {"type", text("cross")}, {"of", Texts{"x", "y"}}})}, "xy (cross)" + leak);
    says({x, y, column({{"name", text("again")}, {"of", Texts{"y"}}})}, "again (guess)" + leak);
    says({x, column({{"name", text("y")}}),
          column({{"name", text("answer")}, {"type", text("label")}, {"of", Texts{"y"}}})},
         "y (guess)" + leak);
}

TEST_CASE("tables without a header and with separators of their own") {
    const DataFacts facts = csv_facts([] {
        Config config = table_config("csv", kFiles + "/machine.data");
        config.data.header = false;
        config.train.loss = "mse";
        return config;
    }());
    CHECK(facts.samples == 209);
    CHECK(facts.shape.channels == 9);
    CHECK(facts.columns[0].categories == 30);
    CHECK(facts.classes == 0);

    Config iris = table_config("csv", kFiles + "/sklearn_iris.csv");
    iris.data.header = false;
    iris.data.skip_lines = 1;
    CHECK(csv_facts(iris).samples == 150);
    CHECK(csv_facts(iris).classes == 3);

    Config diabetes = table_config("csv", kFiles + "/diabetes_data_raw.csv.gz");
    diabetes.data.header = false;
    diabetes.data.separator = " ";
    diabetes.train.loss = "mse";
    CHECK(csv_facts(diabetes).samples == 442);
    CHECK(csv_facts(diabetes).shape.channels == 9);
}

TEST_CASE("text of a file in a message is short, on one line, and cut between characters") {
    CHECK(shown("a\tb\nc") == "a b c");
    const std::string x(59, 'x');
    CHECK(shown(x + "é") == x + "…");
    CHECK(shown(x + "y") == x + "y");
    CHECK(shown(x + "yz") == x + "y…");
    CHECK(shown(x.substr(1) + "€") == x.substr(1) + "…");
    CHECK(shown(std::string(80, '\x80')).size() > 57);  // no UTF-8 at all
}
