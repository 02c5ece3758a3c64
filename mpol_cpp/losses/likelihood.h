#pragma once

#include <cstdint>
#include <string>

#include <torch/nn/module.h>
#include <torch/types.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/precision.h>
#include <mpol_cpp/serialize/safetensors.h>

namespace mpol {

using torch::Tensor;

/// A likelihood of visibilities given an image. The gridded, the exact and the loose one share this interface; all of
/// them are torch modules too, so that they move with `.to(device)` and save what they hold.
///
/// Values are unnormalised, chi^2 = sum w |V - M|^2 or -2 ln L: the objective divides by 2 N_norm.
class Likelihood {
 public:
  virtual ~Likelihood() = default;

  /// @param sky  (…, nchan, npix, npix), Jy/arcsec^2, sky orientation
  /// @return     one value per problem, (…), in the sky's dtype, differentiable with respect to the sky
  virtual Tensor chi_squared(const Tensor& sky) = 0;

  /// The value and the gradient with respect to the sky without autograd.
  /// @param gradient  same shape as sky; overwritten or added to
  /// @return          one value per problem, (…), float64, on the sky's device; nothing waits for the device
  virtual Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) = 0;

  /// N_norm of this likelihood: the occupied cells of its grid, so that lambda means the same for all likelihoods.
  virtual double normaliser() const = 0;
  /// The terms of the sum in its chi^2 (its own samples or cells), summed over channels.
  virtual std::int64_t samples() const = 0;
  /// The loose visibilities behind it, summed over channels.
  virtual std::int64_t visibilities_count() const = 0;
  virtual std::int64_t memory_bytes() const = 0;

  /// What its next values depend on, to the last bit, besides data, parameters and image; for checkpoints. Tensors that
  /// later evaluations leave alone; none for most likelihoods.
  virtual NamedTensors working_state() const { return {}; }
  /// Takes up such a state, from any device. @throws FileError when names or shapes do not match
  virtual void load_working_state(const NamedTensors& state) {
    if (!state.empty()) throw FileError("the " + name() + " likelihood has no state " + state.begin()->first);
  }

  /// "gridded", "exact" or "loose", the last with the kind of noise unless it is Gaussian.
  virtual std::string name() const = 0;
  /// The module that holds its tensors.
  virtual torch::nn::Module& as_module() = 0;
};

}  // namespace mpol
