#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace mpol {

/// Who started the process, as its environment shows.
enum class Launcher {
  none,      ///< nobody: one process
  torchrun,  ///< RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
  openmpi,   ///< mpirun of Open MPI: OMPI_COMM_WORLD_RANK, …_SIZE
  mpich,     ///< mpiexec of MPICH and its relatives: PMI_RANK, PMI_SIZE
  slurm,     ///< srun: SLURM_PROCID, SLURM_STEP_NUM_TASKS
};
/// "none", "torchrun", "Open MPI", "MPICH" or "SLURM".
std::string to_string(Launcher launcher);

/// Variables of an environment.
using Environment = std::map<std::string, std::string>;
/// That of this process.
Environment process_environment();

/// Which of how many processes this is.
struct Rendezvous {
  Launcher launcher = Launcher::none;  ///< who started it
  std::int64_t rank = 0;               ///< of this process, from 0
  std::int64_t size = 1;               ///< how many there are
  std::int64_t local_rank = 0;         ///< on its node
  std::int64_t local_size = 1;         ///< ranks on its node, where the launcher says it
  std::string address;                 ///< torchrun: where the ranks meet
  std::int64_t port = 0;               ///< torchrun: where the ranks meet
  bool launcher_has_store = false;     ///< torchrun: whether its agent runs the store already
  std::string attempt = "0";           ///< torchrun: of the ranks, which it starts again when one fails

  bool uses_mpi() const { return launcher != Launcher::none && launcher != Launcher::torchrun; }  ///< whether MPI joins the ranks
};

/// What the variables say, of the first of torchrun, Open MPI, MPICH and SLURM that is there. A batch script's own SLURM
/// variables, without a step of srun, mean one process.
/// @throws ValueError naming what was seen, where only some of a launcher's variables are set, or they are no such numbers
Rendezvous find_rendezvous(const Environment& environment);

}  // namespace mpol
