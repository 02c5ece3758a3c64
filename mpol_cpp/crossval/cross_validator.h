#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/arg.h>

#include <mpol_cpp/crossval/fold_batch.h>
#include <mpol_cpp/crossval/fold_data.h>
#include <mpol_cpp/crossval/fold_fit.h>
#include <mpol_cpp/crossval/scan.h>
#include <mpol_cpp/distributed/communicator.h>
#include <mpol_cpp/models/image_model.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/options/train_options.h>

namespace mpol {

/// Which weights are tried.
class Search {
 public:
  /// The ways to search.
  enum class Kind {
    compass,  ///< step by step from the starts
    grid,     ///< all combinations
    random    ///< points drawn at random
  };

  /// From the axes' starts: on to the first neighbour, one step away along an axis, that is better, in the direction that was
  /// better last before others, until none is or so many points were tried. The last axis comes first, and larger weights.
  /// Source: Kolda, Lewis & Torczon 2003 (opportunistic compass search). @param decades  the step, > 0
  static Search compass(double decades = 0.5, std::int64_t most_points = 16);
  /// All combinations of the axes' values.
  static Search grid();
  /// The axes' starts, and points at random between their bounds, evenly in log c; the same for the same seed.
  static Search random(std::int64_t points, std::uint64_t seed = 0);

  Kind kind() const { return kind_; }          ///< which way was made
  double decades() const { return decades_; }  ///< step of a compass, in log10 c
  /// Points that a compass or a random search may try; a grid takes all of its own.
  std::int64_t most_points() const { return most_points_; }
  std::uint64_t seed() const { return seed_; }  ///< of random points

 private:
  explicit Search(Kind kind) : kind_(kind) {}

  Kind kind_;
  double decades_ = 0.5;
  std::int64_t most_points_ = 16;
  std::uint64_t seed_ = 0;
};

/// Options of a CrossValidator.
struct CrossValidatorOptions {
  /// Which points of the axes are tried.
  TORCH_ARG(Search, search) = Search::compass();
  /// By what they are compared: with sure and gcv the data are those of white_noise_data() instead of folds.
  TORCH_ARG(Score, score) = Score::folds;
  /// What chi^2 is divided by in each fold's objective.
  TORCH_ARG(Normalize, normalize) = Normalize::cells;
  /// How many folds are fitted as the problems of one batch, >= 0; 0: as many as the memory allows on a GPU, where they are
  /// GriddedNets and the optimizer tells problems apart (pogm, fista, and adam and sgd without a tolerance), and one elsewhere.
  /// Each fold's fit is the same in a batch as alone. @throws ValueError from the CrossValidator where they cannot be a batch
  TORCH_ARG(std::int64_t, folds_at_once) = 0;
  /// Options of each fold's fit; callbacks, checkpoints and `resume` are not for it. `interrupted` ends the scan. With pogm the
  /// tolerance is that of the objective alone, from 24 iterations on.
  TORCH_ARG(TrainOptions, train) = TrainOptions().optimizer(OptimizerKind::pogm);
  /// After each point.
  TORCH_ARG(std::function<void(const Scan&)>, on_point) = {};
  /// Where the scan is kept after each point, so that one that was interrupted goes on from there, to the same bits; empty:
  /// nowhere.
  TORCH_ARG(std::filesystem::path, state) = {};
  /// Stored there and compared: settings and digest of the input, "key = value". A state of another run is not taken up.
  TORCH_ARG(std::vector<std::string>, fingerprint) = {};
  /// Ranks that share the folds of each point, each with all data: every rank calls run() and gets the same scan, the first alone
  /// writes the state, which all read. Empty: this rank alone.
  TORCH_ARG(std::shared_ptr<Communicator>, ranks) = {};
  /// How fast those ranks are, in any common unit: a fold goes to the rank that owners_by_speed() says. Empty: all alike.
  TORCH_ARG(std::vector<double>, speeds) = {};
};

/// Makes the model that a fold fits, with a start of its own that has seen its training data alone.
using FoldModel = std::function<std::shared_ptr<ImageModel>(const FoldData& fold)>;

/// Chooses weights of regularizers by k-fold cross-validation: at each point every fold's model is fitted to its training data,
/// and the score is the chi^2 of what was held out. The first point's fits start as `model` says, later ones from the same
/// fold's image at the best point so far: no fit begins from an image that has seen what it is tested by.
///
/// With Score::sure or gcv all data are fitted, once as they are and once with a little noise more; how the image answers to that
/// noise tells the degrees of freedom of the fit (white_noise_data), and these the score. Two fits to a point instead of five,
/// and nothing held out, but all rests on noise that is white: where neighbours share errors, these scores fit the errors.
///
/// What no fold can test: flux, which only the shortest baselines know, and which always train.
class CrossValidator {
 public:
  /// @param terms  of the objective, those that are searched among them; the others keep their weights
  /// @param axes   what is searched
  /// @throws ValueError for an axis without its term, or with a unit, a start or bounds that are not above 0; for data that are
  ///         not the score's; for speeds that are not above 0, or not as many as ranks
  CrossValidator(std::vector<FoldData> folds, const FoldModel& model, std::vector<Term> terms, std::vector<SearchAxis> axes,
                 CrossValidatorOptions options = {});

  /// @throws DivergedError when no point has a finite score
  Scan run();

 private:
  void search_compass();
  void search_points(const std::vector<std::vector<double>>& points);
  std::vector<std::vector<double>> grid_points() const;
  std::vector<std::vector<double>> random_points() const;

  /// The place of a point in the scan; nothing where it was not tried yet.
  std::optional<std::size_t> tried(const std::vector<double>& c) const;
  /// Tries a point that was not tried yet. @return its place in the scan; nothing when the scan was interrupted
  std::optional<std::size_t> evaluate(const std::vector<double>& c);
  std::optional<ScanPoint> fit_point(const std::vector<double>& c);
  /// What a fit of a fold gave.
  struct FoldResult {
    FoldScore score;
    Tensor cells;  // residuals of the held-out ones
    Tensor image;  // (npix, npix) float64, of the middle channel
    std::vector<Tensor> parameters;
    double share = 0;  // of white noise: the perturbation's part in the image
    bool interrupted = false;
  };
  /// Folds that are fitted at once.
  struct FoldGroup {
    std::vector<std::size_t> folds;
    std::unique_ptr<detail::FoldBatch> batch;  // null for a fold alone
  };
  void group_folds();
  std::int64_t folds_at_once(const std::vector<detail::FoldFit*>& own) const;
  /// Fits the folds of a group. @return the end of each
  std::vector<detail::FoldFit::End> fit_group(const FoldGroup& group, const std::vector<Term>& terms);
  FoldResult result_of(std::size_t fold, const detail::FoldFit::End& end);
  /// What the rank that has a fold found, on all.
  void share_result(std::size_t fold, FoldResult& result);
  bool is_mine(std::size_t fold) const;  // on this rank
  void divide_folds();
  void check_data() const;
  double penalty_of(ImageModel& model, const Tensor& sky) const;
  std::vector<Term> terms_at(const std::vector<double>& c) const;

  void save() const;
  void load();

  using Parameters = std::vector<Tensor>;  // of a model
  std::vector<FoldData> folds_;
  std::vector<detail::FoldFit> fits_;
  std::vector<FoldGroup> groups_;  // of the folds of this rank
  std::vector<Term> terms_;
  std::vector<std::size_t> searched_;  // the term of each axis
  CrossValidatorOptions options_;
  std::vector<std::int64_t> owners_;  // the rank that fits each fold
  Scan scan_;
  std::vector<Parameters> warm_;  // what each fold's next fit starts from
  double warm_score_;             // of the point that they are of
  std::vector<ScanPoint> kept_;   // of an interrupted run, which are asked for again in their order
};

}  // namespace mpol
