#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/labeled_state.h>
#include <mpol_cpp/core/accumulate.h>
#include <mpol_cpp/serialize/safetensors.h>

namespace mpol {

using torch::Tensor;

/// Data at cells of the uv plane, with which a fused step evaluates chi^2 = sum w |V - M|^2 by itself.
struct CellData {
  Tensor cells;        ///< (ncells) int64, flat indices into (nchan, npix, npix/2 + 1), the unshifted transform of the sky image
  Tensor data;         ///< (ncells) complex, Jy
  Tensor weights;      ///< (ncells) real, Jy^-2
  std::int64_t nchan;  ///< of the images
};

/// A likelihood of visibilities given an image. The gridded, the exact and the loose one share this interface; all of
/// them are torch modules too, so that they move with `.to(device)` and save what they hold. They take images of float32 and
/// of float64, whatever the dtype of their data: the model decides in which a fit computes.
///
/// Values are unnormalised, chi^2 = sum w |V - M|^2 or -2 ln L: the objective divides by 2 N_norm.
///
/// One of your own derives from mpol::Module<Yours> (its tensors) and from this interface, gives its grid to the constructor,
/// and overrides two functions, chi_squared and normaliser: examples/own_parts.cpp. The others have defaults that follow
/// from these.
class Likelihood : public LabeledState {
 public:
  /// @param sky  (…, nchan, npix, npix), Jy/arcsec^2, sky orientation
  /// @return     one value per problem, (…), in the dtype of the sky or float64, differentiable with respect to the sky
  virtual Tensor chi_squared(const Tensor& sky) = 0;

  /// The value and the gradient with respect to the sky without an autograd graph around it. The default takes the gradient of
  /// chi_squared by autograd.
  /// @param gradient  same shape as sky; overwritten or added to
  /// @return          one value per problem, (…), float64, on the sky's device; nothing waits for the device
  virtual Tensor value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate);
  /// Whether channel_values_and_gradient() tells chi^2 of each channel, so that solvers can minimize channels by themselves. The
  /// default is no; a class that says yes does not say so for one derived from it.
  virtual bool tells_channels() const { return false; }
  /// The same as value_and_gradient(), channel by channel. The default throws.
  /// @return  chi^2 of each channel, (…, nchan), float64, on the sky's device; nothing waits for the device
  /// @throws ValueError unless tells_channels()
  virtual Tensor channel_values_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate);

  /// N_norm of this likelihood: the occupied cells of its grid, so that lambda means the same for all likelihoods.
  virtual double normalizer() const = 0;
  /// The terms of the sum in its chi^2 (its own samples or cells), summed over channels; the default is the normaliser.
  virtual std::int64_t samples() const;
  /// The loose visibilities behind it, summed over channels; the default is samples().
  virtual std::int64_t visibilities_count() const;
  /// The likelihood of each problem of a batch, in their order, where each has data of its own; else the one that all share, this
  /// one, which is the default.
  virtual std::vector<const Likelihood*> of_problems() const { return {this}; }
  /// The default is what its parameters and buffers take.
  virtual std::int64_t memory_bytes() const;

  /// Whether chi_squared is a quadratic function of the image, the same at each call: then it is convex, and solvers that know
  /// its curvature apply.
  virtual bool is_quadratic() const { return false; }

  /// The data, where the value is their chi^2 at cells and nothing else: fused steps then take them instead of
  /// value_and_gradient. The default is none. A class that has some gives none where it is the base of another one, which may
  /// compute something else.
  virtual std::optional<CellData> cells() const { return std::nullopt; }
  /// Whether value_and_gradient waits for nothing and does the same work on the same memory at each call, so that a GPU can
  /// record and repeat it. The default is no; a class that says yes does not say so for one derived from it.
  virtual bool can_be_recorded() const { return false; }
  /// Why no recording of chi_squared could be repeated, as the end of "the likelihood …"; empty, the default, where nothing
  /// speaks against it.
  virtual std::string obstacle_to_recording() const { return {}; }

  /// What its next values depend on, to the last bit, besides data, parameters and image; for checkpoints. Tensors that
  /// later evaluations leave alone; none for most likelihoods.
  virtual NamedTensors working_state() const { return {}; }
  /// Takes up such a state, from any device. @throws FileError when names or shapes do not match
  virtual void load_working_state(const NamedTensors& state);

  /// "gridded", "exact" or "loose", the last with the kind of noise unless it is Gaussian; the default is the class's name.
  virtual std::string name() const;
  /// The module that holds its tensors, by default this very object. @throws ValueError where it is none
  virtual torch::nn::Module& as_module();
  const torch::nn::Module& as_module() const;  ///< the same, to be read

  /// The grid of the images that it takes.
  const GridCoords& coords() const { return coords_; }
  /// "cell_size" and "npix".
  std::map<std::string, std::string> state_labels() const override;

 protected:
  /// @param coords  grid of the images that it takes
  explicit Likelihood(const GridCoords& coords) : coords_(coords) {}

 private:
  GridCoords coords_;
};

}  // namespace mpol
