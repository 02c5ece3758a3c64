#pragma once

#include <string>

#include <mpol_cpp/distributed/communicator.h>

namespace mpol {

/// The module of its own that alone is linked with MPI: built where MPI is found, loaded where a launcher of MPI started the
/// program.
inline constexpr const char* mpi_module_name = "libmpol_mpi.so";
/// Its one function.
inline constexpr const char* mpi_function_name = "mpol_open_mpi";
/// Starts MPI and gives all its ranks; MPI ends when they are deleted. Nothing, and why, where it does not start.
using OpenMpi = Communicator*(std::string& failure);

}  // namespace mpol
