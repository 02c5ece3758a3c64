#pragma once

#include <string>

#include <mpol_cpp/distributed/communicator.h>

namespace mpol {

/// The module of its own that alone is linked with MPI: built where MPI is found, loaded where a launcher of MPI started the
/// program.
inline constexpr const char* mpi_module_name = "libmpol_mpi.so";
/// Its functions.
inline constexpr const char* mpi_function_name = "mpol_open_mpi";
inline constexpr const char* mpi_version_function_name = "mpol_mpi_version";
/// Starts MPI and gives all its ranks; MPI ends when they are deleted. Nothing, and why, where it does not start.
using OpenMpi = Communicator*(std::string& failure);
/// What MPI calls itself, in one line or in several; MPI need not be started for it.
using MpiVersion = void(std::string& version);

}  // namespace mpol
