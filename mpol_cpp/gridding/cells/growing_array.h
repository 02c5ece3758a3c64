#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <ATen/ops/from_blob.h>
#include <torch/types.h>

#include <mpol_cpp/ops/memory/page_array.h>

namespace mpol::gridding {

/// An array that grows to an unknown length and becomes a tensor without being copied: pages that were reserved but never
/// written are not resident.
template <typename T>
class GrowingArray {
 public:
  /// @param upper_bound  the largest length that can be asked for
  explicit GrowingArray(std::int64_t upper_bound) : pages_(static_cast<std::size_t>(upper_bound)) {}

  std::int64_t size() const { return size_; }

  /// Makes room for `count` more elements and returns where they begin.
  T* extend(std::int64_t count) { return pages_.data() + std::exchange(size_, size_ + count); }

  /// The elements as a tensor (size) of that dtype, which takes over the memory; the array is of no use afterwards.
  torch::Tensor release(torch::Dtype dtype) {
    pages_.cut(static_cast<std::size_t>(size_));
    const auto owner = std::make_shared<PageArray<T>>(std::move(pages_));
    return at::from_blob(
        owner->data(), {size_}, [owner](void*) {}, dtype);
  }

 private:
  PageArray<T> pages_;
  std::int64_t size_ = 0;
};

}  // namespace mpol::gridding
