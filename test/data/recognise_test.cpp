// What a file or a folder is goes by what is in it, whatever its name; a table's name helps where bytes say nothing.
#include "data/recognise.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "data/picture_fixture.hpp"
#include "io/gzip_maker.hpp"

using namespace lockstep;
using namespace lockstep::test;
namespace fs = std::filesystem;

namespace {

const std::string kData = std::string(LOCKSTEP_TEST_FILES) + "/";

std::string copied(const TempFolder& folder, const std::string& from, const std::string& to) {
    return folder.write(to, read_file(kData + from));
}

std::string refusal(const std::string& path) {
    const auto error = caught([&] { kind_of_file(path); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kData);
    CHECK(error->one_line());
    CHECK(error->says(path + ": "));
    return error->message;
}

}  // namespace

TEST_CASE("libsvm shows itself by its rows, under every name that its files have") {
    const TempFolder folder;
    for (const char* name : {"a9a", "a9a.t", "a9a.txt", "heart_scale", "news20.scale", "x.tr", "x.libsvm", "x.svm"}) {
        INFO(name);
        CHECK(kind_of_file(copied(folder, "heart_scale", name)) == DataKind::kLibsvm);
        const std::string packed = folder.write(std::string(name) + ".gz", gzip(read_file(kData + "heart_scale")));
        CHECK(kind_of_file(packed) == DataKind::kLibsvm);
    }
    for (const char* text : {"1 1:0.5", "# made by hand\n\n-1 3:1e-5 7:2\n", "+1\n-1\n2.5 1:7\r\n", "1,3 5:1\n",
                             "2 qid:10 1:0.5\n", "1\t1:2\t3:4 # a row\n"}) {
        INFO(text);
        CHECK(kind_of_file(folder.write("rows", std::string(text))) == DataKind::kLibsvm);
    }
    for (const char* text : {"1 2 3\n", "a 1:2\n", "1:2 3:4\n", "12:30 a clock\n", "1 x:2\n", "1\n2\n3\n", "1 1:a\n"}) {
        INFO(text);
        CHECK(caught([&] { kind_of_file(folder.write("rows", std::string(text))); }));
    }
}

TEST_CASE("what is in a file decides, and not its name") {
    const TempFolder folder;
    CHECK(kind_of_file(copied(folder, "npy/f4_2x3.npy", "a.txt")) == DataKind::kNpy);
    CHECK(kind_of_file(copied(folder, "npy/xy_stored.npz", "a.zip")) == DataKind::kNpz);
    CHECK(kind_of_file(copied(folder, "tfrecord/tf221_three.tfrecord", "train-1")) == DataKind::kTfrecord);
    const Bytes records = gzip(read_file(kData + "tfrecord/tf221_three.tfrecord"));
    CHECK(kind_of_file(folder.write("train-2.gz", records)) == DataKind::kTfrecord);
    CHECK(kind_of_file(copied(folder, "pictures/cifar10_png/3/00.png", "a.csv")) == DataKind::kPicture);
    CHECK(kind_of_file(folder.write("labels", std::string("\0\0\10\1\0\0\0\1\7", 9))) == DataKind::kIdx);
    CHECK(kind_of_file(folder.write("packed", gzip(bytes_of(std::string("\0\0\10\1\0\0\0\1\7", 9))))) ==
          DataKind::kIdx);
    CHECK(kind_of_file(folder.write("A.CSV", std::string("a,b\n1,2\n"))) == DataKind::kCsv);
    CHECK(kind_of_file(folder.write("a.tsv.gz", gzip(bytes_of("a\tb\n")))) == DataKind::kCsv);
    CHECK(kind_of_file(copied(folder, "pictures/cifar10_test_first20.bin", "x.bin")) == DataKind::kCifar);
    CHECK(kind_of_file(folder.write("cut.bin", std::string(5000, '\3'))) == DataKind::kCifar);  // its reader tells
}

TEST_CASE("what is empty, or of a kind that is not read, is called so") {
    const TempFolder folder;
    for (const char* name : {"e.csv", "e.npz", "e.npy", "e.bin", "e.tfrecord", "e.jpg", "e", "e-idx3-ubyte"}) {
        const std::string path = folder.write(name, std::string());
        CHECK(refusal(path) == path + ": empty");
    }
    CHECK(refusal(folder.write("e.gz", gzip({}))) == folder / "e.gz: empty: 0 bytes after unpacking");
    const auto words = [&](const std::string& start) { return refusal(folder.write("foreign", start)); };
    CHECK(words("BZh91AY&SY").find("bunzip2") != std::string::npos);
    CHECK(words(std::string("\xfd"
                            "7zXZ\0\0",
                            7))
              .find("unxz") != std::string::npos);
    CHECK(words("PAR1 ").find("Parquet") != std::string::npos);
    CHECK(words("\x89HDF\r\n\x1a\n").find("HDF5") != std::string::npos);
    CHECK(words("\x80\4\x95").find("pickle") != std::string::npos);
    CHECK(words(std::string(257, 'a') + "ustar").find("tar -xf") != std::string::npos);
    CHECK(words("Call me Ishmael.").find("no kind of file known here") != std::string::npos);
    fs::create_symlink("loop", folder / "loop");
    CHECK(caught([&] { kind_of_file(folder / "loop"); })->says("Too many levels of symbolic links"));
}

TEST_CASE("folders of TFRecords, of CIFAR's files and of pictures by class are told apart") {
    const TempFolder folder;
    const auto made = [&](const char* name) {
        fs::create_directories(folder / name);
        return folder / name;
    };
    const std::string records = made("records");
    CHECK(!kind_of_folder(records));
    copied(folder, "tfrecord/validation-00000-of-00002", "records/validation-00000-of-00002");
    folder.write("records/.hidden", std::string("x"));
    CHECK(kind_of_folder(records) == DataKind::kTfrecord);
    const std::string cifar = made("cifar");
    folder.write("cifar/batches.meta.txt", std::string("airplane\n"));
    copied(folder, "pictures/cifar10_test_first20.bin", "cifar/data_batch_1.bin");
    CHECK(kind_of_folder(cifar) == DataKind::kCifar);
    CHECK(kind_of_folder(kData + "pictures/cifar10_png") == DataKind::kImageFolder);
    const std::string flat = made("flat");
    copied(folder, "pictures/cifar10_png/3/00.png", "flat/00.png");
    CHECK(caught([&] { kind_of_folder(flat); })->says("pictures must lie in a folder for each class"));
    const std::string text = made("text");
    folder.write("text/readme", std::string("nothing"));
    CHECK(!kind_of_folder(text));
}
