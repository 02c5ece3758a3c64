#pragma once

#include <cstdint>
#include <memory>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/accumulate.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/fourier/kernel_storage.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// What chi^2 of loose visibilities is as a function of the image, for weights that are the same for real and imaginary
/// parts, without the visibilities:
///
///   chi^2(x) = x^T T x - 2 b^T x + c,   T[n,m] = t[n - m],
///   t[p] = s^2 sum_k w_k cos(k.p),   b[n] = s Re sum_k w_k d_k e^{+ik.n},   c = sum_k w_k |d_k|^2,   s = cell_size^2
///
/// for each image channel: exact, and one real transform pair of twice the image's size whatever the number of
/// visibilities. Operators of blocks of data add and subtract.
/// Source: Wajer & Pruessmann 2001 for the Toeplitz form; MIRT, torchkbnufft.
class NormalOperator {
 public:
  /// Zero: the operator of no data.
  /// @throws ValueError unless nchan > 0; FileError when the storage has no room
  NormalOperator(const GridCoords& coords, std::int64_t nchan, KernelStorage storage = {});
  /// @param channels  which data channels feed which image channel
  /// @throws DataError when baselines do not fit the grid; ValueError for a channel that is not there
  static NormalOperator of(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                           KernelStorage storage = {});

  /// Adds a block of data, which need not be kept afterwards; transforms in float64 of tolerance 1e-12, in pieces of
  /// 2^24 samples. So a file larger than memory is read once, in blocks (io::map_npz_member).
  /// @throws DeviceError unless the operator is on the CPU
  void add(const Visibilities& visibilities, const ChannelMap& channels);

  /// @throws ShapeError for another grid or number of channels
  NormalOperator& operator+=(const NormalOperator& other) { return add_signed(other, 1); }
  NormalOperator& operator-=(const NormalOperator& other) { return add_signed(other, -1); }  ///< takes a block of data away again
  /// The operator of both blocks of data together.
  friend NormalOperator operator+(NormalOperator a, const NormalOperator& b) { return a += b; }
  /// The operator of the data of `a` without those of `b`.
  friend NormalOperator operator-(NormalOperator a, const NormalOperator& b) { return a -= b; }

  /// The sum of the operators of all ranks, on each. @throws ShapeError unless the operator is on the CPU; RankError
  NormalOperator& sum_over(Communicator& ranks);

  /// Multiplies all weights by a factor; blocks with scales of their own are scaled, then added.
  /// @throws ValueError unless factor is finite and >= 0
  NormalOperator& operator*=(double factor);
  /// The same with a factor for each image channel. @param factors  (nchan)
  /// @throws ShapeError, ValueError
  NormalOperator& scale_weights(const Tensor& factors);
  /// The operator with weights that are so many times as large.
  friend NormalOperator operator*(NormalOperator a, double factor) { return a *= factor; }

  /// A copy on another device, where it is applied; data are added on the CPU alone.
  NormalOperator to(torch::Device device) const;
  torch::Device device() const { return kernel_.device(); }  ///< where it is applied

  /// T x, without autograd; on a GPU computed in float64.
  /// @param x  (…, nchan, npix, npix) float32 or float64, sky orientation, on the operator's device
  Tensor apply(const Tensor& x) const;

  /// chi^2 and its gradient in float64.
  /// @param sky       (…, nchan, npix, npix) float64, Jy/arcsec^2, sky orientation, on the operator's device
  /// @param gradient  same shape
  /// @return          (…) float64
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) const;

  const KernelStorage& storage() const { return storage_; }  ///< where the kernels lie
  const GridCoords& coords() const { return coords_; }       ///< the grid of the images
  std::int64_t nchan() const { return nchan_; }              ///< image channels
  /// Visibilities behind it, summed over channels.
  std::int64_t nvis() const { return nvis_; }
  /// Cells of the grid that hold visibilities, summed over channels.
  std::int64_t occupied_cells() const;

  /// Transform of t over 4 npix^2, (nchan, npix + 1, 2 npix) float64: real, for each column ku >= 0 all kv.
  const Tensor& kernel() const { return kernel_; }
  /// b, (nchan, npix, npix) float64, sky orientation.
  const Tensor& dirty() const { return dirty_; }
  /// c, (nchan) float64.
  const Tensor& constant() const { return constant_; }
  /// Visibilities in each cell, (nchan, npix, npix) int32, ground order.
  const Tensor& cell_counts() const { return cell_counts_; }

  std::int64_t memory_bytes() const;  ///< of kernels, dirty vectors and counts

 private:
  void add_channel(std::int64_t image_channel, const Visibilities& visibilities, std::int64_t channel);
  void check_same_grid(const NormalOperator& other) const;
  NormalOperator& add_signed(const NormalOperator& other, int sign);
  void own_tensors();

  GridCoords coords_;
  std::int64_t nchan_, nvis_ = 0;
  KernelStorage storage_;
  Tensor kernel_, dirty_, constant_, cell_counts_;
};

}  // namespace mpol
