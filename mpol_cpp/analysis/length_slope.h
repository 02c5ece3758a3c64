#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

using torch::Tensor;

/// How data grow with the length q of their baselines beside a model of them: data = (a + slope (q/q_max)^2) model. An image
/// whose pixels are too coarse for a source falls short of it like this, the more the longer a baseline is.
struct LengthSlope {
  double slope = 0, error = 0;  ///< and its standard error, by the weights
  double explained = 0;         ///< how much less chi^2 is with it than with one factor `a` for all
  double chi_squared = 0;       ///< of the model as it is
  double of_empty = 0;          ///< chi^2 of an image without any light
  double samples = 0;           ///< 2 N numbers

  /// Whether the data exceed the model on long baselines by more than their errors and scatter let happen, and a fifth of what
  /// is too much in chi^2, or more, comes from that, where anything is; of a model that shows nine tenths of what is in the data.
  bool tells_sharp_source() const;
};

/// Sums for it, over samples that are never there all at once. Several passes over the same samples change nothing.
class LengthAmplitudes {
 public:
  /// @param longest  q_max, wavelengths
  /// @param samples  how many there are in all
  LengthAmplitudes(double longest, std::int64_t samples) : longest_(longest), samples_(static_cast<double>(samples)) {}

  /// @param q             (n) float64, wavelengths
  /// @param model, data   (n) complex128, Jy
  /// @param weights       (n) float64, Jy^-2
  void add(const Tensor& q, const Tensor& model, const Tensor& data, const Tensor& weights);

  /// Calls visit(numbers, count) with all sums, to which those of other samples may be added.
  template <typename Visit>
  void visit_sums(const Visit& visit) {
    for (double* sum : {&samples_, &seen_, &chi_squared_}) visit(sum, std::size_t{1});
    visit(powers_.data(), powers_.size());
    visit(products_.data(), products_.size());
  }

  /// @return nothing without a model, and where all baselines are of one length
  std::optional<LengthSlope> slope() const;

 private:
  double longest_, samples_, seen_ = 0, chi_squared_ = 0;
  std::array<double, 3> powers_ = {};
  std::array<double, 2> products_ = {};  // sum w |m|^2 x^k, sum w Re(conj(m) (d - m)) x^k with x = (q/q_max)^2
};

/// That of visibilities beside an image of them.
/// @param sky    (nchan, npix, npix) Jy/arcsec^2, sky orientation
/// @param ranks  that have other channels; empty: these are all
/// @throws ShapeError for another image; DataError when baselines do not fit the grid
std::optional<LengthSlope> length_slope(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                                        const ChannelMap& channels, Communicator* ranks = nullptr);

}  // namespace mpol
