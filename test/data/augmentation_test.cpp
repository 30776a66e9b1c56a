// Augmentation: what each part does to a sample, that draws depend on (seed, epoch, position) alone, and that the
// loader applies it to training samples.
#include "data/augmentation.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "core/hash.hpp"
#include "data/loader.hpp"
#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

constexpr SampleShape kShape{6, 5, 3};

// Sample i: the values i, i + 1/256, i + 2/256 …, all different.
class Ramp final : public Dataset {
  public:
    int64_t size() const override { return 50; }
    SampleShape shape() const override { return kShape; }
    int classes() const override { return 10; }
    int32_t read(int64_t index, std::span<float> pixels) const override {
        for (size_t i = 0; i < pixels.size(); ++i) {
            pixels[i] = static_cast<float>(index) + static_cast<float>(i) / 256.0f;
        }
        return label(index);
    }
    int32_t label(int64_t index) const override { return static_cast<int32_t>(index % 10); }
    std::string fingerprint() const override { return "ramp"; }
};

using Pixels = std::vector<float>;

Pixels ramp() {
    Pixels pixels(static_cast<size_t>(kShape.elements()));
    Ramp().read(0, pixels);
    return pixels;
}

Pixels varied(const AugmentationSpec& spec, int64_t position, uint64_t seed = 1, int64_t epoch = 0,
              const Pixels& from = ramp()) {
    Pixels pixels = from;
    Augmentation(spec, seed, kShape).apply(epoch, position, pixels);
    return pixels;
}

AugmentationSpec everything() {
    AugmentationSpec spec;
    spec.pad_crop = 2;
    spec.flip = spec.resized_crop = true;
    spec.brightness = spec.contrast = spec.saturation = 0.4f;
    spec.cutout = 2;
    return spec;
}

size_t at(int y, int x, int c) {
    return static_cast<size_t>((y * kShape.width + x) * kShape.channels + c);
}

}  // namespace

TEST_CASE("what is drawn is a function of seed, epoch and position, and each of them matters") {
    const AugmentationSpec spec = everything();
    const Ramp data;
    const auto sample = [&](uint64_t seed, int64_t epoch, int64_t position) {
        Pixels pixels(static_cast<size_t>(kShape.elements()));
        CHECK(Augmentation(spec, seed, kShape).read(data, 7, epoch, position, pixels) == 7);
        return pixels;
    };
    const Pixels first = sample(1, 2, 3);
    CHECK(sample(1, 2, 3) == first);
    CHECK(sample(2, 2, 3) != first);
    CHECK(sample(1, 3, 3) != first);
    CHECK(sample(1, 2, 4) != first);
    CHECK(sample(1, 2, 3 + (int64_t{1} << 32)) != first);
}

TEST_CASE("pad and crop gives a window of the padded picture, each of them about as often") {
    AugmentationSpec spec;
    spec.pad_crop = 2;
    spec.scales = {{0.5f, 0.25f}};
    const float black = (0.0f - 0.5f) / 0.25f;
    const Pixels from = ramp();
    std::map<std::pair<int, int>, int> seen;
    constexpr int kTimes = 2500;
    for (int position = 0; position < kTimes; ++position) {
        const Pixels got = varied(spec, position);
        int found = 0;
        for (int down = -2; down <= 2; ++down) {
            for (int right = -2; right <= 2; ++right) {
                bool same = true;
                for (int y = 0; y < kShape.height && same; ++y) {
                    for (int x = 0; x < kShape.width && same; ++x) {
                        for (int c = 0; c < 3; ++c) {
                            const int v = y - down, u = x - right;
                            const bool inside = v >= 0 && v < kShape.height && u >= 0 && u < kShape.width;
                            same &= got[at(y, x, c)] == (inside ? from[at(v, u, c)] : black);
                        }
                    }
                }
                if (!same) continue;
                ++found;
                ++seen[{down, right}];
            }
        }
        REQUIRE(found == 1);
    }
    CHECK(seen.size() == 25);
    for (const auto& [window, times] : seen) CHECK((times > 60 && times < 140));
}

TEST_CASE("a pad larger than the picture can move all of it out") {
    AugmentationSpec spec;
    spec.pad_crop = 40;
    int blank = 0;
    for (int position = 0; position < 2000; ++position) blank += varied(spec, position) == Pixels(90, 0.0f);
    CHECK((blank > 1900 && blank < 2000));
}

TEST_CASE("half of the samples are mirrored, rows stay rows and colours colours") {
    AugmentationSpec spec;
    spec.flip = true;
    Pixels mirrored = ramp();
    for (int y = 0; y < kShape.height; ++y) {
        for (int x = 0; x < kShape.width; ++x) {
            for (int c = 0; c < 3; ++c) mirrored[at(y, x, c)] = ramp()[at(y, kShape.width - 1 - x, c)];
        }
    }
    int flipped = 0;
    for (int position = 0; position < 1000; ++position) {
        const Pixels got = varied(spec, position);
        REQUIRE((got == mirrored || got == ramp()));
        flipped += got == mirrored;
    }
    CHECK((flipped > 440 && flipped < 560));
}

TEST_CASE("cutout sets a square to 0, around any pixel, cut off at the borders") {
    AugmentationSpec spec;
    spec.cutout = 3;
    const Pixels from(90, 7.0f);
    std::set<std::vector<int>> masks;
    for (int position = 0; position < 500; ++position) {
        const Pixels got = varied(spec, position, 1, 0, from);
        std::vector<int> box{99, 99, -1, -1};
        int zeros = 0;
        for (int y = 0; y < kShape.height; ++y) {
            for (int x = 0; x < kShape.width; ++x) {
                if (got[at(y, x, 0)] != 0.0f) continue;
                ++zeros;
                box = {std::min(box[0], y), std::min(box[1], x), std::max(box[2], y), std::max(box[3], x)};
            }
        }
        const int height = box[2] - box[0] + 1, width = box[3] - box[1] + 1;
        REQUIRE(zeros == height * width);
        REQUIRE((height >= 2 && height <= 3 && width >= 2 && width <= 3));
        masks.insert(box);
    }
    CHECK(masks.size() == 30);  // one for each pixel
}

TEST_CASE(
    "colours change as stated: factors from 1 - range to 1 + range, gray has no saturation, all stays in 0 to 1") {
    const Pixels from = [] {
        Pixels pixels(90);
        for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = 0.2f + 0.005f * static_cast<float>(i);
        return pixels;
    }();
    AugmentationSpec brightness;
    brightness.brightness = 0.5f;
    float least = 9, most = 0;
    for (int position = 0; position < 500; ++position) {
        const Pixels got = varied(brightness, position, 1, 0, from);
        const float by = got[0] / from[0];
        least = std::min(least, by);
        most = std::max(most, by);
        for (size_t i = 0; i < 90; ++i) REQUIRE(got[i] == Approx(std::min(1.0f, from[i] * by)).epsilon(1e-5));
    }
    CHECK((least >= 0.4999f && least < 0.52f && most <= 1.5001f && most > 1.48f));

    AugmentationSpec contrast;
    contrast.contrast = 0.3f;
    const Pixels got = varied(contrast, 3, 1, 0, from);
    const float stretched = (got[89] - got[0]) / (from[89] - from[0]);
    CHECK((stretched > 0.7f && stretched < 1.3f && stretched != 1.0f));

    AugmentationSpec saturation;
    saturation.saturation = 0.9f;
    Pixels gray(90);
    for (size_t i = 0; i < 90; ++i) gray[i] = static_cast<float>(i / 3) / 32.0f;
    const Pixels same = varied(saturation, 5, 1, 0, gray);
    for (size_t i = 0; i < 90; ++i) CHECK(same[i] == Approx(gray[i]).margin(1e-6));
    CHECK(varied(saturation, 5, 1, 0, from) != from);

    AugmentationSpec wild;
    wild.brightness = wild.contrast = wild.saturation = 3;
    wild.scales = {{0.5f, 0.25f}};
    for (int position = 0; position < 50; ++position) {
        for (const float pixel : varied(wild, position, 1, 0, Pixels(90, 1.5f)))
            CHECK((pixel >= -2.0f && pixel <= 2.0f));
    }
}

TEST_CASE("a part that is switched on changes no other part's draws") {
    AugmentationSpec alone;
    alone.pad_crop = 2;
    AugmentationSpec both = alone;
    both.cutout = 1;
    for (int position = 0; position < 50; ++position) {
        const Pixels left = varied(alone, position), right = varied(both, position);
        int differ = 0;
        for (size_t i = 0; i < left.size(); ++i) differ += left[i] != right[i] && right[i] != 0.0f;
        CHECK(differ == 0);
    }
}

TEST_CASE("random regions lie inside, have the areas and ratios asked for, and fall back to the middle") {
    const RandomCrop::Spec spec{0.08, 1, 0.75, 4.0 / 3};
    const RandomStream random(1, Purpose::kAugmentation, 1, 0);
    double area = 0;
    std::set<int> tops;
    constexpr int kTimes = 2000;
    for (uint64_t position = 0; position < kTimes; ++position) {
        const PictureRegion r = RandomCrop(spec, random, position).region(300, 400);
        REQUIRE((r.top >= 0 && r.left >= 0 && r.top + r.height <= 300 && r.left + r.width <= 400));
        const double ratio = double(r.width) / r.height, share = double(r.width) * r.height / (300.0 * 400.0);
        REQUIRE((ratio > 0.73 && ratio < 1.36 && share > 0.079 && share <= 1));
        area += share / kTimes;
        tops.insert(r.top);
    }
    CHECK((area > 0.42 && area < 0.56));
    CHECK(tops.size() > 100);
    // Nothing of these ratios fits into a strip: its middle part does.
    const PictureRegion wide = RandomCrop({0.9, 1, 0.75, 1.25}, random, 0).region(10, 1000);
    CHECK(wide == PictureRegion{0, 493, 10, 13});
    const PictureRegion tall = RandomCrop({0.9, 1, 0.75, 1.25}, random, 0).region(1000, 10);
    CHECK(tall == PictureRegion{493, 0, 13, 10});
    CHECK(RandomCrop(spec, random, 0).region(1, 1) == PictureRegion{0, 0, 1, 1});
}

TEST_CASE("these draws are part of what a run computes: they never change") {
    Pixels pixels(static_cast<size_t>(kShape.elements()));
    AugmentationSpec spec = everything();
    spec.scales = {{0.5f, 0.25f}};
    uint64_t hash = 0;
    for (int64_t position = 0; position < 16; ++position) {
        Augmentation(spec, 11, kShape).read(Ramp(), 0, 3, position, pixels);
        hash = hash64(std::as_bytes(std::span(pixels)), hash);
    }
    CHECK(hex16(hash) == "5547275b30453c7f");
}

TEST_CASE("the loader varies training samples alike with any number of threads, and nothing where it is not asked to") {
    const Ramp data;
    const ShardPlan plan(data.size(), 16, 4, Layout::kBatch, LastBatch::kKeep);
    const auto pixels = [&](int threads, const AugmentationSpec& spec) {
        LoaderOptions options;
        options.local = {0, 4};
        options.last_update = 9;
        options.threads = threads;
        options.augmentation = spec;
        Loader loader(data, plan, options);
        Pixels all;
        for (int64_t u = 1; u <= 9; ++u) {
            const Batch& batch = loader.next();
            all.insert(all.end(), batch.pixels, batch.pixels + batch.rows * kShape.elements());
        }
        return all;
    };
    const Pixels expected = pixels(0, everything());
    CHECK(pixels(1, everything()) == expected);
    CHECK(pixels(3, everything()) == expected);
    const Pixels plain = pixels(1, {});
    CHECK(plain != expected);
    Pixels sample(static_cast<size_t>(kShape.elements()));
    data.read(EpochOrder(1, 0, data.size()).index(0), sample);
    CHECK(Pixels(plain.begin(), plain.begin() + kShape.elements()) == sample);
}

TEST_CASE("rows of a table are no pictures, and scales must fit the channels") {
    CHECK(caught([] { Augmentation(everything(), 1, {1, 1, 14}); })->kind == ErrorKind::kUsage);
    AugmentationSpec spec = everything();
    spec.scales = {{}, {}};
    CHECK(caught([&] { Augmentation(spec, 1, kShape); })->says("data.mean"));
}
