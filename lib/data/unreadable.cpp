#include "data/unreadable.hpp"

#include <cstddef>
#include <iterator>

#include "core/error.hpp"
#include "core/thread_pool.hpp"

namespace lockstep {

std::vector<std::string> unreadable_samples(const Dataset& data, int threads) {
    ThreadPool pool(threads);
    std::vector<std::vector<std::string>> found(static_cast<std::size_t>(pool.size()));  // of each part, in its order
    pool.run([&](int part, int parts) {
        std::vector<float> values(static_cast<std::size_t>(data.shape().elements()));
        const IndexRange range = part_of(data.size(), part, parts);
        for (int64_t index = range.begin; index < range.end; ++index) {
            try {
                data.read(index, values);
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::kData) throw;
                found[static_cast<std::size_t>(part)].push_back(error.what());
            }
        }
    });
    std::vector<std::string> faults;
    for (std::vector<std::string>& part : found) {
        faults.insert(faults.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
    }
    return faults;
}

}  // namespace lockstep
