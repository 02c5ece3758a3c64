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

namespace losses::detail {
class ImageChannels;
}  // namespace losses::detail

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
/// (n, nvis) float64, wavelengths, or (1, nvis) where channels share them.
class BlockLikelihoodImpl : public Module<BlockLikelihoodImpl>, public Likelihood {
 public:
  /// @param samples_at_once  of a channel: chunks of so many are worked on one after the other, and once more for the gradient,
  ///                         with the memory of one chunk beside the data and their sorted points; 0: each block in one piece.
  ///                         In chunks there is no second derivative
  /// @throws ValueError without blocks, for a channel that is not there or samples_at_once < 0; ShapeError when blocks have
  ///         different numbers of image channels; DataError when baselines do not fit the grid
  BlockLikelihoodImpl(const GridCoords& coords, const std::vector<DataBlock>& blocks, NufftOptions options = {},
                      std::int64_t samples_at_once = 0);
  void reset() override;

  /// Differentiable with respect to the image and the parameters; float32 or float64.
  Tensor chi_squared(const Tensor& sky) override;

  double normalizer() const override { return normalizer_; }
  std::int64_t samples() const override { return samples_; }
  std::int64_t memory_bytes() const override;
  /// Beside the grid's, "baselines_B": their digests.
  std::map<std::string, std::string> state_labels() const override;
  std::string name() const override { return "loose blocks"; }

  /// B of the parameters' names is below this.
  std::int64_t blocks() const { return static_cast<std::int64_t>(blocks_.size()); }
  /// (dl, dm), arcsec; a; s: as they are now, those that are not fitted 0, 1, 1.
  Tensor shift(std::int64_t block) const;
  double amplitude(std::int64_t block) const;     ///< a of a block; 1 where it is not fitted
  double weight_scale(std::int64_t block) const;  ///< s of a block; 1 where it is not fitted

 private:
  struct Chunk {
    std::int64_t begin;
    Nufft nufft;  // of its samples
  };
  struct Block {
    Baselines baselines;
    std::vector<Chunk> chunks;
    std::shared_ptr<const losses::detail::ImageChannels> channels;
    Tensor u, v, data, weights;  // u, v where a shift is fitted
    bool fits_shift, fits_amplitude, fits_weight_scale;
    Tensor shift, log_amplitude, log_weight_scale;
  };
  Tensor value_of(const Block& block, const Tensor& sky) const;
  /// chi^2 of a chunk with a shift and an amplitude, where the block fits them.
  Tensor chi_squared_of(const Block& block, const Chunk& chunk, const Tensor& sky, const Tensor& shift,
                        const Tensor& log_amplitude) const;

  std::int64_t nchan_ = 0, samples_ = 0;
  double normalizer_ = 0;
  std::vector<Block> blocks_;
};

TORCH_MODULE(BlockLikelihood);

}  // namespace mpol
