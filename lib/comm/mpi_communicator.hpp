// MPI behind the Communicator. MPI_Init and MPI_Finalize stand in mpi_communicator.cpp and nowhere else.
#pragma once

#include <memory>

#include "comm/communicator.hpp"

namespace lockstep {

/// True if a launcher that speaks MPI started this process (OMPI_COMM_WORLD_SIZE, PMIX_RANK or PMI_RANK, read by the
/// caller). Initialises MPI (thread level funneled). One per process; its destructor finalises, except while unwinding.
std::unique_ptr<Communicator> make_mpi_communicator(int& argc, char**& argv);

}  // namespace lockstep
