#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>

namespace mpol {

/// What a regularizer is given of a model.
struct RegularizerInput {
  const torch::Tensor& sky;                            ///< (…, nchan, npix, npix), Jy/arcsec^2, sky orientation
  const GridCoords& coords;                            ///< the model's grid
  std::function<const torch::Tensor&()> visibilities;  ///< (…, nchan, npix, npix), packed, Jy
  const torch::Tensor& pixels;  ///< whose magnitudes sparsity sums: the sky, or ImageModel::signed_pixels()
};

/// A setting of a regularizer besides its weight.
struct RegularizerSetting {
  std::string name;                  ///< in C++
  std::optional<double> value = {};  ///< where none is given; nothing: one must be given
  bool may_be_zero = false;          ///< else it must be above 0
  bool is_divided_by = false;        ///< fused steps take its reciprocal root: a normal number in the dtype of the fit
  std::string option = {};           ///< of the command line, without dashes; empty: it has none
  std::string unit = {};             ///< of the option's value
  std::string help = {};             ///< of the option
  std::string missing = {};          ///< what the regularizer lacks without it, after its option: "needs ..."
};

/// The unit of noise (objective/noise_unit.h) in which a weight is given.
enum class NoiseScale {
  none,               ///< in none
  slope,              ///< degree one: the noise of the slope of chi^2/(2 N) by a pixel
  slope_of_spectrum,  ///< degree one in the norm of a pixel's spectrum: the same, of the norm
  curvature,          ///< degree two: the weight with which the term curves as much as chi^2/(2 N) by a pixel
};

/// A weight in units of noise that suits bright data, and one for faint data (objective/usual_units.h).
struct UsualWeight {
  double bright;  ///< where the source stands far out of the noise
  double faint;   ///< where it hardly does
  /// How both grow where the source fills less of the field than usual_filled: the powers of how much less. That of bright data
  /// does not fall where the source fills more.
  double bright_power = 0, faint_power = 0;
};

/// What solvers by proximal maps make of a regularizer.
enum class Convexity {
  unknown,    ///< nothing: no proximal map is known, or it is not convex
  quadratic,  ///< a quadratic form of the cube: part of the smooth part
  proximal,   ///< a map of its own
};

/// What the library and the program know of a regularizer besides its formulas: a new one needs to be said nowhere else.
struct Regularizer {
  std::string name;                               ///< of its column in reports, and, with - for _, of its option
  std::string help;                               ///< of its option
  std::vector<RegularizerSetting> settings = {};  ///< besides the weight, in the order of terms::NAME
  NoiseScale noise_scale = NoiseScale::none;      ///< the unit of its weight
  std::optional<std::size_t> scaled_by = {};      ///< the setting by which it is divided, and its unit multiplied
  Convexity convexity = Convexity::unknown;       ///< for POGM and its like
  bool needs_positive_pixels = false;             ///< such a proximal map is that of pixels that are not negative
  std::int64_t dual_images = 0;                   ///< of its proximal map, of each image, beside the two of total variation
  bool joins_channels = false;                    ///< looks at several channels at once
  /// Where it joins channels, how far it looks from one to the next; 0: at the norm of all of them.
  std::int64_t reach = 0;
  bool waits_for_device = false;              ///< looks at values on the host, or makes tensors there: no graph records it
  std::optional<double> least_pixel = {};     ///< Jy/arcsec^2: where it has no value below
  std::optional<UsualWeight> automatic = {};  ///< of a fit that names no regularizer; nothing: it is not in it
  bool searched_by_itself = false;            ///< by a search that names none; others of such a fit keep `automatic`
  std::optional<double> asked_for = {};       ///< units of noise of `auto` where that is asked for and it is not in such a fit
  std::optional<double> search_limit = {};    ///< units of noise beyond which no search looks; nothing: 100 times its start
  bool recorded_when_off = false;             ///< run.toml names it also where it has no weight
  /// Makes the function of its settings: unweighted, one float64 value per problem, (…), differentiable.
  std::function<std::function<torch::Tensor(const RegularizerInput&)>(const std::vector<double>& settings)> function;
};

/// A regularizer of the sky cube alone. @param function  of the cube and the settings
template <typename Function>
auto of_sky(Function function) {
  return [function](const std::vector<double>& settings) {
    return [=](const RegularizerInput& input) { return function(input.sky, settings); };
  };
}

}  // namespace mpol
