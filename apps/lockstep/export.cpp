// lockstep export: the weights of a run or of one of its checkpoints under PyTorch's names and shapes.
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "core/error.hpp"
#include "io/files.hpp"
#include "io/npz.hpp"
#include "io/safetensors.hpp"
#include "launch.hpp"
#include "stored.hpp"

namespace lockstep {
namespace {

/// Weights need no config: that of the checkpoint made them, and no data are looked at.
StoredModel stored_weights(const StoredOptions& options) {
    if (options.run.empty() == options.checkpoint.empty()) {
        fail(ErrorKind::kUsage,
             "give --run DIR (its final weights, else its newest checkpoint's) or --checkpoint PATH");
    }
    return options.run.empty() ? read_from_checkpoint(options.checkpoint, Config{}) : options.read();
}

int export_now(const StoredOptions& options, const std::string& format, const std::string& out) {
    std::error_code ignored;
    if (std::filesystem::is_directory(out, ignored)) {
        fail(ErrorKind::kUsage, "{}: is a folder; --out names a file", out);
    }
    const StoredModel stored = stored_weights(options);
    if (format == "safetensors") {
        write_file_atomic(out, stored.model);
    } else {
        const SafetensorsFile model = SafetensorsFile::parse(stored.model, stored.where);
        write_npz(out, model.tensors());
    }
    return 0;
}

}  // namespace

void add_export(CLI::App& app, Invocation& invocation) {
    CLI::App* command =
        app.add_subcommand("export", "Write the weights of a run or a checkpoint under PyTorch's names and shapes");
    const auto options = std::make_shared<StoredOptions>();
    const auto format = std::make_shared<std::string>();
    const auto out = std::make_shared<std::string>();
    command
        ->add_option("--run", options->run,
                     "Run directory: its final weights, else its newest checkpoint's; this or --checkpoint is needed")
        ->type_name("DIR");
    command
        ->add_option("--checkpoint", options->checkpoint,
                     "A checkpoint, or a file that names one (checkpoints/best, checkpoints/latest)")
        ->type_name("PATH");
    command->add_option("--format", *format, "File format")
        ->check(CLI::IsMember({"safetensors", "npz"}))
        ->type_name("safetensors|npz")
        ->required();
    command->add_option("--out", *out, "File to write")->type_name("FILE")->required();
    command->callback([=, &invocation] {
        invocation.action = on_first_rank(invocation, [=] { return export_now(*options, *format, *out); });
    });
}

}  // namespace lockstep
