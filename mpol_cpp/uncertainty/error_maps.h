#pragma once

#include <vector>

#include <torch/types.h>

#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/images/beam.h>
#include <mpol_cpp/uncertainty/bootstrap.h>

namespace mpol {

using torch::Tensor;

/// What samples of a fitted image (Bootstrap) say of the errors of each channel in numbers.
struct ChannelErrors {
  /// Error and bias of each channel's flux, Jy: the root of the samples' mean square difference and of the squares of flux_left
  /// and flux_unseen; and the samples' mean difference.
  std::vector<double> flux_error, flux_bias;
  std::vector<double> growth, growth_width;  ///< BootstrapSamples::growth; 0 without one
  std::vector<double> flux_left;             ///< flux of what the data still hold of the image's shape, Jy
  /// What the flux owes to the shape that priors give it on baselines shorter than there are, Jy: the square of the part that
  /// none sees (flux_seen) times the flux; 0 where that is not known.
  std::vector<double> flux_unseen;
  /// Full width at half maximum of the errors' autocorrelation at the resolution of pixels in each channel, arcsec: pixels nearer
  /// than that err together. NaN where samples do not differ.
  std::vector<double> correlation_length;
  /// By how much samples' errors fall short, in each channel: how samples differ from the image over how refits differ from their
  /// samples, root mean squares over the pixels where the image exceeds its error; at least 1, and 1 without refits. An image has
  /// less than its sky of what a fit takes away, a sample less than the image: the second is seen, and stands for the first.
  std::vector<double> error_factor;
  /// The share of each channel's flux, counted without its sign, that lies where the image is no larger than its error: noise may
  /// have made it. Of faint images it is about what they have too much.
  std::vector<double> share_below_error;

  /// Calls visit(numbers) with the numbers of channels, of one kind after another.
  template <typename Visit>
  void visit_numbers(const Visit& visit) {
    for (auto* numbers : {&flux_error, &flux_bias, &growth, &growth_width, &flux_left, &flux_unseen, &correlation_length,
                          &error_factor, &share_below_error})
      visit(*numbers);
  }
};

/// What they say of the image's errors: maps (nchan, npix, npix) float64 on the CPU, sky orientation, at the resolution of the
/// beams in Jy/beam, or of pixels in Jy/arcsec^2 where there are none. What data do not resolve no sample knows: errors are to be
/// taken at the resolution of a beam.
struct ErrorMaps : ChannelErrors {
  Tensor image;  ///< the fitted one
  /// Root mean square of sample minus image: noise, and what the priors take away; at the resolution of beams the larger of a
  /// pixel's own and that of its surroundings (a Gaussian twice as wide as the beam), as where an image errs is as uncertain;
  /// times error_factor; and the root of its square and that of what data still hold of the image's shape (ImageGrowth).
  Tensor error;
  Tensor mean, spread;  ///< of the samples; the spread is their standard deviation: noise alone; undefined where not asked for
  Tensor lower, upper;  ///< their 16th and 84th percentile: how they scatter; no interval of the sky, as they are biased; as mean

  /// image/error, 0 where nothing errs.
  Tensor signal_to_noise() const;

  /// Calls visit(name, map) with each map, defined or not.
  template <typename Visit>
  void visit_maps(const Visit& visit) {
    visit("image", image);
    visit("error", error);
    visit("mean", mean);
    visit("spread", spread);
    visit("lower", lower);
    visit("upper", upper);
  }
  /// Takes in some channels of a cube that has `nchan`. @param some  has maps of the same kinds each time
  void put_channels(ErrorMaps some, std::int64_t first, std::int64_t nchan);
};

/// Which maps are made.
enum class MapsOfErrors {
  all,      ///< that there are
  of_error  ///< the image's and its error's, without those of how samples scatter
};

/// @param sky      (nchan, npix, npix), Jy/arcsec^2, sky orientation
/// @param samples  at least two, on the CPU; refits as many as there are, or an undefined tensor; growth and what is seen of each
///                 channel, or undefined tensors: none, and all
/// @param beams    one, or one for each channel; none: at the resolution of pixels
/// @throws ShapeError when shapes do not fit; ValueError for fewer than two samples
ErrorMaps error_maps(const Tensor& sky, const BootstrapSamples& samples, const GridCoords& coords, const std::vector<Beam>& beams,
                     MapsOfErrors which = MapsOfErrors::all);

}  // namespace mpol
