// Real pictures, whole and damaged, against what another decoder says of them.
#include "io/picture.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "core/hash.hpp"
#include "io/files.hpp"
#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

const std::string kFolder = std::string(LOCKSTEP_TEST_FILES) + "/pictures/";

using Row = std::map<std::string, std::string>;

std::vector<std::string> cells(const std::string& line) {
    std::vector<std::string> out{""};
    for (const char c : line) {
        if (c == '\t') {
            out.emplace_back();
        } else {
            out.back() += c;
        }
    }
    return out;
}

std::vector<Row> facts() {
    std::ifstream file(kFolder + "FACTS.tsv");
    std::string line;
    std::getline(file, line);
    const std::vector<std::string> names = cells(line);
    std::vector<Row> rows;
    while (std::getline(file, line)) {
        const std::vector<std::string> values = cells(line);
        Row& row = rows.emplace_back();
        for (size_t i = 0; i < values.size(); ++i) row[names[i]] = values[i];
    }
    REQUIRE(rows.size() > 40);
    return rows;
}

Picture decode(const std::string& name) {
    return decode_picture(read_file(kFolder + name), name);
}

std::vector<double> mean_of(Picture picture) {
    set_channels(picture, 3);
    std::vector<double> sums(3);
    for (size_t i = 0; i < picture.pixels.size(); ++i) sums[i % 3] += picture.pixels[i];
    for (double& sum : sums) sum *= 3.0 / static_cast<double>(picture.pixels.size());
    return sums;
}

Picture gray(int height, int width, std::vector<uint8_t> pixels) {
    return {height, width, 1, std::move(pixels)};
}

}  // namespace

TEST_CASE("whole pictures have the size, channels and mean colour that another decoder finds") {
    int decoded = 0;
    for (Row& row : facts()) {
        if (row["pillow"] != "ok") continue;
        INFO(row["file"]);
        const Picture picture = decode(row["file"]);
        ++decoded;
        CHECK(std::to_string(picture.width) + "x" + std::to_string(picture.height) == row["size"]);
        const bool is_gray = row["mode"] == "L" || row["mode"] == "1" || row["mode"] == "I;16" || row["mode"] == "LA";
        CHECK(picture.channels == (is_gray ? 1 : 3));
        const PictureSize size = picture_size(read_file(kFolder + row["file"]), row["file"]);
        CHECK(size == PictureSize{picture.height, picture.width});
        if (row["mean_RGB"].empty()) continue;
        std::istringstream expected(row["mean_RGB"]);
        const double tolerance = row["mode"] == "CMYK" ? 25 : 2;
        for (const double mean : mean_of(picture)) {
            double other = -1000;
            expected >> other;
            CHECK(std::fabs(mean - other) < tolerance);
        }
    }
    CHECK(decoded > 35);
}

TEST_CASE("damaged and empty pictures are refused in one line that names them and an offset") {
    int refused = 0;
    for (Row& row : facts()) {
        if (row["pillow"] == "ok") continue;
        INFO(row["file"]);
        const auto error = caught([&] { decode(row["file"]); });
        REQUIRE(error);
        ++refused;
        CHECK(error->kind == ErrorKind::kData);
        CHECK(error->one_line());
        CHECK(error->says(row["file"]));
        CHECK((error->says("byte 0x") || row["bytes"] == "0"));
    }
    CHECK(refused >= 6);
    CHECK(caught([] { decode("jpeg/made_testorig_minus54.jpg"); })->says("truncated"));
    const auto text = caught([] { decode_picture(bytes_of("GIF89a, no picture of ours"), "a.jpg"); });
    CHECK(text->says("a.jpg: neither JPEG"));
    CHECK(text->says("47 49 46 38"));
}

TEST_CASE("a picture cut anywhere is refused, never half of it given") {
    for (const std::string name :
         {"jpeg/ljt_testorig.jpg", "jpeg/go_video-001.progressive.jpeg", "png/go_video-001.png"}) {
        const Bytes whole = read_file(kFolder + name);
        for (size_t bytes = 0; bytes + 64 < whole.size(); bytes += whole.size() / 23) {
            INFO(name << " cut to " << bytes);
            const auto error = caught([&] { decode_picture(std::span(whole).first(bytes), name); });
            CHECK((error && error->kind == ErrorKind::kData && error->says(name)));
        }
    }
}

TEST_CASE("pictures decode to these bits: another decoder, or other settings of it, would give others") {
    const std::map<std::string, std::string> expected{
        {"jpeg/go_video-001.jpeg", "288fb80283e21819"},
        {"jpeg/go_video-001.q50.420.jpeg", "2ff2111fb92ee619"},
        {"jpeg/go_video-001.q50.422.jpeg", "f0db53ff86c2b28a"},
        {"jpeg/go_video-001.progressive.jpeg", "288fb80283e21819"},
        {"jpeg/tv_cmyk_pytorch.jpg", "5d30f2405cdca012"},
        {"jpeg/ljt_testimgari.jpg", "8f486b7fa3387fd8"},
        {"png/go_basn6a16.png", "ef276b9f3256ba6d"},
        {"png/pillow_pil123p.png", "eec373d1442969eb"},
    };
    for (const auto& [name, hash] : expected) {
        INFO(name);
        const Picture picture = decode(name);
        CHECK(hex16(hash64(std::as_bytes(std::span(picture.pixels)))) == hash);
    }
}

TEST_CASE("a PNG is what it says: 1-bit rows, palettes and interlaced rows come out as their bytes") {
    const Picture gradient = decode("png/go_gray-gradient.interlaced.png");
    REQUIRE(gradient.pixels.size() == 16);
    for (size_t i = 0; i < 16; ++i) CHECK(gradient.pixels[i] == 17 * i);
    const Picture bits = decode("png/go_basn0g01.png");
    CHECK(bits.pixels.front() == 255);
    CHECK(std::count(bits.pixels.begin(), bits.pixels.end(), 0) +
              std::count(bits.pixels.begin(), bits.pixels.end(), 255) ==
          32 * 32);
}

TEST_CASE("gray becomes three equal channels, colours become gray by the weights of BT.601") {
    Picture picture = gray(1, 2, {7, 200});
    set_channels(picture, 3);
    CHECK(picture.pixels == std::vector<uint8_t>{7, 7, 7, 200, 200, 200});
    set_channels(picture, 1);
    CHECK(picture.pixels == std::vector<uint8_t>{7, 200});
    Picture colours{1, 3, 3, {255, 0, 0, 0, 255, 0, 0, 0, 255}};
    set_channels(colours, 1);
    CHECK(colours.pixels == std::vector<uint8_t>{76, 150, 29});
}
