#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

namespace mpol {

using torch::Tensor;

/// Which block of data (spectral window, observation, stretch of time, file) each sample belongs to.
struct SampleBlocks {
  Tensor indices;                  ///< (nvis), or (1 or nchan, nvis), int64 on the CPU: into `names`
  std::vector<std::string> names;  ///< "window 3", as messages and tables call the blocks

  std::int64_t size() const { return static_cast<std::int64_t>(names.size()); }  ///< how many blocks there are
  /// Blocks of samples [begin, end) of a data channel. @throws ShapeError where there are no such
  Tensor of(std::int64_t channel, std::int64_t begin, std::int64_t end) const;
  /// @throws ShapeError unless (nvis), (1, nvis) or (nchan, nvis) int64; ValueError for a block that has no name
  void check(std::int64_t nchan, std::int64_t nvis) const;

  /// A block for each number that occurs, in increasing order, named "WORD NUMBER".
  /// @param numbers  (nvis), or (1 or nchan, nvis), of whole numbers
  static SampleBlocks of_numbers(const Tensor& numbers, const std::string& word);
  /// A block for each pair of both that occurs, named by both: "window 3 observation 1".
  /// @throws ShapeError when they are not of the same samples
  SampleBlocks crossed(const SampleBlocks& other) const;
};

/// Stretches of time with about the same number of samples, which split no moment: (nvis) int64 from 0, increasing in time.
/// @param times  (nvis) float64, in any unit  @param count  how many are wanted, > 0; there may be fewer, as moments are few
/// @throws ValueError unless count > 0; ShapeError for times of another shape; DataError for some that are not finite
Tensor stretches_of_time(const Tensor& times, std::int64_t count);

}  // namespace mpol
