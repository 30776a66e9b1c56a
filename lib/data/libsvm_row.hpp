// One line of a LIBSVM (SVMlight) file: "label index:value index:value … # comment", indices rising.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.hpp"

namespace lockstep {

struct LibsvmRow {
    struct Entry {
        int64_t index = 0;
        float value = 0;
    };
    double label = 0;
    std::vector<Entry> entries;
};

/// False for a line that holds nothing or a comment alone. kData, starting with place(), for what is no such line.
bool parse_libsvm_row(std::string_view line, FunctionRef<std::string()> place, LibsvmRow& row);

}  // namespace lockstep
