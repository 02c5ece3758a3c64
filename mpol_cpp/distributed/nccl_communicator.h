#pragma once

#include <memory>
#include <string>

#include <torch/types.h>

#include <mpol_cpp/distributed/communicator.h>

namespace mpol {

/// The shared library of NCCL 2, which comes with LibTorch for CUDA.
inline constexpr const char* nccl_library_name = "libnccl.so.2";

/// Why NCCL cannot be used here: it is not found, or too old; empty where it can.
std::string nccl_obstacle(const std::string& library = nccl_library_name);

/// Ranks that exchange tensors on their GPUs by NCCL, without a way through the host, and all else (tensors on the CPU, endings)
/// by the communicator that they have. Called by every rank.
///
/// Calls go to the caller's current stream, behind what is there, and return when they are done there: a rank that is waited for
/// longer than timeout(), or an error that NCCL finds in the meantime, aborts NCCL's communicator and is a RankError; so is every
/// later call. All ranks get the same bits of a sum, whose order of terms is NCCL's own: the same for the same ranks, machine and
/// version, and not that of other communicators.
/// @param base     of the same ranks; the unique id that NCCL wants goes by it
/// @param device   of this rank, no other's
/// @param library  as dlopen() takes it
/// @throws RankError when NCCL is not found, or does not join all ranks in time
std::shared_ptr<Communicator> nccl_communicator(std::shared_ptr<Communicator> base, torch::Device device,
                                                const std::string& library = nccl_library_name);

/// Communicator and why it is that one.
struct NcclChoice {
  std::shared_ptr<Communicator> ranks;  ///< the communicator to take from now on
  std::string reason;                   ///< in words, the same on all ranks
};

/// nccl_communicator() where every rank has a CUDA device that is no other rank's and all find NCCL of one version; else `base`
/// as it is. Called by every rank; a build without CUDA sends nothing.
NcclChoice with_nccl(std::shared_ptr<Communicator> base, torch::Device device);

}  // namespace mpol
