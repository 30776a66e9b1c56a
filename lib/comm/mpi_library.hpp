// Which MPI this program was built against and which one answers. They may be asked for before MPI is initialised.
#pragma once

#include <string>

namespace lockstep {

struct MpiLibrary {
    std::string running;     // "Open MPI 4.1.4"
    std::string built_with;  // the same of the headers
};
MpiLibrary mpi_library();

}  // namespace lockstep
