// From data.format to the reader of that format: the one place that knows them all.
#include "config/config.hpp"
#include "core/error.hpp"
#include "data/cifar.hpp"
#include "data/csv.hpp"
#include "data/data_facts.hpp"
#include "data/dataset.hpp"
#include "data/idx.hpp"
#include "data/image_folder.hpp"
#include "data/libsvm.hpp"
#include "data/npz.hpp"
#include "data/synthetic.hpp"
#include "data/tfrecord.hpp"
#include "data/validation.hpp"

namespace lockstep {
namespace {

struct Format {
    const char* name;
    DataSplits (*open)(const Config&);
    DataFacts (*facts)(const Config&);
};

const Format& format_of(const Config& config) {
    static constexpr Format kFormats[] = {
        {"idx", open_idx, idx_facts},
        {"cifar", open_cifar, cifar_facts},
        {"image_folder", open_image_folder, image_folder_facts},
        {"tfrecord", open_tfrecord, tfrecord_facts},
        {"csv", [](const Config& c) { return open_csv(c); }, [](const Config& c) { return csv_facts(c); }},
        {"libsvm", [](const Config& c) { return open_libsvm(c); }, [](const Config& c) { return libsvm_facts(c); }},
        {"npz", [](const Config& c) { return open_npz(c); }, [](const Config& c) { return npz_facts(c); }},
        {"synthetic", [](const Config& c) { return open_synthetic(c); },
         [](const Config& c) { return synthetic_facts(c); }},
    };
    for (const Format& format : kFormats) {
        if (config.data.format == format.name) return format;
    }
    std::string known;
    for (const Format& format : kFormats) known.append(known.empty() ? "" : ", ").append(format.name);
    fail(ErrorKind::kUsage, "data.format = \"{}\" is not one of {}", config.data.format, known);
}

}  // namespace

DataSplits open_data(const Config& config) {
    return hold_out(config, format_of(config).open(config));
}

DataFacts data_facts(const Config& config) {
    return hold_out(config, format_of(config).facts(config));
}

}  // namespace lockstep
