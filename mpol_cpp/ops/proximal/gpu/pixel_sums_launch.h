#pragma once

// The kernels of the sums over pixels of images, on a GPU and in the emulation; C++17, no LibTorch.
#include <mpol_cpp/ops/gpu/gpu_math.h>
#include <mpol_cpp/ops/proximal/gpu/piece_sums.h>

namespace mpol::ops {

enum class PixelSumsKernel { look, sum_up };
/// The sum of the pixels, and total variation.
inline constexpr int pixel_quantities = 2;

template <typename T>
struct PixelSumsArrays {
  ImagePieces cut;
  std::int32_t npix;
  double epsilon;
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
        const std::uint32_t row = static_cast<std::uint32_t>(pixel) / npix,
                            column = static_cast<std::uint32_t>(pixel) - row * npix;
        if (row + 1 >= npix || column + 1 >= npix) return;
        const T along = arrays.images[at + 1] - own, across = arrays.images[at + npix] - own;
        sums[1] += static_cast<double>(gpu_math::square_root(along * along + across * across + static_cast<T>(arrays.epsilon)));
      });
      shared.sums.put(place.thread, sums);
    } else if constexpr (phase == 1) {
      shared.sums.gather(place.thread);
    } else {
      for (int q = place.thread; q < pixel_quantities; q += threads)
        arrays.piece_sums[q * arrays.cut.blocks() + place.block] = shared.sums.total(q);
    }
  }
};

template <typename T, typename Run>
void with_body(PixelSumsKernel kernel, const PixelSumsArrays<T>& arrays, const Run& run) {
  if (kernel == PixelSumsKernel::look) run(PixelSumsBody<T>{arrays});
  else run(SumPiecesBody<PixelSumsArrays<T>, pixel_quantities>{arrays});
}

}  // namespace mpol::ops
