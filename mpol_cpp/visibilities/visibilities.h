#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <mpol_cpp/device/fields.h>
#include <mpol_cpp/visibilities/baselines.h>
#include <mpol_cpp/visibilities/stokes.h>

namespace mpol {

/// A place on the sky in direction cosines about a phase centre.
struct SkyOffset {
  double east = 0, north = 0;  ///< arcsec

  bool operator==(const SkyOffset&) const = default;  ///< to the last bit
};

/// What a file says about the observation beyond its samples; all of it optional, carried into FITS headers.
struct Observation {
  std::optional<double> right_ascension;  ///< phase centre, radian (J2000)
  std::optional<double> declination;      ///< phase centre, radian (J2000)
  std::string object;                     ///< name of the source
  std::string telescope;                  ///< as headers call it: "ALMA"
  std::string date;                       ///< DATE-OBS, ISO 8601
  std::optional<double> rest_frequency;   ///< Hz
  std::string spectral_reference;         ///< SPECSYS: LSRK, BARYCENT, TOPOCENT, …
  SkyOffset center = {};      ///< of images of the data, from the phase centre: there all phases are zero (with_center)
  Stokes stokes = Stokes::i;  ///< which part of polarised light the data are of
};

/// Samples of one channel on the host, each (samples), contiguous.
struct VisibilityBlock {
  Tensor u, v;     ///< float64, wavelengths
  Tensor data;     ///< complex128, Jy
  Tensor weights;  ///< float64, Jy^-2
};

/// Loose (ungridded) complex visibilities with weights, in the dtypes they came in.
/// Sign convention: V(u,v) = integral of I(l,m) exp(-2 pi i (u l + v m)), l East, m North.
///
/// They are made on the host. `move_to` takes data and weights to a device; baselines and frequencies stay on the host, where
/// everything that is planned from them is made, and are never cast.
class Visibilities {
 public:
  /// @param baselines  nvis samples, one set or one per channel
  /// @param data       (nvis) or (nchan, nvis), complex64/complex128, Jy; (nvis) becomes (1, nvis)
  /// @param weights    same shape as data, float32/float64, Jy^-2 = 1/sigma^2 of the real = of the imaginary part
  /// @throws ShapeError when the shapes differ; DataError when there are no samples, a value is not finite or a
  ///         weight is not positive (the message names the first offending index and value)
  Visibilities(Baselines baselines, Tensor data, Tensor weights);

  std::int64_t nchan() const { return data_.size(0); }  ///< channels of the data
  std::int64_t nvis() const { return data_.size(1); }   ///< samples of one channel

  const Baselines& baselines() const { return baselines_; }  ///< where the samples were taken
  const Tensor& data() const { return data_; }               ///< (nchan, nvis)
  const Tensor& weights() const { return weights_; }         ///< (nchan, nvis)

  /// Samples [begin, end) of a channel, widened, from whatever device they are on. @throws ValueError for samples or a
  /// channel that are not there
  VisibilityBlock block(std::int64_t channel, std::int64_t begin, std::int64_t end) const;
  /// The same of the samples with these indices, (n) int64 on the CPU.
  VisibilityBlock pick(std::int64_t channel, const Tensor& indices) const;

  /// Frequencies of the channels, (nchan) float64 Hz, or undefined when unknown.
  const Tensor& frequencies() const { return frequencies_; }
  /// @throws ShapeError unless (nchan); DataError unless finite and > 0
  void set_frequencies(Tensor frequencies);

  const Observation& observation() const { return observation_; }  ///< what the file said besides its samples
  /// Replaces what the headers of images made of the data will say.
  void set_observation(Observation observation) { observation_ = std::move(observation); }

  /// The given samples of all channels, 0-based, in that order: a mini-batch of one's own.
  /// @param samples  (n) int64 on the CPU, n >= 1  @throws ShapeError; ValueError for a sample that is not there
  Visibilities select(const Tensor& samples) const;
  /// The given channels (0-based) in that order. @throws ValueError for a channel that is not there.
  Visibilities select_channels(const std::vector<std::int64_t>& channels) const;

  /// Bytes of all arrays as they are held.
  std::int64_t memory_bytes() const;

  /// What move_to() moves: data and weights.
  friend auto device_fields(Visibilities& visibilities) {
    return std::tuple(field("data", visibilities.data_), field("weights", visibilities.weights_));
  }

 private:
  void check_channel(std::int64_t channel) const;
  template <typename Choose>
  VisibilityBlock widened(std::int64_t channel, const std::pair<Tensor, Tensor>& baselines, const Choose& choose) const;

  Baselines baselines_;
  Tensor data_, weights_, frequencies_;
  Observation observation_;
};

/// Which data channels feed which image channel: sources[image channel] lists data channels.
/// A line cube has one source per image channel; a continuum image takes all channels, each at its own u, v.
struct ChannelMap {
  std::vector<std::vector<std::int64_t>> sources;  ///< data channels of each image channel, from 0

  static ChannelMap cube(std::int64_t nchan);                                       ///< image channel c <- data channel c
  static ChannelMap continuum(std::int64_t nchan);                                  ///< one image channel <- all data channels
  std::int64_t nchan() const { return static_cast<std::int64_t>(sources.size()); }  ///< image channels
  /// @throws ValueError for a source beyond the channels of the data
  void check_sources(std::int64_t data_channels) const;
};

}  // namespace mpol
