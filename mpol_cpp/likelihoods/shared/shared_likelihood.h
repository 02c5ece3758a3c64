#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/device/module.h>
#include <mpol_cpp/distributed/device_group.h>
#include <mpol_cpp/distributed/shares.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// -2 ln L of loose visibilities of which each device of a group holds a share, by its speed:
///
///   L(I) = sum_r L_r(I),  L_r the likelihood of the share of device r
///
/// An evaluation copies the image to every device, lets each do its part on its thread, and adds values and gradients in the
/// order of ranks where the image is: for Gaussian and other noise the sum of one likelihood of all samples, to rounding. It
/// pays where transforms of the samples take longer than copies of an image. Steps are not recorded; there is no second
/// derivative.
///
/// The shares stay on their devices: it has no tensors of its own, and .to(device) moves nothing. It must not be evaluated by
/// the group's own threads.
class SharedLikelihoodImpl : public Module<SharedLikelihoodImpl>, public Likelihood {
 public:
  /// Makes the likelihood of a share on its device; called by the device's thread.
  using Maker = std::function<std::shared_ptr<Likelihood>(const Visibilities& share, torch::Device device)>;

  /// @param channels  which data channels feed which image channel, the same in every share
  /// @throws ValueError for a channel that is not there; DataError when baselines do not fit the grid; what `make` throws
  SharedLikelihoodImpl(std::shared_ptr<DeviceGroup> devices, const GridCoords& coords, const Visibilities& visibilities,
                       ChannelMap channels, const Maker& make);
  void reset() override {}

  /// Differentiable once; float32 or float64.
  Tensor chi_squared(const Tensor& sky) override;
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;
  bool tells_channels() const override;
  Tensor channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;

  double normalizer() const override { return normalizer_; }
  std::int64_t samples() const override { return samples_; }
  std::int64_t memory_bytes() const override;
  bool is_quadratic() const override;
  std::string name() const override;
  std::string obstacle_to_recording() const override { return "is shared by devices, whose work one recording does not hold"; }

  /// Samples of a channel that each device holds, in the order of ranks.
  const std::vector<Share>& shares() const { return shares_; }

 private:
  using Evaluate = Tensor (Likelihood::*)(const Tensor& sky, Tensor& gradient, Accumulate accumulate);
  /// What an evaluation of each part gives, added up.
  Tensor sum_of_parts(const Tensor& sky, Tensor& gradient, Accumulate accumulate, Evaluate evaluate);

  std::shared_ptr<DeviceGroup> devices_;
  ChannelMap channels_;
  std::vector<Share> shares_;
  std::vector<std::shared_ptr<Likelihood>> parts_;  // empty where a device has no sample
  std::int64_t samples_ = 0;
  double normalizer_ = 0;
};

TORCH_MODULE(SharedLikelihood);

/// How `count` samples are shared by devices of these speeds: in whole thousandths.
std::vector<Share> sample_shares(std::int64_t count, const std::vector<double>& speeds);

}  // namespace mpol
