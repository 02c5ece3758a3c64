#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include <ATen/ops/from_blob.h>
#include <torch/types.h>

namespace mpol::gridding {

/// An array that grows to an unknown length and becomes a tensor without being copied: memory that was reserved but
/// never written is not resident, and large blocks are grown and cut by remapping pages.
template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// @param upper_bound  the largest length that can be asked for
  explicit GrowingArray(std::int64_t upper_bound) : upper_bound_(upper_bound) {}

  std::int64_t size() const { return size_; }

  /// Makes room for `count` more elements and returns where they begin (uninitialised).
  T* extend(std::int64_t count) {
    const auto wanted = size_ + count;
    if (wanted > capacity_) reallocate(std::min(upper_bound_, std::max({wanted, 2 * capacity_, first_capacity})));
    T* begin = memory_.get() + size_;
    size_ = wanted;
    return begin;
  }

  /// The elements as a tensor (size) of that dtype, which takes over the memory; the array is empty afterwards.
  torch::Tensor release(torch::Dtype dtype) {
    if (size_ == 0) return at::empty({0}, dtype);
    reallocate(size_);
    const auto size = std::exchange(size_, 0);
    capacity_ = 0;
    return at::from_blob(
        memory_.release(), {size}, [](void* memory) { std::free(memory); }, dtype);
  }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  // From 32 MiB on the allocator maps blocks on their own, whatever it has seen before.
  static constexpr std::int64_t first_capacity = (std::int64_t{32} << 20) / static_cast<std::int64_t>(sizeof(T));

  void reallocate(std::int64_t capacity) {
    auto* moved = static_cast<T*>(std::realloc(memory_.get(), static_cast<std::size_t>(capacity) * sizeof(T)));
    if (moved == nullptr) throw std::bad_alloc();
    memory_.release();
    memory_.reset(moved);
    capacity_ = capacity;
  }

  std::int64_t upper_bound_;
  std::int64_t size_ = 0, capacity_ = 0;
  std::unique_ptr<T[], Free> memory_;
};

}  // namespace mpol::gridding
