#include "comm/mpi_library.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <array>

namespace lockstep {
namespace {

/// "Open MPI v4.1.4, package: Debian …, ident: …" -> "Open MPI 4.1.4"; of others the first line.
std::string short_name(std::string_view text) {
    std::string name(text.substr(0, text.find_first_of(",\n")));
    if (const auto v = name.find(" v"); v != std::string::npos) name.erase(v + 1, 1);
    return name;
}

}  // namespace

MpiLibrary mpi_library() {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MpiLibrary library;
    if (MPI_Get_library_version(text.data(), &length) == MPI_SUCCESS) {
        library.running = short_name({text.data(), static_cast<std::size_t>(length)});
    }
#if defined(OMPI_MAJOR_VERSION)
    library.built_with = fmt::format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
    library.built_with = fmt::format("MPICH {}", MPICH_VERSION);
#else
    library.built_with = fmt::format("MPI {}.{}", MPI_VERSION, MPI_SUBVERSION);
#endif
    return library;
}

}  // namespace lockstep
