#pragma once

#include <map>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include <c10/core/Stream.h>

#include <mpol_cpp/device/module.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

struct LikelihoodKind;

/// What LooseLikelihood computes with, shared by its autograd graph.
class LooseForm;

/// chi^2 of loose visibilities by nonuniform transforms, chi^2 = sum_k w_k |V_k - d_k|^2, each visibility read once per
/// evaluation. For Gaussian noise ExactLikelihood gives the same at a cost that does not depend on their number; this
/// one is what other likelihoods are made from, and its second opinion. On the CPU or, after .to(device), on a GPU.
///
/// Its error is that of the transform relative to data and model, not to the residual: near an optimum a tolerance of
/// 1e-3 leaves a gradient wrong by tens of per cent.
///
/// State dict, in the dtypes of the visibilities: `data` (n, nvis) complex, Jy, `weights` (n, nvis) real, Jy^-2, where n
/// counts the data channels of all image channels.
class LooseLikelihoodImpl : public Module<LooseLikelihoodImpl>, public Likelihood {
 public:
  /// @throws ValueError for a channel that is not there; DataError when baselines do not fit the grid
  LooseLikelihoodImpl(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                      NufftOptions options = {});
  void reset() override;

  /// Differentiable to any order; float32 or float64.
  Tensor chi_squared(const Tensor& sky) override;
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  bool tells_channels() const override { return typeid(*this) == typeid(LooseLikelihoodImpl); }
  Tensor channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;

  double normalizer() const override { return normalizer_; }
  std::int64_t samples() const override { return data_.numel(); }
  std::int64_t memory_bytes() const override;
  /// Beside the grid's, "baselines": their digest.
  std::map<std::string, std::string> state_labels() const override;
  /// As what it is chosen.
  static LikelihoodKind kind();
  std::string name() const override { return "loose"; }
  bool is_quadratic() const override { return true; }
  bool can_be_recorded() const override { return typeid(*this) == typeid(LooseLikelihoodImpl); }

  std::int64_t nchan() const { return nchan_; }  ///< of the images
  /// The image at the points of the data, (…, n, nvis) complex; differentiable to any order.
  Tensor model_visibilities(const Tensor& sky) const;

  /// Sorts the points and the data for images of a dtype, where the data are; else the first evaluation does.
  void prepare(torch::Dtype dtype);
  /// Where what prepare() made was made in another stream of a GPU: keeps it until this one has used it too.
  void keep_for(c10::Stream stream) const;

 private:
  void check(const Tensor& sky) const;

  std::int64_t nchan_;
  double normalizer_;
  Tensor data_, weights_;
  std::shared_ptr<LooseForm> form_;
};

TORCH_MODULE(LooseLikelihood);

}  // namespace mpol
