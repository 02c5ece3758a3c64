#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>

#include <mpol_cpp/device/module.h>
#include <mpol_cpp/distributed/rank_service.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// -2 ln L of loose visibilities of which each rank holds a share, with Gaussian or other noise:
///
///   L(I) = sum_r L_r(I),  L_r the likelihood of the share of rank r
///
/// The first rank fits with it as with any other likelihood, while the others are in serve(): an evaluation sends the image to
/// all, lets each go through its samples, and sums values and gradients over ranks. It pays where that takes longer than to send
/// images. Steps are not recorded; there is no second derivative. It has no tensors of its own, and .to(device) moves nothing.
class RankedLikelihoodImpl : public Module<RankedLikelihoodImpl>, public Likelihood {
 public:
  /// Makes the likelihood of this rank's share, on its device.
  using Maker = std::function<std::shared_ptr<Likelihood>(const Visibilities& share)>;

  /// Called by every rank.
  /// @param share     this rank's samples, all channels of them; nothing where it has none
  /// @param channels  which data channels feed which image channel, the same on every rank
  /// @param device    where this rank evaluates: that of the images of the first
  /// @throws ValueError where no rank has samples, or for a channel that is not there; DataError when baselines do not fit the
  /// grid; RankError when another rank fails; what `make` throws
  RankedLikelihoodImpl(std::shared_ptr<Communicator> ranks, const GridCoords& coords, const std::optional<Visibilities>& share,
                       const ChannelMap& channels, torch::Device device, const Maker& make);
  void reset() override {}

  /// Differentiable once; float32 or float64. By the first rank.
  Tensor chi_squared(const Tensor& sky) override;
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  bool tells_channels() const override { return tells_channels_ && typeid(*this) == typeid(RankedLikelihoodImpl); }
  Tensor channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;

  /// Gives the cells of all ranks, the same on each.
  double normalizer() const override { return normalizer_; }
  std::int64_t samples() const override { return samples_; }
  /// Counts what this rank holds.
  std::int64_t memory_bytes() const override { return own_ ? own_->memory_bytes() : 0; }
  bool is_quadratic() const override { return is_quadratic_; }
  std::string name() const override { return name_; }
  std::string obstacle_to_recording() const override { return "is shared by ranks, which one recording does not hold"; }

  /// Evaluates with the first rank until it releases this one. By the other ranks.
  void serve();
  /// Lets the other ranks leave serve(); the likelihood cannot be evaluated afterwards. By the first rank.
  void release() { service_.release(); }

 private:
  /// By all ranks together. @param images  (problems, nchan, npix, npix) of the first rank, overwritten elsewhere, where they
  /// are exchanged; its gradient takes their place  @return  (problems, nchan) float64, likewise: what
  /// each channel's value is, or where that is not told the problem's as the first channel's
  Tensor evaluate(Tensor& images);
  /// The same for the first rank's caller, (…, nchan).
  Tensor evaluate_with_all(const Tensor& sky, Tensor& gradient, Accumulate accumulate);
  /// Takes what the first rank's likelihood says of itself to all.
  void agree_on_kind();

  std::shared_ptr<Communicator> ranks_;
  RankService service_;
  std::int64_t nchan_;
  torch::Device device_;
  torch::Device meeting_place_;      // device of tensors that are exchanged
  std::shared_ptr<Likelihood> own_;  // empty where this rank has no sample
  std::int64_t samples_ = 0;
  double normalizer_ = 0;
  bool is_quadratic_ = false, tells_channels_ = false;
  std::string name_;
};

TORCH_MODULE(RankedLikelihood);

}  // namespace mpol
