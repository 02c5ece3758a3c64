#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

namespace mpol {

/// Runs the pieces of a job on the thread that asks and on helper threads of its own. Pieces are taken, not given: a helper
/// that the system runs late, because other programs have its core, finds nothing left, and nobody has waited for it. A job
/// ends when its pieces are done; only for a piece that a helper has begun must be waited. A caller that had to wait long
/// so works alone for some time. Helpers look for the next job for a moment, then sleep.
class WorkerPool {
 public:
  /// The order in which pieces are taken.
  enum class Order {
    near,     ///< each worker begins with its own run of neighbours, the same in each job, and then helps others
    numbers,  ///< by their numbers, whoever comes
  };

  /// @param task  is given the items [first, last) of a piece and the number of the worker, one at a time each
  using Body = void (*)(const void* task, std::int64_t first, std::int64_t last, std::int64_t worker);

  struct Job {
    Body body;
    const void* task;
    std::int64_t items;
    std::int64_t items_per_piece;  ///< as few, unless there are more than most_pieces
    std::int64_t workers;          ///< at most, the caller is number 0; most_workers at most
    Order order;
  };

  static constexpr std::int64_t most_workers = 256, most_pieces = 65535;

  /// Returns when all items are done, or throws the first exception of a piece; pieces not begun by then are left out. Jobs
  /// within a job are done by the thread that asks for them. Each thread that asks has helpers of its own, which end with it. A
  /// child process made by fork() gets new ones.
  static void run(const Job& job);

  WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool();

 private:
  using Clock = std::chrono::steady_clock;

  /// Pieces that nobody has taken yet: the number of the job, the first of them and their end, in one word, which therefore
  /// changes as one and never returns to what it was.
  struct alignas(64) Range {
    std::atomic<std::uint64_t> word{0};
  };

  static WorkerPool& of_this_thread();

  void share(const Job& job);
  void make_helpers(std::int64_t count);
  void help(std::int64_t worker);
  bool wait_for_job(std::uint32_t done, std::uint32_t& number);
  std::int64_t work(std::uint32_t number, std::int64_t worker);
  bool take(std::uint32_t number, std::int64_t worker, std::int64_t& piece);
  void do_piece(std::int64_t piece, std::int64_t worker);
  void wait_for_pieces(Clock::duration usual);

  std::vector<std::thread> helpers_;
  unsigned forks_;                // that the process came from when the helpers were made
  Clock::time_point alone_till_;  // the caller works without them
  Clock::duration alone_time_{};  // the last time, so many times the wait before it
  int alone_times_ = 0;

  // The job, written by the caller while nothing of it can be taken. A helper that was away may read what belongs to the next
  // one; it then fails to take a piece, because the word of the range is no longer what it was.
  std::atomic<Body> body_{nullptr};
  std::atomic<const void*> task_{nullptr};
  std::atomic<std::int64_t> items_{0}, pieces_{0}, workers_{0};
  std::atomic<Order> order_{Order::near};
  std::unique_ptr<Range[]> ranges_;

  std::atomic<std::uint32_t> number_{0};  // of the job; helpers sleep on it
  std::atomic<std::int32_t> left_{0};     // pieces not done; the caller sleeps on it
  std::atomic<bool> ends_{false}, failed_{false};
  std::exception_ptr error_;  // of whoever set failed_
};

}  // namespace mpol
