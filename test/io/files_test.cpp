// read_file, write_file_atomic and their kin: whole or absent, on disks that are full or read-only, too.
#include "io/files.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>

#include "io/atomic_file.hpp"
#include "io/random_file.hpp"
#include "io/shown_path.hpp"
#include "io/source_files.hpp"
#include "io/temp_folder.hpp"

using namespace lockstep;
using namespace lockstep::test;

namespace {

// A file system of `kib` KiB over a folder, seen by this process alone and gone with it. Needs CAP_SYS_ADMIN.
class SmallDisk {
  public:
    SmallDisk(const std::string& folder, int kib) : folder_(folder) {
        const std::string options = fmt::format("size={}k,nr_inodes=64", kib);
        mounted_ = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                   ::mount("tmpfs", folder.c_str(), "tmpfs", 0, options.c_str()) == 0;
    }
    ~SmallDisk() {
        if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
    }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;

    bool mounted() const {
        if (!mounted_) WARN("skipped: mounting a small file system needs root (CAP_SYS_ADMIN)");
        return mounted_;
    }
    bool make_read_only() const {
        return ::mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0;
    }

  private:
    std::string folder_;
    bool mounted_ = false;
};

// Writes beyond `bytes` fail in this process, for any user.
class FileSizeLimit {
  public:
    explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit now{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &now);
    }
    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;

  private:
    rlimit before_{};
    void (*handler_)(int);
};

}  // namespace

TEST_CASE("a file reads back as it was written") {
    const TempFolder folder;
    for (const size_t size : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{4097}, size_t{3'000'001}}) {
        Bytes bytes(size);
        for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 31 >> 3);
        write_file_atomic(folder / "atomic", bytes);
        write_file_synced(folder / "synced", bytes);
        CHECK(read_file(folder / "atomic") == bytes);
        CHECK(read_file(folder / "synced") == bytes);
        CHECK(folder.names().size() == 2);
    }
}

TEST_CASE("a file without a size, as in /proc, is read to its end") {
    CHECK(text_of(read_file("/proc/self/status")).find("Name:") == 0);
    CHECK(read_file("/dev/null").empty());
}

TEST_CASE("reading what is not there, a folder, or through a file is a data error with path and reason") {
    const TempFolder folder;
    const std::string file = folder.write("file", "x");
    struct Row {
        std::string path, reason;
    };
    for (const Row& row : {Row{folder / "missing", "No such file or directory"}, Row{folder.path(), "it is a folder"},
                           Row{file + "/below", "Not a directory"}}) {
        const auto error = caught([&] { read_file(row.path); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kData);
        CHECK(error->says(row.path));
        CHECK(error->says(row.reason));
        CHECK(error->one_line());
    }
}

TEST_CASE("the name of a file never breaks a message, and is never cut off at a zero") {
    CHECK(shown_path("data/a b.csv") == "data/a b.csv");
    CHECK(shown_path("données.csv") == "données.csv");
    const std::string zero = "name" + std::string(1, '\0') + "\r\n\x1b[2J\x7f";
    CHECK(shown_path(zero) == "name\\x00\\x0d\\x0a\\x1b[2J\\x7f");
    const TempFolder folder;
    folder.write("name", "seen");
    const std::string path = folder / std::string("name") + std::string(1, '\0') + "\n.csv";
    for (const auto& open :
         {+[](const std::string& p) { read_file(p); }, +[](const std::string& p) { RandomFile f(p); },
          +[](const std::string& p) { write_file_synced(p, {}); },
          +[](const std::string& p) { source_files({p}, "data.train"); }}) {
        const auto error = caught([&] { open(path); });
        REQUIRE(error);
        CHECK(error->one_line());
        CHECK(error->says("name\\x00\\x0a.csv"));
    }
    CHECK(text_of(read_file(folder / "name")) == "seen");
}

TEST_CASE("files are listed in byte order; one with a line end in its name is refused") {
    const TempFolder folder;
    for (const char* name : {"b.csv", "B.csv", "a.csv", ".hidden.csv"}) folder.write(name, "1");
    const std::vector<std::string> sorted{folder / "B.csv", folder / "a.csv", folder / "b.csv"};
    CHECK(source_files({folder.path()}, "data.train") == sorted);
    CHECK(source_files({folder / "*.csv"}, "data.train") == sorted);
    folder.write("two\nlines.csv", "1");
    for (const std::string& path : {folder.path(), folder / "*.csv", folder / "two\nlines.csv"}) {
        const auto error = caught([&] { source_files({path}, "data.train"); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kUsage);
        CHECK(error->says("data.train: " + folder.path() + "/two\\x0alines.csv: a control character"));
        CHECK(error->one_line());
    }
}

TEST_CASE("an atomic write replaces a file as a whole and leaves nothing else") {
    const TempFolder folder;
    const std::string path = folder.write("f", "an older, longer content");
    write_file_atomic(path, std::string("new"));
    CHECK(text_of(read_file(path)) == "new");
    CHECK(folder.names() == std::vector<std::string>{"f"});
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    const mode_t mask = ::umask(022);
    ::umask(mask);
    CHECK((status.st_mode & 0777) == (0666 & ~mask));
}

TEST_CASE("a file name may be as long as the system allows") {
    const TempFolder folder;
    const std::string name(255, 'n');
    write_file_atomic(folder / name, std::string("x"));
    CHECK(folder.names() == std::vector<std::string>{name});
}

TEST_CASE("a temporary file left by a killed process is stepped over, and is not touched") {
    const TempFolder folder;
    const std::string left = folder.write(fmt::format(".lockstep-tmp-{}-0", ::getpid()), "left");
    write_file_atomic(folder / "f", std::string("x"));
    CHECK(text_of(read_file(folder / "f")) == "x");
    CHECK(text_of(read_file(left)) == "left");
}

TEST_CASE("a file that is not committed never appears") {
    const TempFolder folder;
    {
        AtomicFile file(folder / "f");
        file.write(bytes_of("half of it"));
        CHECK_FALSE(std::filesystem::exists(folder / "f"));
    }
    CHECK(folder.names().empty());
}

TEST_CASE("a write that fails half way is a run-time error and leaves the old file and nothing else") {
    const TempFolder folder;
    const std::string path = folder.write("f", "old");
    std::optional<Caught> atomic, synced;
    {
        const FileSizeLimit limit(1000);
        atomic = caught([&] { write_file_atomic(path, Bytes(5000)); });
        synced = caught([&] { write_file_synced(folder / "g", Bytes(5000)); });
    }
    REQUIRE(atomic);
    CHECK(atomic->kind == ErrorKind::kRuntime);
    CHECK(atomic->says(path));
    CHECK(atomic->says("File too large"));
    CHECK(text_of(read_file(path)) == "old");
    REQUIRE(synced);
    CHECK(synced->kind == ErrorKind::kRuntime);
}

TEST_CASE("a full disk is a run-time error with the reason, and leaves the old file and nothing else") {
    const TempFolder folder;
    const SmallDisk disk(folder.path(), 64);
    if (!disk.mounted()) return;
    const std::string path = folder.write("f", "old");
    for (const size_t size : {size_t{70'000}, size_t{5'000'000}}) {
        const auto error = caught([&] { write_file_atomic(path, Bytes(size)); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kRuntime);
        CHECK(error->says(path));
        CHECK(error->says("No space left on device"));
        CHECK(text_of(read_file(path)) == "old");
        CHECK(folder.names() == std::vector<std::string>{"f"});
    }
    const auto error = caught([&] { write_file_synced(folder / "g", Bytes(70'000)); });
    REQUIRE(error);
    CHECK(error->says("No space left on device"));
}

TEST_CASE("a read-only file system is a run-time error with the reason, and leaves the old file and nothing else") {
    const TempFolder folder;
    const SmallDisk disk(folder.path(), 64);
    if (!disk.mounted()) return;
    const std::string path = folder.write("f", "old");
    REQUIRE(disk.make_read_only());
    const auto error = caught([&] { write_file_atomic(path, std::string("new")); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kRuntime);
    CHECK(error->says(path));
    CHECK(error->says("Read-only file system"));
    CHECK(text_of(read_file(path)) == "old");
    CHECK(folder.names() == std::vector<std::string>{"f"});
}

TEST_CASE("a folder without permission is a run-time error") {
    if (::geteuid() == 0) {
        WARN("skipped: root may write to every folder");
        return;
    }
    const TempFolder folder;
    ::chmod(folder.path().c_str(), 0500);
    const auto error = caught([&] { write_file_atomic(folder / "f", std::string("new")); });
    ::chmod(folder.path().c_str(), 0700);
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kRuntime);
    CHECK(error->says("Permission denied"));
    CHECK(folder.names().empty());
}

TEST_CASE("writing into a folder that is absent or a file, or over a folder, is a run-time error that leaves nothing") {
    const TempFolder folder;
    folder.write("file", "x");
    std::filesystem::create_directory(folder / "sub");
    struct Row {
        std::string path, reason;
    };
    for (const Row& row :
         {Row{folder / "none/f", "No such file or directory"}, Row{folder / "file/f", "Not a directory"},
          Row{folder / "sub", "Is a directory"}, Row{folder / "sub/", "names no file"}, Row{"", "names no file"}}) {
        const auto error = caught([&] { write_file_atomic(row.path, std::string("new")); });
        REQUIRE(error);
        CHECK(error->kind == ErrorKind::kRuntime);
        CHECK(error->says(row.path));
        CHECK(error->says(row.reason));
        CHECK(folder.names().size() == 2);
        CHECK(TempFolder::names_in(folder / "sub").empty());
    }
}

TEST_CASE("a folder that is absent cannot be synced") {
    const TempFolder folder;
    sync_folder(folder.path());
    const auto error = caught([&] { sync_folder(folder / "none"); });
    REQUIRE(error);
    CHECK(error->kind == ErrorKind::kRuntime);
}
