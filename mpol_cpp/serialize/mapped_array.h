#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Where the numbers of an array lie in a file: packed, in C order and in this machine's byte order.
struct ArrayLayout {
  std::filesystem::path path;            ///< the file
  std::int64_t begin = 0;                ///< first byte
  std::vector<std::int64_t> shape;       ///< of all dimensions, one at least
  torch::Dtype dtype = torch::kFloat32;  ///< of the numbers in the file
};

/// An array in a file that is read where it is asked for, and may be larger than memory. Copies share one mapping.
///
/// The file must not be changed meanwhile: what is then read is undefined, and where it was cut short the process ends.
class MappedArray {
 public:
  /// @throws FileError when the file is missing, unreadable, or too short; ValueError for a scalar or a negative size
  explicit MappedArray(ArrayLayout layout);

  const std::vector<std::int64_t>& shape() const { return layout_.shape; }  ///< of the whole array
  torch::Dtype dtype() const { return layout_.dtype; }                      ///< of the numbers
  std::int64_t rows() const { return layout_.shape.front(); }               ///< length of the first dimension
  std::int64_t bytes() const { return rows() * row_bytes_; }                ///< of all numbers

  /// Rows [begin, end) of the first dimension as a tensor of its own on the CPU. @throws ValueError when they are not there
  Tensor read(std::int64_t begin, std::int64_t end) const;
  /// Rows by number, (n) int64, in that order. @throws ValueError, ShapeError
  Tensor read(const Tensor& indices) const;
  /// Gives the memory of what was read back to the system, which keeps or drops it as it likes.
  void release() const;

 private:
  struct Mapping;
  Tensor empty_rows(std::int64_t count) const;

  ArrayLayout layout_;
  std::int64_t row_bytes_ = 0;
  std::shared_ptr<const Mapping> mapping_;
};

}  // namespace mpol
