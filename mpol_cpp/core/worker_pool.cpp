#include <mpol_cpp/core/worker_pool.h>

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace mpol {
namespace {

using std::chrono::microseconds;

/// How long a helper looks for the next job before it sleeps: the time between two passes, and between two steps of a fit.
constexpr auto longest_look = microseconds(100);
/// How long the caller looks for the end of the last pieces before it sleeps; longer where pieces are long.
constexpr auto shortest_wait = microseconds(30), longest_wait = microseconds(300);
/// A longer wait than this many pieces, and than this, means that a helper lost its core. The caller then works alone for so many
/// times what it has waited; for twice as many when it comes again soon after.
constexpr int patience = 4;
constexpr auto least_patience = microseconds(150);
constexpr int alone_for = 8, alone_for_at_most = 64;
constexpr auto longest_alone = std::chrono::seconds(1);

thread_local bool is_working = false;  // on a piece, or as a helper

void pause_briefly() {
  for (int i = 0; i < 16; ++i) {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }
}

std::atomic<unsigned>& forks_of_process() {
  static std::atomic<unsigned> forks{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks_of_process().fetch_add(1); });
  static_cast<void>(registered);
  return forks;
}

constexpr std::uint64_t range_word(std::uint32_t number, std::int64_t first, std::int64_t end) {
  return std::uint64_t{number} << 32 | static_cast<std::uint64_t>(first) << 16 | static_cast<std::uint64_t>(end);
}

/// Says that this thread works, while it lives.
class Working {
 public:
  Working() { is_working = true; }
  ~Working() { is_working = false; }
  Working(const Working&) = delete;
  Working& operator=(const Working&) = delete;
};

/// Signals are for the program's own threads while it lives.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

WorkerPool::WorkerPool()
    : forks_(forks_of_process().load()), ranges_(std::make_unique<Range[]>(static_cast<std::size_t>(most_workers))) {}

WorkerPool::~WorkerPool() {
  if (forks_ != forks_of_process().load()) {
    // In a child the helpers do not exist, though their objects do: these can be neither joined nor destroyed.
    auto left_alone = std::make_unique<std::vector<std::thread>>();
    left_alone->swap(helpers_);
    static_cast<void>(left_alone.release());
    return;
  }
  ends_ = true;
  number_.fetch_add(1);
  number_.notify_all();
  for (auto& helper : helpers_) helper.join();
}

WorkerPool& WorkerPool::of_this_thread() {
  thread_local std::optional<WorkerPool> pool;
  if (!pool || pool->forks_ != forks_of_process().load()) pool.emplace();
  return *pool;
}

void WorkerPool::run(const Job& job) {
  if (job.items <= 0) return;
  if (is_working || job.workers <= 1 || job.items <= job.items_per_piece) return job.body(job.task, 0, job.items, 0);
  of_this_thread().share(job);
}

void WorkerPool::share(const Job& job) {
  const auto begin = Clock::now();
  const Working working;
  if (begin < alone_till_) return job.body(job.task, 0, job.items, 0);
  const auto pieces = std::min((job.items + job.items_per_piece - 1) / job.items_per_piece, most_pieces);
  make_helpers(std::min(job.workers, most_workers) - 1);
  const auto workers = std::min({job.workers, static_cast<std::int64_t>(helpers_.size()) + 1, pieces});
  const auto number = number_.load(std::memory_order_relaxed) + 1;
  body_.store(job.body, std::memory_order_release);
  task_.store(job.task, std::memory_order_release);
  items_.store(job.items, std::memory_order_release);
  pieces_.store(pieces, std::memory_order_release);
  workers_.store(workers, std::memory_order_release);
  order_.store(job.order, std::memory_order_release);
  left_.store(static_cast<std::int32_t>(pieces), std::memory_order_release);
  failed_.store(false, std::memory_order_release);
  error_ = nullptr;
  for (std::int64_t worker = 0; worker < workers; ++worker) {
    const bool in_runs = job.order == Order::near;
    const auto first = in_runs ? pieces * worker / workers : 0;
    const auto end = in_runs ? pieces * (worker + 1) / workers : (worker == 0 ? pieces : 0);
    ranges_[static_cast<std::size_t>(worker)].word.store(range_word(number, first, end), std::memory_order_release);
  }
  number_.store(number);
  number_.notify_all();

  const auto own = work(number, 0);
  const auto usual = own > 0 ? (Clock::now() - begin) / own : Clock::duration::zero();
  if (left_.fetch_sub(static_cast<std::int32_t>(own), std::memory_order_acq_rel) != own) wait_for_pieces(usual);
  if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(std::exchange(error_, nullptr));
}

void WorkerPool::make_helpers(std::int64_t count) {
  if (static_cast<std::int64_t>(helpers_.size()) >= count) return;
  const SignalsBlocked blocked;
  try {
    while (static_cast<std::int64_t>(helpers_.size()) < count) {
      const auto worker = static_cast<std::int64_t>(helpers_.size()) + 1;
      helpers_.emplace_back([this, worker] { help(worker); });
    }
  } catch (const std::system_error&) {
    // The system allows no more threads: those that there are do it.
  }
}

void WorkerPool::help(std::int64_t worker) {
  const Working working;
  std::uint32_t number = 0;
  while (wait_for_job(number, number)) {
    const auto pieces = worker < workers_.load(std::memory_order_acquire) ? work(number, worker) : 0;
    if (pieces > 0 && left_.fetch_sub(static_cast<std::int32_t>(pieces), std::memory_order_acq_rel) == pieces) left_.notify_all();
  }
}

/// @return whether there is another job than the one that was done, and not the end
bool WorkerPool::wait_for_job(std::uint32_t done, std::uint32_t& number) {
  const auto begin = Clock::now();
  while ((number = number_.load(std::memory_order_acquire)) == done && Clock::now() - begin < longest_look) {
    pause_briefly();
    // Whoever else wants this core, the caller perhaps, has better use for it.
    std::this_thread::yield();
  }
  while ((number = number_.load(std::memory_order_acquire)) == done) number_.wait(done, std::memory_order_acquire);
  return !ends_.load(std::memory_order_acquire);
}

/// Takes pieces of a job and does them until there are none. @return how many
std::int64_t WorkerPool::work(std::uint32_t number, std::int64_t worker) {
  std::int64_t count = 0, piece = 0;
  for (; take(number, worker, piece); ++count) do_piece(piece, worker);
  return count;
}

bool WorkerPool::take(std::uint32_t number, std::int64_t worker, std::int64_t& piece) {
  const auto workers = workers_.load(std::memory_order_acquire);
  const bool by_numbers = order_.load(std::memory_order_acquire) == Order::numbers;
  const auto begin = by_numbers ? 0 : worker;
  for (std::int64_t i = 0; i < (by_numbers ? 1 : workers); ++i) {
    auto& word = ranges_[static_cast<std::size_t>((begin + i) % workers)].word;
    auto present = word.load(std::memory_order_acquire);
    while (static_cast<std::uint32_t>(present >> 32) == number) {
      const auto first = static_cast<std::int64_t>(present >> 16 & 0xffff), end = static_cast<std::int64_t>(present & 0xffff);
      if (first == end) break;
      // Its owner goes through a run from the front, others help from the back.
      const bool from_front = i == 0;
      piece = from_front ? first : end - 1;
      const auto rest = from_front ? range_word(number, first + 1, end) : range_word(number, first, end - 1);
      if (word.compare_exchange_weak(present, rest, std::memory_order_acq_rel, std::memory_order_acquire)) return true;
    }
  }
  return false;
}

void WorkerPool::do_piece(std::int64_t piece, std::int64_t worker) {
  // What was taken belongs to the present job, which cannot end before it is done.
  if (failed_.load(std::memory_order_relaxed)) return;
  const auto items = items_.load(std::memory_order_relaxed), pieces = pieces_.load(std::memory_order_relaxed);
  try {
    body_.load(std::memory_order_relaxed)(task_.load(std::memory_order_relaxed), items * piece / pieces,
                                          items * (piece + 1) / pieces, worker);
  } catch (...) {
    if (!failed_.exchange(true, std::memory_order_acq_rel)) error_ = std::current_exception();
  }
}

void WorkerPool::wait_for_pieces(Clock::duration usual) {
  const auto begin = Clock::now();
  const auto look = std::clamp<Clock::duration>(2 * usual, shortest_wait, longest_wait);
  while (left_.load(std::memory_order_acquire) != 0 && Clock::now() - begin < look) pause_briefly();
  // Asleep: the core is free for a helper that is waiting for one.
  for (auto left = left_.load(std::memory_order_acquire); left != 0; left = left_.load(std::memory_order_acquire)) {
    left_.wait(left, std::memory_order_acquire);
  }
  const auto end = Clock::now();
  const auto waited = end - begin;
  if (waited < std::max<Clock::duration>(patience * usual, least_patience)) return;
  const bool comes_again = begin - alone_till_ < alone_time_;
  alone_times_ = comes_again ? std::min(2 * alone_times_, alone_for_at_most) : alone_for;
  alone_time_ = std::min<Clock::duration>(alone_times_ * waited, longest_alone);
  alone_till_ = end + alone_time_;
}

}  // namespace mpol
