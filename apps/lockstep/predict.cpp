// lockstep predict: the class and the probabilities of every sample of a split, in data order, the same file at any
// number of ranks.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "core/error.hpp"
#include "io/files.hpp"
#include "launch.hpp"
#include "stored.hpp"

namespace lockstep {
namespace {

/// A file that is complete or absent, written piece by piece; or stdout.
class ResultFile {
  public:
    explicit ResultFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".writing") {
        if (path_.empty()) return;
        file_ = std::fopen(temporary_.c_str(), "wb");
        if (file_ == nullptr) fail_now();
    }
    ~ResultFile() {
        if (file_ == nullptr) return;
        std::fclose(file_);
        std::remove(temporary_.c_str());
    }
    ResultFile(const ResultFile&) = delete;
    ResultFile& operator=(const ResultFile&) = delete;

    void write(const std::string& text) {
        if (path_.empty()) return print_result(text);
        if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail_now();
    }
    void finish() {
        if (path_.empty()) return;
        const bool flushed = std::fflush(file_) == 0;
        if (!flushed) fail_now();
        std::fclose(file_);
        file_ = nullptr;
        std::error_code error;
        std::filesystem::rename(temporary_, path_, error);
        if (error) fail(ErrorKind::kRuntime, "{}: cannot be written: {}", path_, error.message());
    }

  private:
    [[noreturn]] void fail_now() const {
        fail(ErrorKind::kRuntime, "{}: cannot be written: {}", path_, std::strerror(errno));
    }
    std::string path_;
    std::string temporary_;
    std::FILE* file_ = nullptr;
};

int predict_here(Communicator& comm, const StoredOptions& options, const std::string& out) {
    StoredSession session(comm, options);
    std::unique_ptr<ResultFile> file;
    if (comm.rank() == 0) file = std::make_unique<ResultFile>(out);
    predict(session.context(), session.data(), [&](const std::string& text) { file->write(text); });
    if (file) file->finish();
    return 0;
}

}  // namespace

void add_predict(CLI::App& app, Invocation& invocation) {
    CLI::App* command =
        app.add_subcommand("predict", "Class and probabilities of every sample as CSV: index,label,class,p0,p1,…");
    const auto options = std::make_shared<StoredOptions>();
    const auto out = std::make_shared<std::string>();
    options->add_to(*command, true);
    command->add_option("--out", *out, "CSV file (default stdout)")->type_name("FILE.csv");
    command->callback([=, &invocation] {
        invocation.action = [=, &invocation] {
            return run_as_rank(invocation, options->allow_singleton,
                               [&](Communicator& comm) { return predict_here(comm, *options, *out); });
        };
    });
}

}  // namespace lockstep
