#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/device/module.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// Options of a BlockLikelihood.
struct BlockLikelihoodOptions {
  BlockLikelihoodOptions() = default;
  TORCH_ARG(NufftOptions, transform) = {};  ///< of the nonuniform transforms
  /// Samples of a channel that are worked on at once; 0: as many as the budget has room for, at the first evaluation.
  TORCH_ARG(std::int64_t, chunk) = 0;
  /// Bytes for what an evaluation needs beside the samples, where images are; 0: half of the memory that is free there at the
  /// first evaluation.
  TORCH_ARG(double, memory_budget) = 0;
  /// The samples stay where they are, in memory or in files: they are no buffers, and a device has those of one chunk at a time.
  TORCH_ARG(bool, on_host) = false;
};

/// A block of loose visibilities (an execution, an array) and what of it is fitted together with the image.
struct DataBlock {
  Visibilities visibilities;  ///< of the block, all its data channels
  ChannelMap channels;        ///< which of its data channels feed which image channel
  /// Which of a shift, an amplitude and a scale of its weights are fitted with the image.
  bool fits_shift = false, fits_amplitude = false, fits_weight_scale = false;

  /// A block that is taken as it is, with nothing to fit. @param map  which of its data channels feed which image channel
  DataBlock(Visibilities data, ChannelMap map) : visibilities(std::move(data)), channels(std::move(map)) {}
  DataBlock& fit_shift() { return fits_shift = true, *this; }                ///< displaces the sky by (dl, dm)
  DataBlock& fit_amplitude() { return fits_amplitude = true, *this; }        ///< multiplies the sky's brightness by a
  DataBlock& fit_weight_scale() { return fits_weight_scale = true, *this; }  ///< multiplies the weights by s
};

/// -2 ln L of blocks of loose visibilities of one sky, each with parameters of its own that can be fitted jointly with it:
///
///   sum_b [ s_b sum_k w_k |a_b e^{-2 pi i (u_k dl_b + v_k dm_b)} V_k - d_k|^2 - 2 N_b ln s_b ]
///
/// A block's data show the sky displaced by (dl_b, dm_b) to the East and North, a_b times as bright, and its weights are too
/// small by s_b. Shifts and amplitudes are relative to each other: leave one block without them. By autograd, on the CPU
/// or, after .to(device), on a GPU; steps are eager. The parameters and the image hang together: L-BFGS finds them in far fewer
/// epochs than Adam.
///
/// Parameters, those asked for: `shift_B` (2), cells East and North, `log_amplitude_B` and `log_weight_scale_B` (), B the
/// block from 0.
///
/// Buffers, beside them in the state dict: `data_B` (n, nvis) complex, Jy, and `weights_B` (n, nvis) real, Jy^-2, in the dtypes
/// of the visibilities, where n counts the data channels of all image channels; of blocks that fit a shift also `u_B` and `v_B`,
/// (n, nvis) float64, wavelengths, or (1, nvis) where channels share them. None of these with on_host.
///
/// Where the budget does not hold all samples, chunks are worked on one after the other, and once more for the gradient; points
/// are then sorted each time. When memory does not suffice after all (c10::OutOfMemoryError), the chunk is halved for good, and
/// one warning says so. Sums of other chunks round otherwise: a checkpoint knows the chunk (working_state).
class BlockLikelihoodImpl : public Module<BlockLikelihoodImpl>, public Likelihood {
 public:
  /// @throws ValueError without blocks, for a channel that is not there, a chunk or budget < 0; ShapeError when blocks have
  ///         different numbers of image channels; DataError when baselines do not fit the grid
  BlockLikelihoodImpl(const GridCoords& coords, const std::vector<DataBlock>& blocks, BlockLikelihoodOptions options = {});
  void reset() override;

  /// Differentiable with respect to the image and the parameters, to any order; float32 or float64.
  /// @throws DeviceError when not even a few samples fit into memory
  Tensor chi_squared(const Tensor& sky) override;

  double normalizer() const override { return normalizer_; }
  std::int64_t samples() const override { return samples_; }
  std::int64_t memory_bytes() const override;
  /// Beside the grid's, "baselines_B": their digests.
  std::map<std::string, std::string> state_labels() const override;
  /// `chunk`: samples of a chunk, () int64, once it is chosen.
  NamedTensors working_state() const override;
  void load_working_state(const NamedTensors& state) override;
  std::string name() const override { return "loose blocks"; }

  /// B of the parameters' names is below this.
  std::int64_t blocks() const { return static_cast<std::int64_t>(blocks_.size()); }
  /// Samples of a channel in a chunk; 0 before the first evaluation has chosen it.
  std::int64_t chunk() const;
  /// (dl, dm), arcsec; a; s: as they are now, those that are not fitted 0, 1, 1.
  Tensor shift(std::int64_t block) const;
  double amplitude(std::int64_t block) const;     ///< a of a block; 1 where it is not fitted
  double weight_scale(std::int64_t block) const;  ///< s of a block; 1 where it is not fitted

 private:
  struct Block;
  struct Chunks;
  void choose_chunk(const Tensor& sky);
  Tensor value_of(const std::shared_ptr<Block>& block, const Tensor& sky) const;

  BlockLikelihoodOptions options_;
  std::int64_t nchan_ = 0, samples_ = 0;
  double normalizer_ = 0;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<Chunks> chunks_;  // of all blocks
};

TORCH_MODULE(BlockLikelihood);

}  // namespace mpol
