#include "catch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include <mpol_cpp/core/format.h>

#include "free_port.h"

namespace {

struct Ended {
  int code = -1;
  std::string words;
};

Ended run(const std::string& command) {
  std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start a shell");
  Ended ended;
  std::array<char, 4096> buffer{};
  for (std::size_t read = 0; (read = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;)
    ended.words.append(buffer.data(), read);
  const int status = ::pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

/// As torchrun starts ranks.
std::vector<Ended> run_with_store(int size, const std::string& task) {
  const int port = mpol::testing::free_port();
  std::vector<std::future<Ended>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::async(std::launch::async, [=] {
      return run(fmt::format("RANK={} WORLD_SIZE={} LOCAL_RANK={} MASTER_ADDR=127.0.0.1 MASTER_PORT={} timeout 60 '{}' {}", rank,
                             size, rank, port, MPOL_RANKS_PROGRAM, task));
    }));
  }
  std::vector<Ended> ended;
  for (auto& rank : ranks) ended.push_back(rank.get());
  return ended;
}

}  // namespace

TEST_CASE("processes are ranks where torchrun's variables are set", "[distributed]") {
  const int size = GENERATE(2, 3);
  const auto ended = run_with_store(size, "check");
  for (const auto& rank : ended) {
    INFO(rank.words);
    CHECK(rank.code == 0);
  }
  CHECK_THAT(ended[0].words, ContainsSubstring(fmt::format("checked {} ranks of LibTorch's store", size)));
}

TEST_CASE("a rank that fails is noticed by processes that wait for it", "[distributed]") {
  const auto begin = std::chrono::steady_clock::now();
  const auto ended = run_with_store(3, "fail");
  CHECK(ended[0].code == 9);
  CHECK(ended[1].code == 7);
  CHECK_THAT(ended[2].words, ContainsSubstring("another rank has failed"));
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

TEST_CASE("variables of MPI without its launcher are refused with what was seen", "[distributed]") {
  const auto ended = run(fmt::format("PMI_RANK=1 PMI_SIZE=2 timeout 60 '{}' check", MPOL_RANKS_PROGRAM));
  CHECK(ended.code == 3);
  CHECK_THAT(ended.words, ContainsSubstring("MPICH started rank 1 of 2"));
}

#ifdef MPOL_MPIEXEC

namespace {

/// Open MPI wants to be told that root may, and that there may be more ranks than cores; others do not look.
Ended run_with_mpi(int size, const std::string& task) {
  return run(fmt::format(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 timeout 100 '{}' "
      "-n {} '{}' {}",
      MPOL_MPIEXEC, size, MPOL_RANKS_PROGRAM, task));
}

}  // namespace

TEST_CASE("processes are ranks of MPI", "[distributed][mpi]") {
  const int size = GENERATE(1, 2, 3, 4);
  const auto ended = run_with_mpi(size, "check");
  INFO(ended.words);
  CHECK(ended.code == 0);
  CHECK_THAT(ended.words, ContainsSubstring(fmt::format("checked {} ranks of ", size)));
}

TEST_CASE("a rank of MPI that fails ends all with its exit code", "[distributed][mpi]") {
  const auto begin = std::chrono::steady_clock::now();
  CHECK(run_with_mpi(3, "fail").code == 7);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

TEST_CASE("a rank of MPI that does not come is not waited for beyond the time-out", "[distributed][mpi]") {
  const auto ended = run_with_mpi(2, "late");
  CHECK(ended.code == 9);
  CHECK_THAT(ended.words, ContainsSubstring("has waited 0.5 s"));
}

#endif
