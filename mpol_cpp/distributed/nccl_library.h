#pragma once

#include <climits>
#include <cstddef>
#include <memory>
#include <string>

namespace mpol::detail {

/// The functions of NCCL's C interface that we call, found in its shared library when it is first needed: no header of NCCL is
/// needed to build. Names and numbers are those of NCCL 2, whose interface only grows.
struct NcclLibrary {
  using Communicator = void*;  ///< ncclComm_t
  using Stream = void*;        ///< cudaStream_t

  struct UniqueId {
    char bytes[128];
  };
  /// The first fields of ncclConfig_t; its version says that there are no more of them.
  struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef;
    unsigned version = 21400;
    int blocking = 0;
    int group_of_blocks = INT_MIN;  // cgaClusterSize: undefined
  };
  static_assert(sizeof(Config) == 24);

  enum Result : int { success = 0, in_progress = 7 };
  enum Type : int { uint8 = 1, int32 = 2, int64 = 4, float32 = 7, float64 = 8 };
  enum Operation : int { sum = 0 };

  int (*get_version)(int* version) = nullptr;
  int (*get_unique_id)(UniqueId* id) = nullptr;
  int (*join)(Communicator* communicator, int size, UniqueId id, int rank, Config* config) = nullptr;
  int (*finalize)(Communicator communicator) = nullptr;
  int (*destroy)(Communicator communicator) = nullptr;
  int (*abort)(Communicator communicator) = nullptr;
  int (*get_async_error)(Communicator communicator, int* state) = nullptr;
  const char* (*get_error_string)(int result) = nullptr;
  const char* (*get_last_error)(Communicator communicator) = nullptr;
  int (*all_reduce)(const void* send, void* receive, std::size_t count, int type, int operation, Communicator, Stream) = nullptr;
  int (*broadcast)(const void* send, void* receive, std::size_t count, int type, int root, Communicator, Stream) = nullptr;
  int (*reduce)(const void* send, void* receive, std::size_t count, int type, int operation, int root, Communicator,
                Stream) = nullptr;
  int (*send)(const void* from, std::size_t count, int type, int peer, Communicator, Stream) = nullptr;
  int (*receive)(void* to, std::size_t count, int type, int peer, Communicator, Stream) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;

  std::string path;  ///< as it was asked for
  int version = 0;   ///< 22703 is 2.27.3

  /// Loads a library, which stays loaded. @param path  as dlopen() takes it; one that the process has already is taken first
  /// @param reason  why there is none
  /// @return        nothing where it is not there or too old
  static std::shared_ptr<const NcclLibrary> open(const std::string& path, std::string& reason);
};

/// "2.27.3"
std::string nccl_version_words(int version);

}  // namespace mpol::detail
