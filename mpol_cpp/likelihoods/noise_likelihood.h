#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <typeinfo>

#include <c10/core/Stream.h>

#include <mpol_cpp/device/module.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/likelihoods/likelihood.h>
#include <mpol_cpp/likelihoods/noise_model.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

namespace losses::detail {
class ImageChannels;
}  // namespace losses::detail

/// -2 ln L of loose visibilities, relative to a perfect fit, for noise that is not Gaussian (NoiseModel), by one nonuniform
/// transform of each type an evaluation. On the CPU, bitwise the same for any number of threads, or, after .to(device), on a GPU.
///
/// Of Student's t and Huber's function few outliers hardly move the image; they are not convex together with the phase-free
/// amplitudes: begin such a fit near its end, from a Gaussian one.
///
/// State dict, in the dtypes of the visibilities: `data` (n, nvis) complex, Jy, `weights` (n, nvis) real, Jy^-2, where n
/// counts the data channels of all image channels; `imaginary_weights` likewise, where they were given.
class NoiseLikelihoodImpl : public Module<NoiseLikelihoodImpl>, public Likelihood {
 public:
  /// @param imaginary_weights  of the imaginary parts, in the shape of the visibilities' weights, which are then those of
  ///                           the real parts: x = w_re Re(V - d)^2 + w_im Im(V - d)^2; undefined where they are the same
  /// @throws ValueError for a channel that is not there, or for amplitudes with imaginary weights; DataError when baselines do
  ///         not fit the grid or a weight is not positive; ShapeError
  NoiseLikelihoodImpl(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels, NoiseModel noise,
                      NufftOptions options = {}, const Tensor& imaginary_weights = {});
  void reset() override;

  /// Differentiable; float32 or float64.
  Tensor chi_squared(const Tensor& sky) override;
  Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) override;

  double normalizer() const override { return normalizer_; }
  std::int64_t samples() const override { return data_.numel(); }
  std::int64_t memory_bytes() const override;
  /// Beside the grid's, "baselines": their digest.
  std::map<std::string, std::string> state_labels() const override;
  std::string name() const override { return "loose with " + to_string(noise_.kind) + " noise"; }
  bool can_be_recorded() const override { return typeid(*this) == typeid(NoiseLikelihoodImpl); }

  std::int64_t nchan() const { return nchan_; }       ///< of the images
  const NoiseModel& noise() const { return noise_; }  ///< as given, with its parameter

  /// Sorts the points for images of a dtype, where the data are; else the first evaluation does.
  void prepare(torch::Dtype dtype);
  /// Where what prepare() made was made in another stream of a GPU: keeps it until this one has used it too.
  void keep_for(c10::Stream stream) const;

 private:
  void check(const Tensor& sky) const;
  void take_imaginary_weights(const Tensor& weights, const Visibilities& visibilities, const std::vector<std::int64_t>& sources);
  Tensor model(const Tensor& sky) const;
  /// The value at a model, which becomes what its adjoint makes the gradient of.
  Tensor weigh(const Tensor& sky, Tensor& model) const;

  std::int64_t nchan_;
  NoiseModel noise_;
  double normalizer_;
  std::shared_ptr<const losses::detail::ImageChannels> channels_;
  Tensor data_, weights_, imaginary_weights_;
  Nufft nufft_{nullptr};
};

TORCH_MODULE(NoiseLikelihood);

}  // namespace mpol
