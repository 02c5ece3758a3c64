#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/analysis/amplitude_bins.h>
#include <mpol_cpp/analysis/length_slope.h>
#include <mpol_cpp/analysis/residual_sums.h>
#include <mpol_cpp/analysis/spectral_slope.h>
#include <mpol_cpp/coordinates/grid_coords.h>
#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/images/beam.h>
#include <mpol_cpp/visibilities/data_outline.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/sample_range.h>
#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// The data of a fit, of which its dirty images are made as its likelihood sees them: of cell averages for the gridded one,
/// of the samples themselves for all others. What is referred to must outlive it.
struct FitData {
  const Visibilities& visibilities;     ///< the samples
  const ChannelMap& channels;           ///< which data channels feed which image channel
  const GriddedDataset& dataset;        ///< their cell averages: float64, on the CPU
  Imaging imaging;                      ///< of which of these images are made
  std::vector<SampleRange> parts = {};  ///< of the data, in their order, that are looked at apart; none: they are one

  const GridCoords& coords() const { return dataset->coords(); }  ///< the grid of the image
};

/// What data minus model say of a part of the data.
struct PartResiduals {
  std::string name;               ///< "spw 3"
  std::int64_t samples = 0;       ///< in all channels
  double weight = 0;              ///< their mean, Jy^-2
  ResidualStatistics statistics;  ///< its number of samples is that of those that were looked at
};

/// What data minus model say besides their image, over all channels.
struct FitRemainder {
  ResidualStatistics statistics;     ///< of all data
  std::vector<PartResiduals> parts;  ///< the same of FitData::parts; none of cell averages
  ResidualHistogram histogram;       ///< of all data
  WideMap wide;                      ///< twice as wide as the field or as far as flux may reach (widest_field), whichever is more
  std::optional<SpectralSlope> slope = {};  ///< of samples of several channels in one image; none of cell averages
  std::optional<LengthSlope> lengths = {};  ///< none of cell averages
};

/// What shows how a model fits: dirty images, Briggs weighting with robust 0.5, and amplitudes against baseline length.
struct DirtyProducts {
  Tensor dirty;               ///< (nchan, npix, npix) float64, Jy/beam, sky orientation
  Tensor residual;            ///< the same of data minus model
  std::vector<Beam> beams;    ///< one per channel; none when a channel's beam is no ellipse
  std::vector<double> noise;  ///< that the weights promise in both, Jy/beam, one per channel
  AmplitudeBins data, model;  ///< amplitudes of all channels
  FitRemainder remainder;     ///< of data minus model, without their image
};

/// The fitted beams of all channels as FITS headers hold them; none when a channel's beam is no ellipse.
std::vector<Beam> fits_beams(const DirtyImager& imager);
/// The same of beams that were fitted.
std::vector<Beam> fits_beams(const std::vector<std::optional<Beam>>& fitted);

/// Beams as rows that ranks can sum or gather: (nchan, 3) float64 on the CPU, axes in arcsec and position angle in radian, NaN
/// where there is none.
Tensor rows_of_beams(const std::vector<std::optional<Beam>>& beams);
/// The beams of such rows.
std::vector<std::optional<Beam>> beams_of_rows(const Tensor& rows);

/// The fitted beam of each channel as dirty_products() has it, before there is an image.
std::vector<std::optional<Beam>> dirty_beams(const GridCoords& coords, const Visibilities& visibilities,
                                             const ChannelMap& channels, Imaging imaging);

/// What sums over samples of all channels go by: equal wherever some of the channels are.
struct ProductFrame {
  double longest = 0;                  ///< the longest baseline, wavelengths
  GridCoords wide = GridCoords(1, 2);  ///< grid of FitRemainder::wide
};
/// That of all data. @param uv  of their baselines
ProductFrame product_frame(const FitData& data, const UvSummary& uv);
/// The same where images are made of samples. @param coords  the grid of the image
ProductFrame product_frame(const GridCoords& coords, const DataOutline& data, const UvSummary& uv);

/// @param sky  model image (nchan, npix, npix) float64, Jy/arcsec^2, on the CPU
DirtyProducts dirty_products(const FitData& data, const Tensor& sky);
/// The same in the frame of these data.
DirtyProducts dirty_products(const FitData& data, const Tensor& sky, const ProductFrame& frame);

/// The same products of a cube of which each rank has the data and the model of some channels, one after the other in their
/// order. The parts of the data are not looked at apart.
/// @param own    the data of this rank's channels  @param sky  their model image
/// @param frame  of all data, the same on all ranks
/// @return       the products of all channels on the first rank, nothing on the others
std::optional<DirtyProducts> dirty_products(const FitData& own, const Tensor& sky, const ProductFrame& frame,
                                            Communicator& ranks);

/// The same products of images of whose samples each rank has a share, in all channels, at least one. The parts of the data are
/// not looked at apart.
/// @param own  this rank's samples, beside the cell averages of those of all ranks  @param sky  the model image of all
/// @return     the products on the first rank, nothing on the others
std::optional<DirtyProducts> dirty_products_of_samples(const FitData& own, const Tensor& sky, const ProductFrame& frame,
                                                       Communicator& ranks);

/// The dirty image in Jy/arcsec^2 that a fit may start from (start_at_image), (nchan, npix, npix) float64.
Tensor dirty_start(const FitData& data);

}  // namespace mpol
