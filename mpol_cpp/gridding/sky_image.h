#pragma once

#include <complex>
#include <cstdint>
#include <span>

#include <torch/types.h>

namespace mpol::gridding {

using torch::Tensor;

/// Some cells of one packed uv plane, and what the plane holds there: scale * weight (* visibility, unless there are
/// none, which stands for 1).
struct WeightedCells {
  std::span<const std::int64_t> cells;  // flat index into the packed cube of channels
  std::span<const double> weights;
  std::span<const c10::complex<double>> visibilities;
  double scale;
};

/// Doubles of working storage that `make_sky_image` needs: 2 npix more than the image has.
constexpr std::int64_t sky_image_storage(std::int64_t npix) { return npix * (npix + 2); }

/// The image of a few visibilities and their Hermitian partners,
///   image(l, m) = sum_k 2 Re( V_k exp(2 pi i (u_k l + v_k m)) ),
/// by a real transform of the half plane, in place: columns that hold data first, then rows, in batches of bounded size.
/// @param storage  (sky_image_storage(npix)) float64 on the CPU; its first npix^2 elements become the image, (npix, npix)
///                 in sky orientation, the rest is left undefined
void make_sky_image(const WeightedCells& cells, std::int64_t npix, Tensor storage);

}  // namespace mpol::gridding
