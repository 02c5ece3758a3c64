#include "catch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <mpol_cpp/core/worker_pool.h>

using mpol::WorkerPool;

namespace {

using Piece = std::function<void(std::int64_t first, std::int64_t last, std::int64_t worker)>;

void run_pieces(std::int64_t items, std::int64_t grain, std::int64_t workers, WorkerPool::Order order, const Piece& piece) {
  const auto body = [](const void* task, std::int64_t first, std::int64_t last, std::int64_t worker) {
    (*static_cast<const Piece*>(task))(first, last, worker);
  };
  WorkerPool::run({body, &piece, items, grain, workers, order});
}

/// Whether it came true before the time was over.
bool wait_until(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Runs it on a thread of its own, whose pool has seen no job yet: none that made it work alone.
void with_new_pool(const std::function<void()>& body) { std::thread(body).join(); }

}  // namespace

TEST_CASE("a pool does each item once, and no two pieces with one worker's number at once", "[core][quick]") {
  const auto order = GENERATE(WorkerPool::Order::near, WorkerPool::Order::numbers);
  const std::int64_t items = GENERATE(1, 2, 7, 1000, 200'000), grain = GENERATE(1, 3), workers = GENERATE(1, 2, 3, 8);
  CAPTURE(items, grain, workers);
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::vector<std::atomic<int>> times(static_cast<std::size_t>(items)), present(static_cast<std::size_t>(workers));
    std::atomic<bool> alone{true}, in_range{true};
    run_pieces(items, grain, workers, order, [&](std::int64_t first, std::int64_t last, std::int64_t worker) {
      if (worker < 0 || worker >= workers) {
        in_range = false;
        return;
      }
      if (++present[static_cast<std::size_t>(worker)] != 1) alone = false;
      for (auto i = first; i < last; ++i) ++times[static_cast<std::size_t>(i)];
      --present[static_cast<std::size_t>(worker)];
    });
    CHECK(in_range);
    CHECK(alone);
    CHECK(std::all_of(times.begin(), times.end(), [](const auto& count) { return count == 1; }));
  }
}

TEST_CASE("a helper that is held up in a piece holds up that piece only", "[core][quick]") {
  const auto order = GENERATE(WorkerPool::Order::near, WorkerPool::Order::numbers);
  // Its piece ends when all others have been done: a share of its own would never be.
  const std::int64_t items = 64;
  bool was_held_up = false;
  for (int attempt = 0; attempt < 100 && !was_held_up; ++attempt) {
    std::atomic<std::int64_t> done{0};
    std::atomic<int> held{0};
    std::atomic<bool> others_were_done{true};
    with_new_pool([&] {
      run_pieces(items, 1, 2, order, [&](std::int64_t, std::int64_t, std::int64_t worker) {
        if (worker == 1 && held.fetch_add(1) == 0) others_were_done = wait_until([&] { return done == items - 1; });
        if (worker == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
        ++done;
      });
    });
    CHECK(others_were_done);
    was_held_up = held > 0;
  }
  CHECK(was_held_up);
}

TEST_CASE("a caller that had to wait long for a helper works alone for a while", "[core][quick]") {
  bool worked_alone = false, both_worked = true;
  for (int attempt = 0; attempt < 20 && !worked_alone; ++attempt) {
    with_new_pool([&] {
      std::atomic<bool> helped{false};
      const auto begin = std::chrono::steady_clock::now();
      run_pieces(2, 1, 2, WorkerPool::Order::near, [&](std::int64_t, std::int64_t, std::int64_t worker) {
        if (worker == 0) {
          wait_until([&] { return helped.load(); });
        } else {
          helped = true;
          // Long beside the caller's own piece, which took as long as this helper took to come.
          const auto came = std::chrono::steady_clock::now() - begin;
          std::this_thread::sleep_for(std::max<std::chrono::steady_clock::duration>(std::chrono::milliseconds(5), 20 * came));
        }
      });
      std::set<std::int64_t> workers;
      std::mutex mutex;
      run_pieces(10, 1, 2, WorkerPool::Order::near, [&](std::int64_t, std::int64_t, std::int64_t worker) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        const std::lock_guard lock(mutex);
        workers.insert(worker);
      });
      worked_alone = workers == std::set<std::int64_t>{0};
      // And then with its helper again.
      helped = false;
      both_worked = both_worked && wait_until([&] {
                      run_pieces(2, 1, 2, WorkerPool::Order::near, [&](std::int64_t, std::int64_t, std::int64_t worker) {
                        if (worker == 1) helped = true;
                        else std::this_thread::sleep_for(std::chrono::milliseconds(2));
                      });
                      return helped.load();
                    });
    });
  }
  CHECK(worked_alone);
  CHECK(both_worked);
}

TEST_CASE("an exception of any piece reaches the caller, and the pool goes on", "[core][quick]") {
  const std::int64_t broken = GENERATE(0, 17, 99), workers = GENERATE(1, 2, 4);
  for (int repeat = 0; repeat < 20; ++repeat) {
    CHECK_THROWS_AS(run_pieces(100, 1, workers, WorkerPool::Order::near,
                               [&](std::int64_t first, std::int64_t last, std::int64_t) {
                                 if (first <= broken && broken < last) throw std::out_of_range("broken");
                               }),
                    std::out_of_range);
    std::atomic<std::int64_t> sum{0};
    run_pieces(100, 1, workers, WorkerPool::Order::near, [&](std::int64_t first, std::int64_t last, std::int64_t) {
      for (auto i = first; i < last; ++i) sum += i;
    });
    CHECK(sum == 4950);
  }
}

TEST_CASE("a job within a job is done by the thread that asks for it", "[core][quick]") {
  std::atomic<std::int64_t> items{0};
  std::atomic<bool> same_thread{true};
  run_pieces(16, 1, 4, WorkerPool::Order::numbers, [&](std::int64_t outer_first, std::int64_t outer_last, std::int64_t) {
    const auto here = std::this_thread::get_id();
    for (auto i = outer_first; i < outer_last; ++i) {
      run_pieces(10, 1, 4, WorkerPool::Order::near, [&](std::int64_t first, std::int64_t last, std::int64_t worker) {
        if (std::this_thread::get_id() != here || worker != 0) same_thread = false;
        items += last - first;
      });
    }
  });
  CHECK(items == 160);
  CHECK(same_thread);
}

TEST_CASE("several threads share jobs at the same time", "[core][quick]") {
  std::vector<std::int64_t> sums(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < sums.size(); ++t) {
    threads.emplace_back([&sums, t] {
      for (int job = 0; job < 200; ++job) {
        std::atomic<std::int64_t> sum{0};
        run_pieces(50, 1, 3, WorkerPool::Order::near, [&](std::int64_t first, std::int64_t last, std::int64_t) {
          for (auto i = first; i < last; ++i) sum += i;
        });
        sums[t] += sum;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto sum : sums) CHECK(sum == std::int64_t{200} * 1225);
}

TEST_CASE("what one job writes the next one reads, whoever did it", "[core][quick]") {
  std::vector<std::int64_t> values(300, 0);
  for (int job = 0; job < 500; ++job) {
    const auto order = job % 2 == 0 ? WorkerPool::Order::near : WorkerPool::Order::numbers;
    run_pieces(300, 1, 1 + job % 4, order, [&](std::int64_t first, std::int64_t last, std::int64_t) {
      for (auto i = first; i < last; ++i) ++values[static_cast<std::size_t>(299 - i)];
    });
  }
  CHECK(values == std::vector<std::int64_t>(300, 500));
}

TEST_CASE("a child process has helpers of its own", "[core][quick]") {
  const auto sum = [] {
    std::atomic<std::int64_t> total{0};
    run_pieces(100, 1, 3, WorkerPool::Order::near, [&](std::int64_t first, std::int64_t last, std::int64_t) {
      for (auto i = first; i < last; ++i) total += i;
    });
    return total.load();
  };
  REQUIRE(sum() == 4950);
  const auto child = fork();
  if (child == 0) _exit(sum() == 4950 && sum() == 4950 ? 0 : 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(sum() == 4950);
}
