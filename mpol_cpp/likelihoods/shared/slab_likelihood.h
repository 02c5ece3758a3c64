#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <typeinfo>

#include <mpol_cpp/device/module.h>
#include <mpol_cpp/distributed/rank_service.h>
#include <mpol_cpp/fourier/slab_operator.h>
#include <mpol_cpp/likelihoods/likelihood.h>

namespace mpol {

/// The exact chi^2 of an image that the first rank has, by an operator of which each rank holds a slab: an evaluation sends its
/// rows to each rank, lets all of them compute, in float64 whatever the dtype of the image, and gathers value and gradient. The
/// first rank makes one and fits with it as with any other likelihood, while the others are in serve_slabs(). Without a second
/// derivative. The image is on the CPU.
class SlabLikelihoodImpl : public Module<SlabLikelihoodImpl>, public Likelihood {
 public:
  /// @throws ValueError on another rank than the first
  explicit SlabLikelihoodImpl(std::shared_ptr<const SlabOperator> normal);
  void reset() override {}

  /// Differentiable once; float32 or float64.
  Tensor chi_squared(const Tensor& sky) override;
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  bool tells_channels() const override { return typeid(*this) == typeid(SlabLikelihoodImpl); }
  Tensor channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  double normalizer() const override { return static_cast<double>(normal_->occupied_cells()); }
  std::int64_t samples() const override { return normal_->nvis(); }
  std::string name() const override { return "exact"; }
  bool is_quadratic() const override { return true; }
  std::string obstacle_to_recording() const override { return "is shared by ranks, which one recording does not hold"; }

  /// Lets the other ranks leave serve_slabs(); the likelihood cannot be evaluated afterwards.
  void release() { service_.release(); }

 private:
  std::shared_ptr<const SlabOperator> normal_;
  RankService service_;
};

TORCH_MODULE(SlabLikelihood);

/// The part of the other ranks: computes with the first rank until it releases them.
/// @throws RankError when another rank fails, or the first does not ask within the time-out
void serve_slabs(const SlabOperator& normal);

}  // namespace mpol
