// A rank of the tests: joins the others that its launcher has started, and does what its argument says.
//   check   all of communicator_checks.h
//   fail    rank 1 ends all with code 7 while the others wait for it
//   late    rank 1 never comes: the others run into their time-out of half a second
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <ATen/ops/ones.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/distributed/open_communicator.h>

#include "distributed/communicator_checks.h"

namespace {

int run(const std::string& task) {
  using namespace std::chrono_literals;
  const auto ranks = mpol::open_communicator(mpol::find_rendezvous(mpol::process_environment()), task == "late" ? 500ms : 30s);
  if (task == "check") {
    const auto failures = failures_of(*ranks);
    for (const auto& failure : failures) std::fprintf(stderr, "%s\n", failure.c_str());
    const auto endings = ranks->exchange_endings(static_cast<std::int64_t>(failures.size()), 20s);
    if (!endings || static_cast<std::int64_t>(endings->size()) != ranks->size()) return 1;
    if (ranks->is_first()) std::printf("checked %d ranks of %s\n", static_cast<int>(ranks->size()), ranks->name().c_str());
    return failures.empty() ? 0 : 1;
  }
  if (task == "fail") ranks->barrier();  // all have found each other
  if (ranks->rank() == 1 && task == "fail") {
    ranks->abort(7);
    return 7;
  }
  if (ranks->rank() == 1) std::this_thread::sleep_for(5s);
  try {
    auto ones = at::ones({1000});
    ranks->all_reduce_sum(ones);
  } catch (const mpol::RankError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::fflush(stderr);
    ranks->abort(9);
    std::this_thread::sleep_for(2s);  // this rank may be the server through which others learn of it
    return 9;
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count > 1 ? arguments[1] : "check");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
