#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/analysis/sources/visibility_model.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

namespace losses::detail {
class ImageChannels;
}  // namespace losses::detail

/// chi^2 of loose visibilities of a sky that is an image and sources beside it, sum_k w_k |V_image + sum_s V_s - d_k|^2: what the
/// sources do not explain is the image's, and the parameters of both are fitted together by the Trainer. A bright unresolved
/// star, a companion, or the smooth part of a disc need then not be made of pixels. By autograd, on the CPU or, after
/// .to(device), on a GPU; steps are eager.
///
/// The image can show anything that a source can, at its resolution: priors on the image (sparsity, TV) decide what goes where.
/// Sources have the same flux in all channels. L-BFGS suits parameters of different units; with Adam the learning rate is one for
/// all.
///
/// Parameters and state: those of the sources as `source_S.NAME`, S from 0. Buffers: `data` (n, nvis) complex, Jy, and `weights`
/// (n, nvis), Jy^-2, in the dtypes of the visibilities, where n counts the data channels of all image channels; `u` and `v`, (n,
/// nvis) float64, wavelengths, or (1, nvis) where channels share them.
class SourceLikelihoodImpl : public Module<SourceLikelihoodImpl>, public Likelihood {
 public:
  /// @param sources  shared with the caller, who sees their parameters change; copies of the likelihood have their own
  /// @throws ValueError without sources, for one given twice, or a channel that is not there; DataError when baselines do not fit
  ///         the grid
  SourceLikelihoodImpl(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                       std::vector<std::shared_ptr<VisibilityModel>> sources, NufftOptions options = {});
  void reset() override;

  /// Differentiable with respect to the image and the sources' parameters; float32 or float64.
  Tensor chi_squared(const Tensor& sky) override;

  double normalizer() const override { return normalizer_; }
  std::int64_t samples() const override { return data_.numel(); }
  std::int64_t memory_bytes() const override;
  /// Beside the grid's, "baselines": their digest.
  std::map<std::string, std::string> state_labels() const override;
  std::string name() const override { return "loose with sources"; }

  /// The sources, in their order, with the parameters as they are now.
  const std::vector<std::shared_ptr<VisibilityModel>>& sources() const { return sources_; }
  /// The sources' part of the visibilities, (n, nvis) complex, or (1, nvis) where channels share baselines, Jy.
  Tensor source_visibilities() const;

 private:
  void register_buffers();

  std::int64_t nchan_;
  double normalizer_;
  Nufft nufft_{nullptr};
  std::shared_ptr<const losses::detail::ImageChannels> channels_;
  std::vector<std::shared_ptr<VisibilityModel>> sources_;
  Tensor u_, v_, data_, weights_;
};

TORCH_MODULE(SourceLikelihood);

}  // namespace mpol
