#pragma once

// The kernels of wavelet transforms, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/gpu/block.h>

namespace mpol::ops {

/// One level along one direction, of all transforms and images at once. split_*: halves of low and high frequencies; join_*:
/// their adjoint; join_and_sum: join_rows, summed over the transforms.
enum class WaveletKernel { split_rows, split_columns, join_columns, join_rows, join_and_sum };

inline constexpr int most_transforms = 8, most_taps = 16;

/// Arrays are (transforms, images, rows, columns), or (images, rows, columns) where all transforms read or write one; a level
/// works on the quarter of low frequencies, `height` x `width`, of each.
template <typename T>
struct WaveletArrays {
  std::int32_t transforms;
  std::int64_t images;
  std::uint32_t rows, columns, height, width;
  bool shared_source;  // (images, rows, columns)
  int taps[most_transforms];
  T low[most_transforms][most_taps], high[most_transforms][most_taps];

  DeviceArray<const T> source;
  DeviceArray<T> target;

  MPOL_DEVICE std::int64_t pixels() const { return std::int64_t{rows} * columns; }
};

/// @tparam kernel  a WaveletKernel
template <typename T, WaveletKernel kernel>
struct WaveletBody {
  static constexpr int threads = 256, phases = 1;
  static constexpr bool splits = kernel == WaveletKernel::split_rows || kernel == WaveletKernel::split_columns;
  static constexpr bool along_rows = kernel != WaveletKernel::split_columns && kernel != WaveletKernel::join_columns;
  static constexpr bool sums = kernel == WaveletKernel::join_and_sum;
  struct Shared {};
  struct Local {};

  WaveletArrays<T> arrays;

  /// What a thread works out: a pixel of the one and of the other half when splitting, one pixel when joining.
  MPOL_DEVICE std::uint32_t places() const {
    const std::uint32_t all = arrays.height * arrays.width;
    return splits ? all / 2 : all;
  }
  MPOL_DEVICE std::int64_t pieces() const { return (std::int64_t{places()} + threads - 1) / threads; }
  std::int64_t blocks() const { return pieces() * arrays.images * (sums ? 1 : arrays.transforms); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared&, Local&) const {
    const std::int64_t stack = place.block / pieces();  // transform and image
    const std::int64_t own = place.block % pieces() * threads + place.thread;
    if (own >= places()) return;
    const auto at = static_cast<std::uint32_t>(own);
    const auto transform = static_cast<int>(sums ? 0 : stack / arrays.images);
    const std::int64_t image = sums ? stack : stack % arrays.images;
    const auto target = arrays.target.part(stack * arrays.pixels(), arrays.pixels());
    if constexpr (splits) split(source_of(transform, image), target, transform, at);
    else if constexpr (sums) {
      T sum = T(0);
      for (int each = 0; each < arrays.transforms; ++each) sum += joined(source_of(each, image), each, at);
      target[place_of(at)] = sum;
    } else {
      target[place_of(at)] = joined(source_of(transform, image), transform, at);
    }
  }

 private:
  MPOL_DEVICE DeviceArray<const T> source_of(int transform, std::int64_t image) const {
    const std::int64_t stack = arrays.shared_source ? image : transform * arrays.images + image;
    return arrays.source.part(stack * arrays.pixels(), arrays.pixels());
  }
  /// The values along the direction, and how far they are apart.
  MPOL_DEVICE std::uint32_t length() const { return along_rows ? arrays.width : arrays.height; }
  MPOL_DEVICE std::uint32_t distance() const { return along_rows ? 1 : arrays.columns; }
  MPOL_DEVICE std::uint32_t place_of(std::uint32_t at) const { return at / arrays.width * arrays.columns + at % arrays.width; }

  MPOL_DEVICE void split(DeviceArray<const T> source, DeviceArray<T> target, int transform, std::uint32_t at) const {
    const std::uint32_t half = length() / 2, across = along_rows ? half : arrays.width;
    const std::uint32_t row = at / across, column = at % across;  // neighboring threads write neighboring pixels
    const std::uint32_t j = along_rows ? column : row, line = along_rows ? row * arrays.columns : column;
    T low = T(0), high = T(0);
    for (int k = 0; k < arrays.taps[transform]; ++k) {
      const T value = source[line + (2 * j + static_cast<std::uint32_t>(k)) % length() * distance()];
      low += arrays.low[transform][k] * value;
      high += arrays.high[transform][k] * value;
    }
    target[line + j * distance()] = low;
    target[line + (half + j) * distance()] = high;
  }

  MPOL_DEVICE T joined(DeviceArray<const T> source, int transform, std::uint32_t at) const {
    const std::uint32_t half = length() / 2, row = at / arrays.width, column = at % arrays.width;
    const std::uint32_t p = along_rows ? column : row, line = along_rows ? row * arrays.columns : column;
    T sum = T(0);
    for (int k = static_cast<int>(p % 2); k < arrays.taps[transform]; k += 2) {
      // (p - k) / 2 modulo the half, of which so many are added that it is not negative
      const std::uint32_t back = static_cast<std::uint32_t>(k / 2) % half, j = (p / 2 + half - back) % half;
      sum += arrays.low[transform][k] * source[line + j * distance()] +
             arrays.high[transform][k] * source[line + (half + j) * distance()];
    }
    return sum;
  }
};

/// Calls run(body) with the body of a kernel.
template <typename T, typename Run>
void with_body(WaveletKernel kernel, const WaveletArrays<T>& arrays, const Run& run) {
  switch (kernel) {
    case WaveletKernel::split_rows:
      return run(WaveletBody<T, WaveletKernel::split_rows>{arrays});
    case WaveletKernel::split_columns:
      return run(WaveletBody<T, WaveletKernel::split_columns>{arrays});
    case WaveletKernel::join_columns:
      return run(WaveletBody<T, WaveletKernel::join_columns>{arrays});
    case WaveletKernel::join_rows:
      return run(WaveletBody<T, WaveletKernel::join_rows>{arrays});
    case WaveletKernel::join_and_sum:
      return run(WaveletBody<T, WaveletKernel::join_and_sum>{arrays});
  }
}

}  // namespace mpol::ops
