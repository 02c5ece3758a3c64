#pragma once

#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include <mpol_cpp/components/point_component.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/device/module_holder.h>
#include <mpol_cpp/likelihoods/likelihood.h>

namespace mpol {

/// The likelihood of an image beside point sources whose fluxes and places are whatever fits best with that image:
///
///   chi^2(I) = min over a of sum_k w_k |V_k - (F I)_k - sum_j a_j e_jk|^2 = chi0^2(I) - (c - D I)^T G^-1 (c - D I)
///
/// e_j being, for each source, its visibilities at 1 Jy, and how these change with l and m: a first-order shift. Per image
/// channel c_j = Re sum w e_j* V, D_j = cell_size^2 Re sum w e_j exp(2 pi i (u l + v m)), G_ij = Re sum w e_i* e_j. So the fluxes
/// are in no way joined with the many pixels: the function of the image is as quadratic as chi0^2, and bends no more; an
/// evaluation takes a few sums over pixels more.
///
/// State dict: that of the other likelihood under "image", and `images`, `products`, `inverse`: D, c and G^-1, float64.
class PointLikelihoodImpl : public Module<PointLikelihoodImpl>, public Likelihood {
 public:
  /// Unknowns of a source: its flux, and its flux times the shift in l and in m, in units of shift_unit().
  static constexpr std::int64_t unknowns = 3;

  /// @param image         chi0^2 of the same data and channels, on any device
  /// @param visibilities  the data
  /// @param sources       at their places; their own fluxes are of no account
  /// @throws ValueError without sources, or where two of them lie so near to each other that nothing tells them apart
  PointLikelihoodImpl(std::shared_ptr<Likelihood> image, const Visibilities& visibilities, const ChannelMap& channels,
                      const std::vector<PointComponent>& sources);
  void reset() override;

  Tensor chi_squared(const Tensor& sky) override;
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  bool tells_channels() const override { return image_->tells_channels() && typeid(*this) == typeid(PointLikelihoodImpl); }
  Tensor channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  double normalizer() const override { return image_->normalizer(); }
  std::int64_t samples() const override { return image_->samples(); }
  std::int64_t visibilities_count() const override { return image_->visibilities_count(); }
  bool is_quadratic() const override { return image_->is_quadratic(); }
  NamedTensors working_state() const override { return image_->working_state(); }
  void load_working_state(const NamedTensors& state) override { image_->load_working_state(state); }
  std::string name() const override { return image_->name(); }

  /// a of each image channel beside a sky (nchan, npix, npix): (nchan, sources, unknowns) float64 on the CPU, Jy.
  Tensor amplitudes(const Tensor& sky) const;
  /// Their covariance beside a sky that is known, (nchan, sources * unknowns, sources * unknowns) float64 on the CPU, Jy^2.
  Tensor covariance() const { return inverse_.to(torch::kCPU); }
  /// The shift that an amplitude beside a flux of the same size stands for, arcsec: a radian of phase at the root of the mean of
  /// w u^2 + w v^2.
  double shift_unit() const { return shift_unit_; }

 private:
  void add_tensors();
  /// a, (problems, nchan, J, 1), float64.
  Tensor amplitudes_of(const Tensor& sky) const;
  Tensor rest(const Tensor& sky) const;  // c - D I, like a
  /// Adds the slopes of the sources' part to the gradient. @return  how much lower chi^2 is by them, (problems, nchan)
  Tensor take_sources(const Tensor& sky, Tensor& gradient) const;

  std::shared_ptr<Likelihood> image_;
  Tensor images_, products_, inverse_;  // (nchan, J, npix^2), (nchan, J, 1), (nchan, J, J)
  double shift_unit_ = 0;
};

TORCH_MODULE(PointLikelihood);

}  // namespace mpol
