#pragma once

#include <memory>
#include <string>

#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/distributed/rendezvous.h>

namespace mpol {

/// Whether the module that knows MPI, libmpol_mpi.so beside this library, is there.
bool has_mpi();
/// Which MPI that is, "Open MPI v4.1.4". Loads the module. @throws RankError where it cannot be loaded
std::string mpi_words();

/// The ranks that a launcher has started. MPI is loaded only now, and only where it is needed: none for one rank.
/// @param timeout  of what waits for other ranks
/// @throws RankError when the ranks cannot be joined, or there is no module for MPI
std::shared_ptr<Communicator> open_communicator(const Rendezvous& place, Communicator::Milliseconds timeout);

}  // namespace mpol
