// Resizing against its definition in floating point, and against cases that can be worked out by hand.
#include "io/resize.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

Picture random_picture(int height, int width, int channels, unsigned seed) {
    std::mt19937 random(seed);
    Picture picture{height, width, channels, {}};
    for (int i = 0; i < height * width * channels; ++i) picture.pixels.push_back(static_cast<uint8_t>(random() % 256));
    return picture;
}

// The share of input pixel i in output pixel x of an axis from n to m.
double share(int i, int x, int n, int m) {
    const double support = std::max(1.0, double(n) / m);
    double sum = 0, own = 0;
    for (int j = 0; j < n; ++j) {
        const double w = std::max(0.0, 1 - std::fabs(j + 0.5 - (x + 0.5) * n / m) / support);
        sum += w;
        if (j == i) own = w;
    }
    return own / sum;
}

double expected(const Picture& from, const PictureRegion& region, int height, int width, int y, int x, int c) {
    double sum = 0;
    for (int i = 0; i < region.height; ++i) {
        for (int j = 0; j < region.width; ++j) {
            const int at = ((region.top + i) * from.width + region.left + j) * from.channels + c;
            sum += share(i, y, region.height, height) * share(j, x, region.width, width) *
                   from.pixels[static_cast<size_t>(at)];
        }
    }
    return sum;
}

}  // namespace

TEST_CASE("the same size gives the same picture, and a region of it is cut out as it is") {
    const Picture picture = random_picture(9, 7, 3, 1);
    CHECK(resized(picture, {0, 0, 9, 7}, 9, 7).pixels == picture.pixels);
    const Picture part = resized(picture, {2, 3, 5, 4}, 5, 4);
    for (size_t y = 0; y < 5; ++y) {
        for (size_t i = 0; i < 12; ++i) CHECK(part.pixels[y * 12 + i] == picture.pixels[(2 + y) * 21 + 9 + i]);
    }
}

TEST_CASE("cases by hand: halving averages under a triangle, doubling mixes three to one") {
    const Picture row{1, 4, 1, {0, 80, 160, 240}};
    // Centre 1, support 2: weights 0.75 0.75 0.25 of pixels 0, 1, 2, normalised.
    CHECK(resized(row, {0, 0, 1, 4}, 1, 2).pixels == std::vector<uint8_t>{57, 183});
    const Picture two{1, 2, 1, {0, 100}};
    CHECK(resized(two, {0, 0, 1, 2}, 1, 4).pixels == std::vector<uint8_t>{0, 25, 75, 100});
    const Picture flat{3, 5, 3, std::vector<uint8_t>(45, 201)};
    for (const int size : {1, 2, 7, 64}) {
        for (const uint8_t pixel : resized(flat, {0, 0, 3, 5}, size, size).pixels) CHECK(pixel == 201);
    }
}

TEST_CASE("every pixel is within one of the definition in floating point, whatever the sizes and the region") {
    const unsigned seed = 5;
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto pick = [&](int least, int most) {
        return least + static_cast<int>(random() % unsigned(most - least + 1));
    };
    for (int round = 0; round < 40; ++round) {
        const Picture picture = random_picture(pick(1, 23), pick(1, 23), pick(0, 1) == 0 ? 1 : 3, random());
        PictureRegion region;
        region.height = pick(1, picture.height);
        region.width = pick(1, picture.width);
        region.top = pick(0, picture.height - region.height);
        region.left = pick(0, picture.width - region.width);
        const int height = pick(1, 19), width = pick(1, 19);
        const Picture out = resized(picture, region, height, width);
        REQUIRE(out.pixels.size() == static_cast<size_t>(height * width * picture.channels));
        double worst = 0;
        for (int y = 0; y < height; ++y) {
            for (int x = 0; x < width; ++x) {
                for (int c = 0; c < picture.channels; ++c) {
                    const double got = out.pixels[static_cast<size_t>((y * width + x) * picture.channels + c)];
                    worst = std::max(worst, std::fabs(got - expected(picture, region, height, width, y, x, c)));
                }
            }
        }
        CHECK(worst < 0.6);
    }
}

TEST_CASE("a region outside the picture is refused") {
    const Picture picture = random_picture(4, 4, 3, 1);
    for (const PictureRegion region : {PictureRegion{0, 0, 5, 4}, {-1, 0, 2, 2}, {0, 3, 2, 2}, {0, 0, 0, 2}}) {
        CHECK(caught([&] { resized(picture, region, 2, 2); })->kind == ErrorKind::kRuntime);
    }
}
