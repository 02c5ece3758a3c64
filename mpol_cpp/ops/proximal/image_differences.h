#pragma once

#include <vector>

#include <torch/types.h>

/// Differences of images by LibTorch's operations, as the tensor forms of proximal maps take them.
namespace mpol::ops {

using torch::Tensor;

/// (npix, npix): 1 where both differences of total variation are counted, 0 in the last row and column.
Tensor counted_block(const Tensor& like);
/// (2, problems, nchan, npix, npix): differences to the next row and to the next column, 0 in the last row and column.
Tensor differences(const Tensor& images, const Tensor& counted);
/// The adjoint of differences(), for a dual that is 0 in the last row and column.
Tensor adjoint_differences(const Tensor& dual);
/// (npix, npix): 1 where second differences are counted, 0 in the first and last row and column.
Tensor curved_block(const Tensor& like);
/// (3, problems, nchan, npix, npix): second differences from row to row, from column to column, and the square root of two times
/// mixed ones, as losses::tv_slope has them, 0 where they are not counted.
Tensor second_differences(const Tensor& images, const Tensor& counted);
/// The adjoint of second_differences(), for a dual that is 0 where they are not counted.
Tensor adjoint_second_differences(const Tensor& dual);
/// To the next channel, 0 in the last one.
Tensor channel_differences(const Tensor& cubes);
/// The adjoint of channel_differences(), for a dual that is 0 in the last channel.
Tensor adjoint_channel_differences(const Tensor& dual);
/// What proximal maps leave of pixels: max(x, 0), or, given thresholds, what magnitudes are beyond them.
/// @param thresholds  float64, broadcastable to the images; undefined: no pixel is negative
Tensor cut_pixels(const Tensor& images, const Tensor& thresholds);
/// One number for each image or problem, to multiply images with.
Tensor spread(const std::vector<double>& values, const Tensor& images);

}  // namespace mpol::ops
