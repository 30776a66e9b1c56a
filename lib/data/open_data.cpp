// From data.format to the reader of that format: the one place that knows them all.
#include "config/config.hpp"
#include "core/error.hpp"
#include "data/dataset.hpp"
#include "data/idx.hpp"
#include "data/synthetic.hpp"

namespace lockstep {

DataSplits open_data(const Config& config) {
    const std::string& format = config.data.format;
    if (format == "idx") {
        if (config.data.train.empty()) {
            fail(ErrorKind::kUsage, "data.train: not set; idx needs {{ images = \"…\", labels = \"…\" }}");
        }
        return open_idx(config);
    }
    if (format == "synthetic") return open_synthetic(config);
    fail(ErrorKind::kUsage, "data.format = \"{}\" is not built yet; it can be idx or synthetic", format);
}

}  // namespace lockstep
