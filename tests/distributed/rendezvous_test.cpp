#include "catch.h"

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/distributed/rendezvous.h>

using namespace mpol;

namespace {

void is(const Environment& environment, Launcher launcher, std::int64_t rank, std::int64_t size, std::int64_t local_rank) {
  const auto place = find_rendezvous(environment);
  CHECK(to_string(place.launcher) == to_string(launcher));
  CHECK(place.rank == rank);
  CHECK(place.size == size);
  CHECK(place.local_rank == local_rank);
}

}  // namespace

TEST_CASE("the environment tells which rank this is", "[distributed][quick]") {
  is({}, Launcher::none, 0, 1, 0);
  is({{"HOME", "/root"}, {"LOCAL_RANK", "3"}}, Launcher::none, 0, 1, 0);
  const Environment torchrun = {{"RANK", "5"},           {"WORLD_SIZE", "8"},     {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"},
                                {"MASTER_ADDR", "node"}, {"MASTER_PORT", "29500"}};
  is(torchrun, Launcher::torchrun, 5, 8, 1);
  CHECK(find_rendezvous(torchrun).address == "node");
  CHECK(find_rendezvous(torchrun).port == 29500);
  CHECK(find_rendezvous(torchrun).local_size == 4);
  CHECK_FALSE(find_rendezvous(torchrun).uses_mpi());
  const Environment openmpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                               {"OMPI_COMM_WORLD_SIZE", "4"},
                               {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                               {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  is(openmpi, Launcher::openmpi, 2, 4, 0);
  CHECK(find_rendezvous(openmpi).uses_mpi());
  is({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}}, Launcher::mpich, 1, 2, 1);
  is({{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "6"}, {"SLURM_LOCALID", "1"}}, Launcher::slurm, 3, 6, 1);
}

TEST_CASE("mpirun inside of a SLURM job is mpirun, and a batch script is one process", "[distributed][quick]") {
  is({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}}, Launcher::none, 0, 1, 0);
  is({{"SLURM_PROCID", "0"},
      {"SLURM_STEP_NUM_TASKS", "2"},
      {"OMPI_COMM_WORLD_RANK", "1"},
      {"OMPI_COMM_WORLD_SIZE", "8"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}},
     Launcher::openmpi, 1, 8, 1);
}

TEST_CASE("variables that are half there are refused with what was seen", "[distributed][quick]") {
  CHECK_THROWS_WITH(find_rendezvous({{"RANK", "1"}}), ContainsSubstring("RANK=1, WORLD_SIZE is not set"));
  CHECK_THROWS_WITH(find_rendezvous({{"OMPI_COMM_WORLD_SIZE", "2"}}), ContainsSubstring("OMPI_COMM_WORLD_RANK is not set"));
  CHECK_THROWS_WITH(find_rendezvous({{"SLURM_STEP_NUM_TASKS", "2"}}), ContainsSubstring("SLURM_PROCID is not set"));
  CHECK_THROWS_WITH(find_rendezvous({{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}}),
                    ContainsSubstring("RANK=2, WORLD_SIZE=2"));
  CHECK_THROWS_WITH(find_rendezvous({{"RANK", "one"}, {"WORLD_SIZE", "2"}}), ContainsSubstring("RANK=one"));
  CHECK_THROWS_WITH(find_rendezvous({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}}),
                    ContainsSubstring("MASTER_PORT is not set"));
  CHECK_THROWS_WITH(find_rendezvous({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "99999"}}),
                    ContainsSubstring("MASTER_PORT=99999"));
  CHECK_THROWS_AS(find_rendezvous({{"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}}), ValueError);
}
