#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/calibration/gain_fit.h>
#include <mpol_cpp/serialize/safetensors.h>

namespace mpol {

/// Makes images of calibrated data, one after the other: each may begin where the last one ended.
class CalibrationImager {
 public:
  virtual ~CalibrationImager() = default;
  /// The image (nchan, npix, npix) that fits the data, Jy/arcsec^2; undefined where the fit was interrupted.
  virtual Tensor image_of(const Visibilities& calibrated) = 0;
  /// What the next image begins from, to the last bit, for a calibration that is to be resumed.
  virtual NamedTensors state() const = 0;
  /// Takes up such a state. @throws FileError when names or shapes do not match
  virtual void load_state(const NamedTensors& state) = 0;
};

/// What a round came to.
struct CalibrationRound {
  std::int64_t round = 0;                 ///< from 1
  const std::vector<FittedGain>& blocks;  ///< as this round's image has them
  double change = 0;                      ///< of the gain that changed most, in its error
  std::int64_t most_changed = 0;          ///< its block
  double score = 0;                       ///< chi^2/2N of the data with their gains, but with the weights as they are
};

/// Options of calibrate_blocks.
struct BlockCalibrationOptions {
  /// What is fitted.
  TORCH_ARG(GainKinds, kinds) = {};
  /// Rounds of an image and a fit of the gains, at most; > 0.
  TORCH_ARG(std::int64_t, rounds) = 30;
  /// It has converged when no gain changes by more than this part of its error from one round to the next, > 0.
  TORCH_ARG(double, tolerance) = 0.05;
  /// After each round.
  TORCH_ARG(std::function<void(const CalibrationRound&)>, on_round) = {};
  /// Where the state is kept after each round, so that a calibration that was interrupted goes on from there, to the same bits;
  /// empty: nowhere.
  TORCH_ARG(std::filesystem::path, state) = {};
  /// Stored there and compared, "key = value". A state of something else is not taken up.
  TORCH_ARG(std::vector<std::string>, fingerprint) = {};
  /// Where the calibrated data of each round are kept.
  TORCH_ARG(ArrayRoom, room) = {};
};

/// What a calibration found.
struct BlockCalibration {
  std::vector<FittedGain> blocks;  ///< in the order of SampleBlocks::names
  std::int64_t rounds = 0;         ///< taken in all
  double change = 0;               ///< in the last one, of the gain that changed most, in its error
  bool converged = false;          ///< within the tolerance
  bool interrupted = false;        ///< nothing is final

  std::vector<BlockGain> gains() const;  ///< without their errors
};

/// Fits an image and the gains of the blocks of data together (self-calibration by blocks), by turns:
///
///   image  = the best one of the data calibrated with the gains (calibrated())
///   gains  = the best ones of the data with that image           (fit_gains())
///
/// Both make the same sum smaller: chi^2 of calibrated data is that of the data with the gains in the model. So whatever fits
/// images, a convex solver with its certified end, fits these too, where steps along all gradients at once would be lost between
/// the many pixels and the few gains. Where blocks have little of the uv plane in common such turns are slow: from the third
/// round on the gains are extrapolated (Anderson 1965, of up to three rounds).
/// The sum is not convex in both: gains that begin far off may end in another of its valleys, but for shifts, whose best place in
/// the whole field is looked for.
/// @throws as fit_gains; ValueError for options out of range; whatever the imager throws
BlockCalibration calibrate_blocks(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                                  const SampleBlocks& blocks, CalibrationImager& imager, const BlockCalibrationOptions& options);

}  // namespace mpol
