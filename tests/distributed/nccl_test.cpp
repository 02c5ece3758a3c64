#include "catch.h"

#include <dlfcn.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/distributed/nccl_communicator.h>
#include <mpol_cpp/distributed/store_communicator.h>

#include "distributed/communicator_checks.h"

using namespace mpol;
using namespace std::chrono_literals;

namespace {

/// The stand-in of fake_nccl.cpp, whose device is the host.
class FakeNccl {
 public:
  static constexpr const char* path = MPOL_FAKE_NCCL;

  FakeNccl() : module_(dlopen(path, RTLD_NOW)) { REQUIRE(module_ != nullptr); }

  void fail(int rank, int result, int calls = 0) const { function<void(int, int, int)>("fake_nccl_fail")(rank, result, calls); }
  struct Counts {
    int open = 0, aborted = 0;
  };
  Counts counts() const {
    Counts counts;
    function<void(int*, int*)>("fake_nccl_counts")(&counts.open, &counts.aborted);
    return counts;
  }

 private:
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(dlsym(module_, name));
  }
  void* module_;
};

/// Ranks are handed on as shared; these live as long as the threads.
std::shared_ptr<Communicator> shared(Communicator& ranks) {
  return {&ranks, [](Communicator*) {}};
}

/// Runs ranks that exchange by the stand-in, with a short time-out.
void run_by_nccl(std::int64_t size, const std::function<void(Communicator&)>& rank, Communicator::Milliseconds timeout = 30s) {
  run_as_threads(size, [&](Communicator& base) {
    base.set_timeout(timeout);
    const auto ranks = nccl_communicator(shared(base), torch::kCPU, FakeNccl::path);
    rank(*ranks);
  });
}

}  // namespace

TEST_CASE("ranks exchange by NCCL's calls what they exchange otherwise", "[distributed][nccl][quick]") {
  const FakeNccl fake;
  const auto before = fake.counts();
  const auto size = GENERATE(1, 2, 3, 4);
  std::mutex mutex;
  std::vector<std::string> failures;
  run_by_nccl(size, [&](Communicator& ranks) {
    const auto own = failures_of(ranks);
    const std::lock_guard lock(mutex);
    failures.insert(failures.end(), own.begin(), own.end());
    if (ranks.is_first() && ranks.name() != "NCCL 2.28.9 beside LibTorch's store") failures.push_back(ranks.name());
  });
  CHECK(failures == std::vector<std::string>());
  CHECK(fake.counts().open == before.open);  // the ends are whole
  CHECK(fake.counts().aborted == before.aborted);
}

TEST_CASE("tensors that are not on the ranks' device go by the communicator that was there", "[distributed][nccl][quick]") {
  const FakeNccl fake;
  run_as_threads(2, [&](Communicator& base) {
    const auto ranks = nccl_communicator(shared(base), torch::Device(torch::kMeta), FakeNccl::path);
    if (failures_of(*ranks) != std::vector<std::string>()) throw DataError("the base does not do its part");
    if (!ranks->takes(torch::kCPU) || !ranks->takes(torch::kMeta) || ranks->takes(torch::Device(torch::kCUDA, 0)))
      throw DataError("other devices");
    if (ranks->exchange_endings(ranks->rank() + 5, 10s) != std::vector<std::int64_t>{5, 6}) throw DataError("other endings");
  });
  CHECK(single_rank()->takes(torch::kCPU));
  CHECK_FALSE(single_rank()->takes(torch::kMeta));
}

TEST_CASE("a call that NCCL refuses is an error, and its communicator is aborted and of no use", "[distributed][nccl][quick]") {
  const FakeNccl fake;
  const auto before = fake.counts();
  fake.fail(1, 2, 3);
  CHECK_THROWS_WITH(
      run_by_nccl(2,
                  [](Communicator& ranks) {
                    auto ones = at::ones({3}, torch::kFloat64);
                    for (int i = 0; i < 3; ++i) ranks.all_reduce_sum(ones);
                    if (ranks.is_first()) return;
                    try {
                      ranks.all_reduce_sum(ones);
                    } catch (const RankError&) {
                      ranks.barrier();
                    }
                  }),
      ContainsSubstring("rank 1: NCCL has ended before: rank 1: all-reduce failed in NCCL: unhandled system error"));
  CHECK(fake.counts().open == before.open);
  CHECK(fake.counts().aborted == before.aborted + 1);
}

TEST_CASE("ranks that do not make the same calls learn of it", "[distributed][nccl][quick]") {
  const FakeNccl fake;
  const auto different = GENERATE(0, 1, 2);
  CHECK_THROWS_WITH(run_by_nccl(2,
                                [&](Communicator& ranks) {
                                  const bool odd = !ranks.is_first();
                                  auto tensor = at::zeros({odd && different == 0 ? 3 : 4},
                                                          odd && different == 1 ? torch::kFloat32 : torch::kFloat64);
                                  if (odd && different == 2) ranks.broadcast(tensor);
                                  else ranks.all_reduce_sum(tensor);
                                }),
                    ContainsSubstring("failed in NCCL: invalid usage"));
}

TEST_CASE("a rank that NCCL waits for in vain is not waited for beyond the time-out", "[distributed][nccl][quick]") {
  const FakeNccl fake;
  const auto before = fake.counts();
  SECTION("it does not come") {
    CHECK_THROWS_WITH(run_by_nccl(
                          2,
                          [](Communicator& ranks) {
                            auto ones = at::ones({3});
                            if (ranks.is_first()) ranks.all_reduce_sum(ones);
                          },
                          100ms),
                      ContainsSubstring("has waited 0.1 s for the others (all-reduce, NCCL)"));
  }
  SECTION("its call never ends") {
    fake.fail(1, -1);
    CHECK_THROWS_WITH(run_by_nccl(
                          2,
                          [](Communicator& ranks) {
                            auto ones = at::ones({3});
                            ranks.broadcast(ones);
                          },
                          100ms),
                      ContainsSubstring("has waited 0.1 s for the others (broadcast, NCCL)"));
  }
  CHECK(fake.counts().open == before.open);
  CHECK(fake.counts().aborted > before.aborted);
}

TEST_CASE("all ranks learn that there is no unique id", "[distributed][nccl][quick]") {
  const FakeNccl fake;
  fake.fail(-2, 2);
  int refused = 0;
  std::mutex mutex;
  run_as_threads(3, [&](Communicator& base) {
    try {
      nccl_communicator(shared(base), torch::kCPU, FakeNccl::path);
    } catch (const RankError&) {
      const std::lock_guard lock(mutex);
      ++refused;
    }
  });
  CHECK(refused == 3);
}

TEST_CASE("a library that is not there, or not NCCL, is refused with the reason", "[distributed][nccl][quick]") {
  CHECK(nccl_obstacle(FakeNccl::path).empty());
  CHECK_THAT(nccl_obstacle("libnccl_of_nobody.so.2"), ContainsSubstring("libnccl_of_nobody.so.2 cannot be loaded"));
  CHECK_THAT(nccl_obstacle("libm.so.6"), ContainsSubstring("it has no ncclGetVersion"));
  CHECK_THROWS_AS(nccl_communicator(single_rank(), torch::kCPU, "libnccl_of_nobody.so.2"), RankError);
}

TEST_CASE("ranks without GPUs of their own keep the communicator that they have", "[distributed][nccl][quick]") {
  run_as_threads(2, [](Communicator& base) {
    const auto own = shared(base);
    const auto choice = with_nccl(own, torch::kCPU);
    if (choice.ranks != own || choice.reason.empty()) throw DataError("another communicator");
    choice.ranks->barrier();
  });
  CHECK(with_nccl(single_rank(), torch::kCPU).reason == "one rank alone");
}
