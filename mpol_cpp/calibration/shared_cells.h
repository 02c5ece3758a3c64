#pragma once

#include <cstdint>
#include <vector>

#include <mpol_cpp/visibilities/sample_blocks.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Which part of the uv plane blocks of data have in common, in square cells: samples of a cell see nearly the same visibility of
/// the sky, and those of Hermitian partners too.
class SharedCells {
 public:
  /// @param width  of a cell, wavelengths, > 0
  /// @throws ShapeError, ValueError for blocks that are not those of the samples
  SharedCells(const Visibilities& visibilities, const SampleBlocks& blocks, double width);

  /// 1 - W_b/W of samples [begin, end) of a channel, (n) float64: the part of a cell's weight that other blocks than the sample's
  /// have. Where a cell's visibility is free to be what data make it, a sample tells by that part of its weight about the gain of
  /// its block.
  Tensor part_of_others(std::int64_t channel, std::int64_t begin, std::int64_t end) const;

  /// The part of each block's weight that lies in cells in which another block has samples too.
  const std::vector<double>& shared() const { return shared_; }

 private:
  Tensor keys_of(std::int64_t channel, std::int64_t begin, std::int64_t end) const;

  const Visibilities& visibilities_;
  const SampleBlocks& blocks_;
  double width_;
  Tensor keys_;    // of each cell and block that occur together, increasing
  Tensor others_;  // 1 - W_b/W of each
  std::vector<double> shared_;
};

}  // namespace mpol
