#pragma once

#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <ATen/ThreadLocalState.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <torch/types.h>

#include <mpol_cpp/core/read_ahead.h>
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
  /// Does what puts further work on the device into the stream of the copies. @return when that will be done
  std::optional<c10::Event> put_aside(const std::function<void()>& work) const;
  c10::Stream current() const;  ///< where work on the device goes to that is not put aside

 private:
  std::unique_ptr<LeafVisitor> make_stager() const;
  std::unique_ptr<LeafVisitor> make_recorder() const;
  std::optional<c10::Event> staged_event() const;

  torch::Device device_;
  std::optional<c10::Stream> side_;
};

}  // namespace detail

/// Goes through the batches of a loader on a device:
///
///   for (auto& batch : DeviceIterator(loader, device)) { … }
///
/// The loader is asked for batches on a thread of its own, so that reading, choosing or sorting the next one goes on while the
/// one before is worked on. On a GPU that thread also stages each batch through pinned memory on a second stream. A batch is
/// freed when the next one is asked for: at most prefetch + 1 are there. On the CPU the loader's tensors pass through as they
/// are. The loader's own batches stay where they are. Leaving the loop early or by an exception frees what was staged, once the
/// batch that is being read is there; an exception of the loader comes when the batches before it were given out.
///
/// @tparam Loader  anything with begin() and end() that gives batches: a container, VisibilityBatches of a sampler, a
///                 torch::data loader (of Examples, or of whatever its collation makes); a batch is whatever move_to
///                 (mpol_cpp/device/move.h) moves, and is copied from the loader
template <typename Loader>
class DeviceIterator {
  using Source = decltype(std::begin(std::declval<std::remove_reference_t<Loader>&>()));
  using SourceEnd = decltype(std::end(std::declval<std::remove_reference_t<Loader>&>()));

 public:
  using Batch = std::remove_cvref_t<decltype(*std::declval<Source&>())>;  ///< what the loader gives

  /// @param loader    an lvalue is used where it is and must live as long as this; an rvalue is kept. While the iterator is in
  ///                  use nobody else may touch it, unless prefetch is 0
  /// @param prefetch  batches to read ahead of the one in use; with 0 each is read on the calling thread when its turn comes
  DeviceIterator(Loader&& loader, torch::Device device, std::size_t prefetch = 1)
      : loader_(std::forward<Loader>(loader)), stager_(device), prefetch_(prefetch) {}
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

    /// Stands on the batch that the iterator has taken.
    explicit Position(DeviceIterator& owner) : owner_(&owner) {}
    /// The batch on the device, there until the position goes on.
    Batch& operator*() const { return owner_->current_->batch; }
    Batch* operator->() const { return &**this; }  ///< as the operator before
    /// Frees the batch and stands on the next one.
    Position& operator++() {
      owner_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }  ///< as the other one; nothing is left to give back
    /// Whether no batch is left.
    bool operator==(std::default_sentinel_t) const { return !owner_->current_; }

   private:
    DeviceIterator* owner_;
  };

  /// Begins the loader anew.
  Position begin() {
    staged_.reset();
    current_.reset();
    source_.emplace(std::begin(loader_));
    end_.emplace(std::end(loader_));
    begun_ = false;
    staged_.emplace(
        [this, state = at::ThreadLocalState()] {
          const at::ThreadLocalStateGuard as_here(state);  // gradients on or off, as where the loop is
          return stage_next();
        },
        prefetch_);
    advance();
    return Position(*this);
  }
  std::default_sentinel_t end() const { return {}; }  ///< what begin() becomes equal to behind the last batch

 private:
  /// A batch on its way.
  struct Staged {
    explicit Staged(Source& source) : batch(*source) {}
    Batch batch;
    std::optional<c10::Event> ready;
  };

  /// On the thread that reads. The loader goes on only when the next batch is wanted: going on may be what reads it.
  std::optional<std::unique_ptr<Staged>> stage_next() {
    if (begun_) ++*source_;
    begun_ = true;
    if (!(*source_ != *end_)) return std::nullopt;
    auto next = std::make_unique<Staged>(*source_);
    next->ready = stager_.stage(next->batch);
    return next;
  }

  void advance() {
    current_.reset();
    if (auto next = staged_->take()) current_ = std::move(*next);
    if (current_) stager_.take_over(current_->batch, current_->ready);
  }

  Loader loader_;
  detail::BatchStager stager_;
  std::size_t prefetch_;
  std::optional<Source> source_;
  std::optional<SourceEnd> end_;
  bool begun_ = false;
  std::unique_ptr<Staged> current_;
  std::optional<ReadAhead<std::unique_ptr<Staged>>> staged_;  // last: its thread uses the others
};

/// DeviceIterator(loader, device) keeps a loader that is an rvalue, and uses an lvalue where it is.
template <typename Loader>
DeviceIterator(Loader&&, torch::Device, std::size_t = 1) -> DeviceIterator<Loader>;

}  // namespace mpol
