#include "cuda/backend/fold_programs.hpp"

#include <algorithm>

#include "backend/arithmetic.hpp"
#include "core/error.hpp"

namespace lockstep {
namespace {

bool same(const DeviceFold& known, const FoldProgram& fold) {
    return std::equal(known.leaves.begin(), known.leaves.end(), fold.leaves.begin(), fold.leaves.end(),
                      [](const FoldLeaf& a, const FoldProgram::Leaf& b) {
                          return a.begin == b.begin && a.end == b.end && a.adds == b.adds;
                      }) &&
           known.roots.size() == fold.roots.size();
}

}  // namespace

const DeviceFold& FoldPrograms::find(const FoldProgram& fold) {
    for (const auto& known : known_) {
        if (same(*known, fold)) return *known;
    }
    return send(fold);
}

const DeviceFold& FoldPrograms::send(const FoldProgram& fold) {
    if (fold.stack > kMaxFoldStack) fail(ErrorKind::kRuntime, "a fold program needs {} values at once", fold.stack);
    auto made = std::make_unique<DeviceFold>();
    int first = 0;
    for (const FoldProgram::Leaf& leaf : fold.leaves) {
        made->leaves.push_back({leaf.begin, leaf.end, leaf.adds});
        if (leaf.root < 0) continue;
        const int end = static_cast<int>(made->leaves.size());
        made->roots.push_back({first, end - first});
        first = end;
    }
    const std::size_t bytes = made->leaves.size() * sizeof(FoldLeaf);
    made->memory = context_.allocate(bytes);
    copies_.upload(context_.main().get(), made->leaves.data(), made->memory->data(), bytes);
    known_.push_back(std::move(made));
    return *known_.back();
}

}  // namespace lockstep
