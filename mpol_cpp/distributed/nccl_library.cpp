#include <mpol_cpp/distributed/nccl_library.h>

#include <dlfcn.h>

#include <mpol_cpp/core/format.h>

namespace mpol::detail {
namespace {

constexpr int oldest_version = 21400;  // the first with communicators that do not block

/// dlerror() forgets what it has said, and may have nothing to say.
std::string words_of_loader() {
  const char* words = dlerror();
  return words == nullptr ? "the loader does not say why" : words;
}

template <typename Function>
bool find_function(void* module, const char* name, Function*& place, std::string& reason) {
  place = reinterpret_cast<Function*>(dlsym(module, name));
  if (place == nullptr && reason.empty()) reason = fmt::format("it has no {}", name);
  return place != nullptr;
}

bool find_all(void* module, NcclLibrary& nccl, std::string& reason) {
  return find_function(module, "ncclGetVersion", nccl.get_version, reason) &&
         find_function(module, "ncclGetUniqueId", nccl.get_unique_id, reason) &&
         find_function(module, "ncclCommInitRankConfig", nccl.join, reason) &&
         find_function(module, "ncclCommFinalize", nccl.finalize, reason) &&
         find_function(module, "ncclCommDestroy", nccl.destroy, reason) &&
         find_function(module, "ncclCommAbort", nccl.abort, reason) &&
         find_function(module, "ncclCommGetAsyncError", nccl.get_async_error, reason) &&
         find_function(module, "ncclGetErrorString", nccl.get_error_string, reason) &&
         find_function(module, "ncclGetLastError", nccl.get_last_error, reason) &&
         find_function(module, "ncclAllReduce", nccl.all_reduce, reason) &&
         find_function(module, "ncclBroadcast", nccl.broadcast, reason) &&
         find_function(module, "ncclReduce", nccl.reduce, reason) && find_function(module, "ncclSend", nccl.send, reason) &&
         find_function(module, "ncclRecv", nccl.receive, reason) &&
         find_function(module, "ncclGroupStart", nccl.group_start, reason) &&
         find_function(module, "ncclGroupEnd", nccl.group_end, reason);
}

}  // namespace

std::string nccl_version_words(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

std::shared_ptr<const NcclLibrary> NcclLibrary::open(const std::string& path, std::string& reason) {
  reason.clear();
  // LibTorch for CUDA has it loaded; without its path no search would find that one.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (module == nullptr) module = dlopen(path.c_str(), RTLD_NOW);
  if (module == nullptr) {
    reason = fmt::format("{} cannot be loaded: {}", path, words_of_loader());
    return nullptr;
  }
  auto nccl = std::make_shared<NcclLibrary>();
  nccl->path = path;
  if (!find_all(module, *nccl, reason)) {
    reason = fmt::format("{} is no NCCL of 2.14 or newer: {}", path, reason);
    return nullptr;
  }
  if (nccl->get_version(&nccl->version) != success || nccl->version < oldest_version) {
    reason = fmt::format("{} is NCCL {}: it must be 2.14 or newer", path, nccl_version_words(nccl->version));
    return nullptr;
  }
  return nccl;
}

}  // namespace mpol::detail
