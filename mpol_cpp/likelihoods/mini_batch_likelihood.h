#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <mpol_cpp/datasets/visibility_sampler.h>
#include <mpol_cpp/device/module.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/likelihoods/noise_model.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// -2 ln L of loose visibilities, batch by batch: each evaluation with a gradient takes the next batch of samples and scales
/// it up to all of them, an unbiased estimate at a fraction of the cost, for Adam and gradient descent (not for L-BFGS, which
/// compares values). An evaluation without gradients takes all samples: under NoGradGuard, as that of a fit's final image, or of
/// an image that requires none.
///
/// The data stay on the host whatever the device of the image, so that a GPU holds one batch at a time. The points of a batch
/// are sorted when its turn comes, since batches differ from epoch to epoch. For Gaussian noise ExactLikelihood costs less
/// than any batch.
class MiniBatchLikelihoodImpl : public Module<MiniBatchLikelihoodImpl>, public Likelihood {
 public:
  /// @throws ValueError for a channel that is not there or a batch size < 1; DataError when baselines do not fit the grid
  MiniBatchLikelihoodImpl(const GridCoords& coords, Visibilities visibilities, ChannelMap channels,
                          const VisibilitySamplerOptions& batches, NoiseModel noise = NoiseModel::gaussian(),
                          NufftOptions options = {});
  void reset() override {}

  /// Differentiable; float32 or float64.
  Tensor chi_squared(const Tensor& sky) override;
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;

  double normaliser() const override { return normaliser_; }
  std::int64_t samples() const override { return samples_; }
  std::int64_t visibilities_count() const override { return samples_; }
  /// The data and which of them make the batches; an evaluation takes more, for its batch.
  std::int64_t memory_bytes() const override;
  /// `position`: batches taken so far, () int64.
  NamedTensors working_state() const override;
  void load_working_state(const NamedTensors& state) override;
  std::string name() const override;

  std::int64_t batches() const { return sampler_.batches(); }  ///< per epoch of the data
  std::int64_t position() const { return position_; }          ///< batches taken so far

 private:
  std::shared_ptr<Likelihood> likelihood_of(const Tensor& samples, torch::Device device) const;
  /// The next batch on a device, and by what its value is multiplied.
  struct Batch {
    std::shared_ptr<Likelihood> likelihood;
    double scale;
  };
  Batch take_batch(torch::Device device);

  Visibilities visibilities_;
  ChannelMap channels_;
  VisibilitySampler sampler_;
  NoiseModel noise_;
  NufftOptions options_;
  std::int64_t samples_ = 0;
  double normaliser_ = 0;
  std::int64_t position_ = 0, epoch_ = -1;
  std::vector<Tensor> batches_;  // of that epoch
};

TORCH_MODULE(MiniBatchLikelihood);

}  // namespace mpol
