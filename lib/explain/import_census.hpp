// TensorFlow's census samples: what their scripts do where the command line says nothing, and the columns of their
// data.
#pragma once

#include <string>

#include "explain/config_import.hpp"

namespace lockstep {

/// "wide_deep.py", "census_main.py" and "wide_n_deep_tutorial.py": what they take if it is not given. Of other scripts
/// nothing is known.
struct CensusScript {
    bool known = false;
    int64_t batch = 128;
    int64_t epochs = 0;      // 0: the script goes by steps
    int64_t steps = 0;       // 0: by epochs
    std::string folder{};    // of adult.data and adult.test; "": files are named
    int64_t eval_every = 0;  // epochs
};
CensusScript census_script(std::string_view name);

/// Whether the file is one of the census data, by its name.
bool is_census_file(std::string_view path);

/// [data] of the raw census files: the columns of the wide & deep tutorial, of which each part reads its own; those
/// that the linear part alone reads where there is one.
void import_census_columns(bool linear, Imported& config);

}  // namespace lockstep
