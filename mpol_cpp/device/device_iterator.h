#pragma once

#include <deque>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <torch/types.h>

#include <mpol_cpp/device/move.h>

namespace mpol {
namespace detail {

/// Takes batches to a device: on a GPU through pinned memory on a stream of its own.
class BatchStager {
 public:
  explicit BatchStager(torch::Device device);

  template <typename Batch>
  std::optional<c10::Event> stage(Batch& batch) const {
    visit_leaves(batch, "batch", *make_stager());
    return staged_event();
  }
  /// Makes the current stream wait until a batch is there, and keeps its memory until that stream has used it.
  template <typename Batch>
  void take_over(Batch& batch, const std::optional<c10::Event>& ready) const {
    if (!ready) return;
    ready->block(current());
    visit_leaves(batch, "batch", *make_recorder());
  }

 private:
  std::unique_ptr<LeafVisitor> make_stager() const;
  std::unique_ptr<LeafVisitor> make_recorder() const;
  std::optional<c10::Event> staged_event() const;
  c10::Stream current() const;

  torch::Device device_;
  std::optional<c10::Stream> side_;
};

}  // namespace detail

/// Goes through the batches of a loader on a device:
///
///   for (auto& batch : DeviceIterator(loader, device)) { … }
///
/// On a GPU each batch is staged through pinned memory on a second stream while the one before it is worked on, and is
/// freed when the next one is asked for: at most prefetch + 1 batches are on the device. On the CPU the loader's tensors
/// pass through as they are. The loader's own batches stay where they are. Leaving the loop early or by an exception frees
/// what was staged; an exception of the loader comes once the batches before it were given out.
///
/// @tparam Loader  anything with begin() and end() that gives batches: a container, a torch::data loader, a sampler;
///                 a batch is whatever move_to (mpol_cpp/device/move.h) moves, and is copied from the loader
template <typename Loader>
class DeviceIterator {
  using Source = decltype(std::begin(std::declval<std::remove_reference_t<Loader>&>()));
  using SourceEnd = decltype(std::end(std::declval<std::remove_reference_t<Loader>&>()));

 public:
  using Batch = std::remove_cvref_t<decltype(*std::declval<Source&>())>;  ///< what the loader gives

  /// @param loader    an lvalue is used where it is and must live as long as this; an rvalue is kept
  /// @param prefetch  batches to stage ahead of the one in use
  DeviceIterator(Loader&& loader, torch::Device device, std::size_t prefetch = 1)
      : loader_(std::forward<Loader>(loader)), stager_(device), ahead_(device.is_cpu() ? 0 : prefetch) {}
  DeviceIterator(const DeviceIterator&) = delete;
  DeviceIterator& operator=(const DeviceIterator&) = delete;

  /// Stands on one batch; going on frees it.
  class Position {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;

    /// Stands on the batch that the iterator staged first.
    explicit Position(DeviceIterator& owner) : owner_(&owner) {}
    /// The batch on the device, there until the position goes on.
    Batch& operator*() const { return *owner_->staged_.front().batch; }
    Batch* operator->() const { return &**this; }  ///< as the operator before
    /// Frees the batch and stands on the next one.
    Position& operator++() {
      owner_->staged_.pop_front();
      owner_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }  ///< as the other one; nothing is left to give back
    /// Whether no batch is left.
    bool operator==(std::default_sentinel_t) const { return owner_->staged_.empty(); }

   private:
    DeviceIterator* owner_;
  };

  /// Begins the loader anew.
  Position begin() {
    staged_.clear();
    source_.emplace(std::begin(loader_));
    end_.emplace(std::end(loader_));
    exhausted_ = false;
    advance();
    return Position(*this);
  }
  std::default_sentinel_t end() const { return {}; }  ///< what begin() becomes equal to behind the last batch

 private:
  /// A batch on its way, or why there is none.
  struct Staged {
    std::optional<Batch> batch;
    std::optional<c10::Event> ready;
    std::exception_ptr error;
  };

  void stage_next() {
    Staged next;
    try {
      if (exhausted_ || !(*source_ != *end_)) {
        exhausted_ = true;
        return;
      }
      next.batch.emplace(**source_);
      next.ready = stager_.stage(*next.batch);
      ++*source_;
    } catch (...) {
      next.error = std::current_exception();
      exhausted_ = true;
    }
    staged_.push_back(std::move(next));
  }

  void advance() {
    while (!exhausted_ && staged_.size() < ahead_ + 1) stage_next();
    if (staged_.empty()) return;
    auto& front = staged_.front();
    if (front.error) {
      const auto error = front.error;
      staged_.clear();
      std::rethrow_exception(error);
    }
    stager_.take_over(*front.batch, front.ready);
  }

  Loader loader_;
  detail::BatchStager stager_;
  std::size_t ahead_;
  std::optional<Source> source_;
  std::optional<SourceEnd> end_;
  bool exhausted_ = true;
  std::deque<Staged> staged_;
};

/// DeviceIterator(loader, device) keeps a loader that is an rvalue, and uses an lvalue where it is.
template <typename Loader>
DeviceIterator(Loader&&, torch::Device, std::size_t = 1) -> DeviceIterator<Loader>;

}  // namespace mpol
