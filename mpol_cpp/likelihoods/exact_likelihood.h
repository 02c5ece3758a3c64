#pragma once

#include <memory>
#include <typeinfo>
#include <utility>

#include <mpol_cpp/device/module.h>
#include <mpol_cpp/device/saved_count.h>
#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/likelihoods/likelihood.h>

namespace mpol {

struct LikelihoodKind;

/// What ExactLikelihood computes with, shared by its autograd graph.
class NormalForm;

/// The exact chi^2 of loose visibilities by their normal operator: one real transform pair of twice the image's size per
/// evaluation, whatever the number of visibilities. On the CPU or, after .to(device), on a GPU.
///
/// In float32 on the CPU chi^2 is a quadratic form about an anchor x0, with D = x - x0 and chi0, g0 computed in float64:
///
///   chi^2 = chi0 + g0^T D + D^T T D,   gradient = g0 + 2 T D
///
/// An image becomes the anchor itself where 2 T D, which float32 knows to 2e-7, is larger than three times the gradient.
///
/// On a GPU whether to take an anchor would have to wait for the device: there the plain form is computed in float64 whatever
/// the dtype of the image, and the gradient rounded to it. For a while an evaluation takes 40 bytes a pixel of all images, and
/// 96 of those transformed together.
///
/// State dict: `kernel`, `dirty`, `constant`, as in NormalOperator, float64 whatever the dtype of the module, and the counts
/// `cells` (occupied ones) and `nvis`, () int64. It is all that the likelihood knows: loaded into one of the same grid and
/// channels, of whatever data or of none (NormalOperator(coords, nchan)), it makes that one its equal.
class ExactLikelihoodImpl : public Module<ExactLikelihoodImpl>, public Likelihood {
 public:
  /// It takes over the operator's tensors where nobody else holds them, else copies them.
  explicit ExactLikelihoodImpl(NormalOperator&& normal);
  /// The same of a copy of the operator.
  explicit ExactLikelihoodImpl(const NormalOperator& normal) : ExactLikelihoodImpl(NormalOperator(normal)) {}
  /// @throws DataError when baselines do not fit the grid
  ExactLikelihoodImpl(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                      KernelStorage storage = {})
      : ExactLikelihoodImpl(NormalOperator::of(coords, visibilities, channels, std::move(storage))) {}
  void reset() override;

  /// Differentiable to any order; float32 or float64.
  Tensor chi_squared(const Tensor& sky) override;
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  bool tells_channels() const override { return typeid(*this) == typeid(ExactLikelihoodImpl); }
  Tensor channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;

  double normalizer() const override { return static_cast<double>(cells_.value()); }
  std::int64_t samples() const override { return nvis_.value(); }
  std::int64_t memory_bytes() const override;
  /// `anchors`, the anchor images of float32, once there are some: (images, npix, npix).
  NamedTensors working_state() const override;
  void load_working_state(const NamedTensors& state) override;
  /// As what it is chosen.
  static LikelihoodKind kind();
  std::string name() const override { return "exact"; }
  bool is_quadratic() const override { return true; }
  bool can_be_recorded() const override { return typeid(*this) == typeid(ExactLikelihoodImpl); }

  std::int64_t nchan() const { return nchan_; }  ///< of the images
  /// How often an image became the anchor so far, over all images.
  std::int64_t anchors() const;

 private:
  void check(const Tensor& sky) const;

  std::int64_t nchan_;
  detail::SavedCount cells_, nvis_;
  KernelStorage storage_;
  Tensor kernel_, dirty_, constant_;
  std::shared_ptr<NormalForm> form_;
};

TORCH_MODULE(ExactLikelihood);

}  // namespace mpol
