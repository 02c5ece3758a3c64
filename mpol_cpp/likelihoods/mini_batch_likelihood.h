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

namespace losses::detail {
struct SkyKind;
}  // namespace losses::detail

/// -2 ln L of loose visibilities, batch by batch: each evaluation with a gradient takes the next batch of samples and scales
/// it up to all of them, an unbiased estimate at a fraction of the cost, for Adam and gradient descent (not for L-BFGS, which
/// compares values). An evaluation without gradients takes all samples: under NoGradGuard, as that of a fit's final image, or of
/// an image that requires none.
///
/// The data stay on the host whatever the device of the image. While a step is taken, a thread of its own chooses the samples of
/// the next batch, reads them, sorts their points and, for a GPU, copies them there on a second stream: a GPU holds two batches
/// at a time. For Gaussian noise ExactLikelihood costs less than any batch.
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

  double normalizer() const override { return normalizer_; }
  std::int64_t samples() const override { return samples_; }
  /// The data and which of them make the batches; an evaluation takes more, for its batch.
  std::int64_t memory_bytes() const override;
  /// `position`: batches taken so far, () int64.
  NamedTensors working_state() const override;
  void load_working_state(const NamedTensors& state) override;
  std::string name() const override;
  std::string obstacle_to_recording() const override {
    return "takes another batch of visibilities in each step, and a recording would repeat one";
  }

  std::int64_t batches() const { return sampler_.batches(); }  ///< per epoch of the data
  std::int64_t position() const { return position_; }          ///< batches taken so far
  /// Batches that were made ready so far, those before position() included: at most one more than were taken, since the next
  /// one is made ready while the last one is in use.
  std::int64_t prepared() const;

 private:
  class Stage;
  /// A batch on a device, and by what its value is multiplied.
  struct Batch;
  /// Batches from the position on, made ready by a thread. A copy of the module begins its own.
  struct Ahead {
    Ahead();
    Ahead(const Ahead&);
    Ahead& operator=(const Ahead&);
    ~Ahead();
    std::unique_ptr<Stage> stage;
  };
  Batch make_batch(const Tensor& samples, const losses::detail::SkyKind& kind) const;
  Batch take_batch(const Tensor& sky);

  Visibilities visibilities_;
  ChannelMap channels_;
  VisibilitySampler sampler_;
  NoiseModel noise_;
  NufftOptions options_;
  std::int64_t samples_ = 0;
  double normalizer_ = 0;
  std::int64_t position_ = 0;
  Ahead ahead_;  // last: its thread uses the others
};

TORCH_MODULE(MiniBatchLikelihood);

}  // namespace mpol
