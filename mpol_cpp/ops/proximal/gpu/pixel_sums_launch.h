#pragma once

// The kernels of the sums over pixels of images, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/gpu/gpu_math.h>
#include <mpol_cpp/ops/proximal/gpu/piece_sums.h>

namespace mpol::ops {

enum class PixelSumsKernel { look, sum_up };
/// The sum of the pixels, total variation, and that of the slopes: the order of PixelSums.
inline constexpr int pixel_quantities = 3;

template <typename T>
struct PixelSumsArrays {
  ImagePieces cut;
  std::int32_t npix;
  bool varies, curves;  // whether these are summed, with what below the root
  double variation_epsilon, curvature_epsilon;
  DeviceArray<const T> images;
  DeviceArray<double> piece_sums, sums;  // (pixel_quantities, images, pieces), (pixel_quantities, images)
};

/// Sums over pieces of images.
template <typename T>
struct PixelSumsBody {
  static constexpr int threads = ImagePieces::threads, phases = 3;
  struct Shared {
    BlockSums<pixel_quantities, threads> sums;
  };
  struct Local {};

  PixelSumsArrays<T> arrays;

  std::int64_t blocks() const { return arrays.cut.blocks(); }

  template <int phase>
  MPOL_DEVICE void run(Place place, Shared& shared, Local&) const {
    if constexpr (phase == 0) {
      double sums[pixel_quantities] = {};
      const std::int64_t begin = arrays.cut.image_of(place.block) * arrays.cut.pixels;
      const auto npix = static_cast<std::uint32_t>(arrays.npix);
      arrays.cut.each(place, [&](std::int64_t pixel) {
        const std::int64_t at = begin + pixel;
        const T own = arrays.images[at];
        sums[0] += static_cast<double>(own);
        if (!arrays.varies && !arrays.curves) return;
        const std::uint32_t row = static_cast<std::uint32_t>(pixel) / npix,
                            column = static_cast<std::uint32_t>(pixel) - row * npix;
        if (row + 1 >= npix || column + 1 >= npix) return;
        const T right = arrays.images[at + 1], up = arrays.images[at + npix];
        if (arrays.varies) sums[1] += length_of(right - own, up - own, T(0), arrays.variation_epsilon);
        if (!arrays.curves || row == 0 || column == 0) return;
        sums[2] += length_of(up - T(2) * own + arrays.images[at - npix], right - T(2) * own + arrays.images[at - 1],
                             arrays.images[at + npix + 1] - up - right + own, arrays.curvature_epsilon);
      });
      shared.sums.put(place.thread, sums);
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else {
      for (int q = place.thread; q < pixel_quantities; q += threads)
        arrays.piece_sums[q * arrays.cut.blocks() + place.block] = shared.sums.total(q);
    }
  }

 private:
  /// sqrt(a^2 + b^2 + 2 c^2 + epsilon)
  MPOL_DEVICE static double length_of(T a, T b, T c, double epsilon) {
    return static_cast<double>(gpu_math::square_root(a * a + b * b + T(2) * c * c + static_cast<T>(epsilon)));
  }
};

template <typename T, typename Run>
void with_body(PixelSumsKernel kernel, const PixelSumsArrays<T>& arrays, const Run& run) {
  if (kernel == PixelSumsKernel::look) run(PixelSumsBody<T>{arrays});
  else run(SumPiecesBody<PixelSumsArrays<T>, pixel_quantities>{arrays});
}

}  // namespace mpol::ops
