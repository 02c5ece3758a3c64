#include <mpol_cpp/distributed/open_communicator.h>

#include <dlfcn.h>

#include <filesystem>

#include <mpol_cpp/core/format.h>
#include <mpol_cpp/distributed/mpi_module.h>
#include <mpol_cpp/distributed/store_communicator.h>

namespace mpol {
namespace {

/// Beside the library that this function is in.
std::filesystem::path mpi_module() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&has_mpi), &info) == 0 || info.dli_fname == nullptr) return mpi_module_name;
  return std::filesystem::path(info.dli_fname).parent_path() / mpi_module_name;
}

/// A function of the module, which stays loaded; null, and dlerror() says why, where there is none.
void* function_of_module(const std::filesystem::path& path, const char* name) {
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);  // Open MPI's own modules look for its symbols
  return module == nullptr ? nullptr : dlsym(module, name);
}

std::shared_ptr<Communicator> open_mpi(const Rendezvous& place, Communicator::Milliseconds timeout) {
  const auto path = mpi_module();
  if (!std::filesystem::exists(path)) {
    throw RankError(
        fmt::format("{} started rank {} of {}, but this mpol was built without MPI: there is no {}; install MPI "
                    "(libopenmpi-dev or libmpich-dev) and build anew, or start the ranks by torchrun",
                    to_string(place.launcher), place.rank, place.size, path.string()));
  }
  void* symbol = function_of_module(path, mpi_function_name);
  if (symbol == nullptr)
    throw RankError(
        fmt::format("{} cannot be loaded: {}; install the MPI that it was built for, or build anew", path.string(), dlerror()));
  std::string failure;
  auto* communicator = reinterpret_cast<OpenMpi*>(symbol)(failure);
  if (communicator == nullptr) throw RankError(fmt::format("MPI does not start: {}", failure));
  std::shared_ptr<Communicator> ranks(communicator);
  if (ranks->size() != place.size || ranks->rank() != place.rank) {
    throw RankError(
        fmt::format("{} started rank {} of {}, but {} knows of rank {} of {}: start mpol by the launcher of the MPI that it was "
                    "built for (srun --mpi=list tells what SLURM knows)",
                    to_string(place.launcher), place.rank, place.size, ranks->name(), ranks->rank(), ranks->size()));
  }
  ranks->set_timeout(timeout);
  return ranks;
}

}  // namespace

bool has_mpi() { return std::filesystem::exists(mpi_module()); }

std::string mpi_words() {
  void* symbol = function_of_module(mpi_module(), mpi_version_function_name);
  if (symbol == nullptr) throw RankError(fmt::format("the module for MPI cannot be loaded: {}", dlerror()));
  std::string version;
  reinterpret_cast<MpiVersion*>(symbol)(version);
  return version.substr(0, version.find_first_of(",\n"));  // Open MPI and MPICH go on with how they were built
}

std::shared_ptr<Communicator> open_communicator(const Rendezvous& place, Communicator::Milliseconds timeout) {
  if (place.size == 1) return single_rank();
  if (place.uses_mpi()) return open_mpi(place, timeout);
  const TcpPlace meeting{place.address, place.port, place.launcher_has_store, "mpol/" + place.attempt};
  return tcp_communicator(meeting, place.rank, place.size, timeout);
}

}  // namespace mpol
