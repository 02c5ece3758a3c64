#pragma once

#include <torch/types.h>

#include <mpol_cpp/core/accumulate.h>

namespace mpol::ops {

using torch::Tensor;

/// Products of real images with symmetric Toeplitz matrices, on any device:
///
///   y[n] = sum_m t[n - m] x[m]
///
/// by one real transform pair of twice the size, whose empty half is never transformed: on a GPU by ToeplitzOnGpu where it has
/// the size, else by LibTorch's transforms. Those take 96 bytes a pixel for a while: for all images at once where that is at most
/// 512 MiB, else for one after the other. Nothing waits for the device; without autograd. On the CPU ToeplitzConvolution does the
/// same faster.
/// @param images  (…, nchan, npix, npix) float32 or float64, which the product is, too; computed in float64
/// @param kernel  (nchan, npix + 1, 2 npix) float64: transform of t divided by 4 npix^2, for each column of the half plane
Tensor toeplitz_product(const Tensor& images, const Tensor& kernel);

/// x^T (linear + T x) + `constant` of each channel, and its gradient linear + 2 T x, computed in float64.
/// @param images    (…, nchan, npix, npix) float32 or float64
/// @param linear    (nchan, npix, npix) float64
/// @param constant  (nchan) float64
/// @param gradient  like the images
/// @return          one value per channel, (…, nchan), float64
Tensor toeplitz_quadratic(const Tensor& images, const Tensor& kernel, const Tensor& linear, const Tensor& constant,
                          Tensor& gradient, Accumulate accumulate);

/// Whether ToeplitzOnGpu gives on a device what LibTorch's transforms give there, of small images; on the CPU the kernels are
/// emulated. It is asked at the first use on each GPU, and where they differ LibTorch's are used, with a warning.
bool toeplitz_kernels_agree(torch::Device device);

/// Bytes that toeplitz_quadratic takes on a GPU while it computes, of so many images; at least as many as on any.
double toeplitz_bytes(std::int64_t npix, std::int64_t images);

}  // namespace mpol::ops
