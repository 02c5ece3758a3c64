#pragma once

#include <functional>
#include <memory>

#include <c10/util/intrusive_ptr.h>

#include <mpol_cpp/distributed/communicator.h>

namespace c10d {
class Store;  // <torch/csrc/distributed/c10d/Store.hpp>
}

namespace mpol {

/// Ranks that exchange their tensors through a store of LibTorch's c10d: its HashStore between threads of one process, its
/// TCPStore between the processes that torchrun starts. Every tensor goes by way of the store's one server, and sums are made by
/// rank 0 in the order of ranks: right for few exchanges, and no match for MPI where ranks have much to say.
/// @param store  of all ranks, which nothing else uses
std::shared_ptr<Communicator> store_communicator(c10::intrusive_ptr<c10d::Store> store, std::int64_t rank, std::int64_t size);

/// The same between processes: the server is rank 0's, or one that the launcher runs already.
struct TcpPlace {
  std::string address;      ///< of the server
  std::int64_t port = 0;    ///< of the server
  bool has_server = false;  ///< rank 0 needs to start none
  std::string prefix;       ///< before our keys, where others use the server too
};
/// @throws RankError when the server cannot be reached within the time-out
std::shared_ptr<Communicator> tcp_communicator(const TcpPlace& place, std::int64_t rank, std::int64_t size,
                                               Communicator::Milliseconds timeout);

/// Calls a function on so many ranks, each a thread of this process, and waits for all. What one throws makes the others end with
/// RankError where they wait for it, and is thrown here: of several ranks that failed by themselves, that of the lowest.
/// @throws ValueError unless size > 0
void run_as_threads(std::int64_t size, const std::function<void(Communicator&)>& rank);

}  // namespace mpol
