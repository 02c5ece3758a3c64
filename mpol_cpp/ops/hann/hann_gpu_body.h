#pragma once

// The Hann convolution on a GPU; C++17, no LibTorch: the CUDA compiler reads it.
#include <mpol_cpp/ops/gpu/block.h>

namespace mpol::ops {

enum class HannKernel { convolve };

/// Images (images, rows, columns), contiguous, in other memory than what comes out.
template <typename T>
struct HannArrays {
  std::int64_t images;
  std::int32_t rows, columns;
  DeviceArray<const T> in;
  DeviceArray<T> out;
};

/// Each thread goes down a few pixels of a column and blends each row of three once.
template <typename T>
struct HannBody {
  static constexpr int threads = 256, phases = 1, run_length = 4;
  struct Shared {};
  struct Local {};

  HannArrays<T> arrays;

  MPOL_DEVICE std::int64_t runs() const { return (arrays.rows + run_length - 1) / run_length; }
  MPOL_DEVICE std::int64_t blocks_of_image() const { return (runs() * arrays.columns + threads - 1) / threads; }
  std::int64_t blocks() const { return arrays.images * blocks_of_image(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const std::int64_t image = place.block / blocks_of_image();
    const std::int64_t item = (place.block - image * blocks_of_image()) * threads + place.thread;
    if (item >= runs() * arrays.columns) return;
    const auto first = static_cast<std::int32_t>(item / arrays.columns) * run_length;
    const auto column = static_cast<std::int32_t>(item % arrays.columns);
    const std::int64_t pixels = std::int64_t{arrays.rows} * arrays.columns;
    const auto in = arrays.in.part(image * pixels, pixels);
    const auto out = arrays.out.part(image * pixels, pixels);
    const auto blended = [&](std::int32_t row) {
      if (row < 0 || row >= arrays.rows) return T(0);
      const std::int64_t at = std::int64_t{row} * arrays.columns + column;
      const T left = column > 0 ? in[at - 1] : T(0), right = column + 1 < arrays.columns ? in[at + 1] : T(0);
      return T(0.5) * in[at] + T(0.25) * (left + right);
    };
    T above = blended(first - 1), own = blended(first);
    MPOL_UNROLL
    for (int i = 0; i < run_length; ++i) {
      if (first + i >= arrays.rows) break;
      const T below = blended(first + i + 1);
      out[std::int64_t{first + i} * arrays.columns + column] = T(0.5) * own + T(0.25) * (above + below);
      above = own;
      own = below;
    }
  }
};

template <typename T, typename Run>
void with_body(HannKernel, const HannArrays<T>& arrays, const Run& run) {
  run(HannBody<T>{arrays});
}

}  // namespace mpol::ops
