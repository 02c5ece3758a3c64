#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace mpol {

/// Makes the next items on a thread of its own while the ones before are used: what is slow to read, sort or copy then costs
/// the larger of making and using an item, not their sum.
///
/// The thread makes the next item only while fewer than `ahead` wait, so that at most ahead + 1 are there, the one in use
/// included. It begins at once, and ends when there are no more items, after an exception, or with this object, which waits for
/// the item that is being made.
template <typename Item>
class ReadAhead {
 public:
  /// The next item, or nothing behind the last one. It is called by one thread at a time.
  using Next = std::function<std::optional<Item>()>;

  /// @param ahead  items to make ahead; 0 for none and no thread: each is then made when it is taken
  ReadAhead(Next next, std::size_t ahead) : next_(std::move(next)), ahead_(ahead) {
    if (ahead_ > 0) thread_ = std::thread([this] { make_items(); });
  }
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  ~ReadAhead() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// The next item; waits for it where it is not ready. Nothing behind the last one.
  /// An exception of the function comes when the items before it were taken, and again at each later call.
  std::optional<Item> take() {
    if (ahead_ == 0) return next_();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || ended_; });
    if (ready_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    std::optional<Item> item(std::move(ready_.front()));
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return item;
  }

 private:
  void make_items() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ready_.size() < ahead_ || stopped_; });
        if (stopped_) return;
      }
      std::exception_ptr error;
      auto item = made(error);
      const bool ended = !item;
      {
        const std::lock_guard lock(mutex_);
        ended_ = ended;
        error_ = error;
        if (item) ready_.push_back(std::move(*item));
      }
      changed_.notify_all();
      if (ended) return;
    }
  }

  std::optional<Item> made(std::exception_ptr& error) {
    try {
      return next_();
    } catch (...) {
      error = std::current_exception();
      return std::nullopt;
    }
  }

  Next next_;
  std::size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> ready_;  // made, not taken
  bool ended_ = false, stopped_ = false;
  std::exception_ptr error_;  // of the function, behind what is ready
  std::thread thread_;
};

}  // namespace mpol
