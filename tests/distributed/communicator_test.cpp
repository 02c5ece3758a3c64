#include "catch.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/distributed/exchange_speed.h>
#include <mpol_cpp/distributed/store_communicator.h>

#include "distributed/communicator_checks.h"

using namespace mpol;

TEST_CASE("threads of one process are ranks", "[distributed][quick]") {
  const auto size = GENERATE(1, 2, 3, 4);
  std::mutex mutex;
  std::vector<std::string> failures;
  run_as_threads(size, [&](Communicator& ranks) {
    ranks.set_timeout(std::chrono::seconds(30));
    const auto own = failures_of(ranks);
    const std::lock_guard lock(mutex);
    failures.insert(failures.end(), own.begin(), own.end());
  });
  INFO(fmt::format("{}", fmt::join(failures, "\n")));
  CHECK(failures.empty());
}

TEST_CASE("a large tensor does not wait in the store for who receives it later", "[distributed][quick]") {
  std::atomic<bool> asked = false;
  run_as_threads(2, [&](Communicator& ranks) {
    ranks.set_timeout(std::chrono::seconds(30));
    if (ranks.is_first()) {
      ranks.send(at::ones({std::int64_t{5} << 20}, torch::kUInt8), 1);
      if (!asked) throw DataError("sent before anybody asked for it");
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      asked = true;
      if (ranks.receive(0).sum().item<std::int64_t>() != std::int64_t{5} << 20) throw DataError("something else was received");
    }
  });
  CHECK(asked);
  // One that nobody takes is waited for as long as any other.
  CHECK_THROWS_AS(run_as_threads(2,
                                 [](Communicator& ranks) {
                                   ranks.set_timeout(std::chrono::milliseconds(100));
                                   if (ranks.is_first()) ranks.send(at::ones({std::int64_t{5} << 20}, torch::kUInt8), 1);
                                 }),
                  RankError);
}

TEST_CASE("ranks find out how fast they exchange, after which they still agree", "[distributed][quick]") {
  run_as_threads(3, [](Communicator& ranks) {
    ranks.set_timeout(std::chrono::seconds(30));
    const auto speed = measure_exchange(ranks, torch::kCPU);
    if (!(speed.seconds > 0 && speed.seconds < 10)) throw DataError(fmt::format("{} s for an exchange", speed.seconds));
    if (!(speed.bytes_per_second > 1e3 && std::isfinite(speed.bytes_per_second)))
      throw DataError(fmt::format("{} bytes a second", speed.bytes_per_second));
    std::vector<double> numbers{1};
    ranks.sum(numbers);
    if (numbers[0] != 3) throw DataError("ranks have lost each other");
  });
  CHECK(ExchangeSpeed{0.5, 100}.seconds_of_both(200) == 5);
}

TEST_CASE("one rank alone is the identity", "[distributed][quick]") {
  const auto alone = single_rank();
  const auto failures = failures_of(*alone);
  INFO(fmt::format("{}", fmt::join(failures, "\n")));
  CHECK(failures.empty());
  CHECK(alone->exchange_endings(3, {}) == std::vector<std::int64_t>{3});
}

TEST_CASE("a thread that fails ends those that wait for it, and its error is the one that is thrown", "[distributed][quick]") {
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH(run_as_threads(3,
                                   [](Communicator& ranks) {
                                     if (ranks.rank() == 1) throw DataError("rank 1 has bad data");
                                     ranks.barrier();
                                   }),
                    "rank 1 has bad data");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
}

TEST_CASE("a rank that does not come is waited for as long as the time-out says", "[distributed][quick]") {
  CHECK_THROWS_AS(run_as_threads(2,
                                 [](Communicator& ranks) {
                                   ranks.set_timeout(std::chrono::milliseconds(100));
                                   if (ranks.is_first()) ranks.barrier();
                                 }),
                  RankError);
  CHECK_THROWS_AS(single_rank()->set_timeout(std::chrono::milliseconds(0)), ValueError);
}

TEST_CASE("endings are known to all, and a missing one is noticed", "[distributed][quick]") {
  run_as_threads(3, [](Communicator& ranks) {
    const auto endings = ranks.exchange_endings(10 + ranks.rank(), {});
    if (endings != std::vector<std::int64_t>{10, 11, 12}) throw DataError("other endings");
  });
  run_as_threads(2, [](Communicator& ranks) {
    if (!ranks.is_first()) return;
    if (ranks.exchange_endings(1, std::chrono::milliseconds(50))) throw DataError("an ending of a rank that told none");
  });
}

TEST_CASE("shares cover everything once and differ by one at most", "[distributed][quick]") {
  const auto count = GENERATE(0, 1, 5, 16, 17);
  const auto size = GENERATE(1, 2, 3, 7);
  std::int64_t next = 0;
  for (std::int64_t rank = 0; rank < size; ++rank) {
    const auto share = share_of(count, rank, size);
    CHECK(share.begin == next);
    CHECK((share.size() == count / size || share.size() == count / size + 1));
    CHECK(share.is_empty() == (share.size() == 0));
    next = share.end;
  }
  CHECK(next == count);
  CHECK_THROWS_AS(share_of(1, 2, 2), ValueError);
}
