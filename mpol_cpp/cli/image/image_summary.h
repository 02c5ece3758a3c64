#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <mpol_cpp/cli/options/grid_choice.h>
#include <mpol_cpp/cli/output/blocks_table.h>
#include <mpol_cpp/cli/output/points_table.h>
#include <mpol_cpp/cli/image/dirty_products.h>
#include <mpol_cpp/cli/image/first_look.h>
#include <mpol_cpp/cli/image/lambda_search.h>
#include <mpol_cpp/crossval/scan.h>
#include <mpol_cpp/gridding/cells/scatter.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/uncertainty/error_maps.h>
#include <mpol_cpp/uncertainty/fit_noise.h>
#include <mpol_cpp/visibilities/stokes.h>

namespace mpol::cli {

/// Wall-clock seconds of the parts of a run.
struct Timings {
  double start = 0;  ///< of the program, up to reading
  double reading = 0, calibration = 0, points = 0, gridding = 0, crossval = 0, training = 0, errors = 0, structures = 0,
         writing = 0, total = 0;
};

/// The weight of a regulariser in a fit.
struct LambdaSummary {
  std::string name;
  double value = 0;
  std::optional<double> in_units;  ///< of noise, where it has that unit
  std::string how;                 ///< "given", "auto", "noise units", "guessed", "cross-validated" or "bounded"
  bool is_given = false;           ///< the first of these
  /// Those of each channel, where they have their own: the value above is their median.
  std::vector<double> of_channels = {}, units_of_channels = {};
};

/// "2e-06", or "2e-06 to 5e-06" of channels.
std::string value_words(const LambdaSummary& lambda);
/// The same in units of noise, without their sign; empty where it has none.
std::string units_words(const LambdaSummary& lambda);

/// What chi^2 was bounded by, and the weights for it.
struct BoundSummary {
  double bound = 0;       ///< of chi^2
  double factor = 1;      ///< of all weights, as they were given
  std::int64_t fits = 0;  ///< that the search for it took
};

/// What is left in a channel of the residual image, Jy/beam.
struct ResidualSummary {
  double noise = 0;  ///< that the weights promise
  double rms = 0, peak = 0;
};

/// What sampled fits say of the errors.
struct ErrorSummary {
  std::int64_t samples = 0;
  double noise_factor = 1;  ///< by which the noise is larger than the weights say
  ChannelErrors channels;

  /// The error of the flux of all channels together, Jy: what priors keep back, and what no baseline sees, adds up; the rest adds
  /// in quadrature.
  double total_flux_error() const;
};

/// The antennas' primary beam, which the image's brightness has in it.
struct BeamSummary {
  std::string antennas;  ///< whose it is
  double fwhm = 0;       ///< arcsec
  double at_flux = 1;    ///< its power, averaged over the image's flux
};

/// Whether a structure is real (StructureTest). F is -ln(posterior).
struct StructureSummary {
  std::string name, region;  ///< for people, and as the option takes it
  std::int64_t pixels = 0;   ///< marked
  double places = 1;         ///< how many such regions the image has room for
  double f_image = 0, filled_excess = 0, least_excess = 0;
  double bound = 0, bound_of_image = 0;  ///< what F may be above that of the image
  double sigma = 0;
  bool is_real = false, is_real_by_all_pixels = false;
  std::vector<double> flux;  ///< removed, Jy, per channel

  std::string verdict() const;  ///< one sentence
};

/// The probability with which structures are judged.
inline constexpr double level_of_structures = 0.99;

/// What a run of `mpol image` gave, apart from its images.
struct ImageSummary {
  TrainResult fit;
  OptimizerKind optimizer = OptimizerKind::pogm;
  std::string optimizer_reason;
  bool optimizer_is_asked_for = false;  ///< which is the reason
  DirtyPeaks peaks;                     ///< of the data, before any fit
  WeightSummary weights;                ///< of the data
  std::vector<LambdaSummary> lambdas;
  SkyOffset center;                        ///< of the image from the phase centre
  Stokes stokes = Stokes::i;               ///< that data and image are of
  std::vector<Choice> choices;             ///< of what nobody asked for
  std::optional<CalibratedBlocks> blocks;  ///< where gains were fitted
  std::optional<FittedPoints> points;      ///< where point sources were
  std::optional<Scan> scan;                ///< where lambdas were cross-validated
  std::optional<SplitCheck> split_check;   ///< where another kind of folds was tried
  std::optional<BoundSummary> bound;       ///< where chi^2 was bounded
  std::string likelihood;                  ///< its name
  bool of_cells = false;                   ///< its terms are cell averages, not visibilities
  bool gaussian = true;      ///< the noise of that likelihood; without it chi_squared is -2 ln L relative to a perfect fit
  double chi_squared = 0;    ///< of that likelihood, on the saved image
  std::int64_t samples = 0;  ///< terms of its sum
  std::optional<double> chi_squared_of_visibilities;  ///< of the loose data, when something computed it
  double normalizer = 0;
  std::int64_t visibilities = 0, cells = 0;  ///< summed over channels
  Scatter scatter;
  std::vector<double> flux;                 ///< Jy, per channel
  std::vector<ResidualSummary> residuals;   ///< per channel
  std::vector<PartResiduals> parts;         ///< of the data, where there are several
  std::optional<BeamSummary> primary_beam;  ///< of the antennas, where it is known
  std::optional<FitNoise> noise;  ///< that the weights were set anew for, else that of the errors, where these were looked for
  std::vector<double> filled;     ///< share of the field, that the weights were set anew for, of all channels or each; or empty
  std::vector<ChannelSignal> signals;  ///< of each channel, where they have weights of their own
  std::optional<ErrorSummary> errors;  ///< where they were sampled
  std::string why_no_errors;           ///< where nobody asked for errors and they were left out
  std::vector<StructureSummary> structures;
  std::string device;  ///< several with commas between them
  torch::Dtype dtype = torch::kFloat32;
  std::string device_reason;                     ///< "asked for", or how an automatic choice came to it
  std::int64_t ranks = 1;                        ///< processes that the run was shared by
  std::int64_t devices = 1;                      ///< of this process, the same
  Shard shard = Shard::none;                     ///< what they shared
  std::optional<std::int64_t> channels_at_once;  ///< where there were several groups of them
  std::int64_t seed = 0;
  Timings seconds;
  double estimated_memory = 0;  ///< bytes
  double samples_on_disk = 0;   ///< bytes; 0: they were in memory

  /// What a first look at the data shows.
  void take(FirstLook look) {
    peaks = look.peaks;
    signals = std::move(look.signals);
    weights = look.weights;
  }
  double reduced_chi_squared() const { return chi_squared / (2.0 * static_cast<double>(samples)); }
};

/// How much larger the noise is than the weights say, and why.
std::string noise_words(const FitNoise& noise);
/// How much of its field the source fills, of all channels or each.
std::string filled_words(const std::vector<double>& shares);

/// What --dry-run prints with --json: the choices, and how the verb ran.
std::string dry_summary(const ImageSummary& summary);

/// The text of summary.json; numbers that are not finite become null.
std::string summary_json(const ImageSummary& summary);

/// Writes history.csv, atomically and row by row: `epoch,total,nll,<term>…,learning_rate`, 17 digits; row e is the loss before
/// the update of epoch e.
void write_history_csv(const std::filesystem::path& path, const TrainResult& fit);

/// A few lines for people: how well the data are fitted, the flux, why the fit ended, where the files are, and how
/// many warnings there were.
std::string closing_words(const ImageSummary& summary, const std::string& folder, std::size_t warnings);

}  // namespace mpol::cli
