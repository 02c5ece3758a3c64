// Times the convex solvers. The first argument names what:
//
//   solver_benchmark optimum|iteration [--dtype float32,float64] [--seconds S] [--threads N] [--data simulated_disc.npz]
//
// From nothing (an empty image) to 1e-3 of the regularizers' value above the optimum, on the bundled observations at the weights
// of a study of solvers, by pogm, fista and admm, and by Adam from the dirty image to the same objective of its own kind of
// pixels; and one iteration of POGM beside one fused step of Adam, which is all that `iteration` times: the least time is that of
// the fewest dual passes.
#include <filesystem>
#include <limits>
#include <memory>

#include <ATen/ops/zeros.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/train/steps/make_step.h>

#include "settings.h"

namespace {

using benchmarks::print;
using benchmarks::Settings;
using nlohmann::json;

struct Observation {
  const char* name;
  const char* file;
  double cell_size;
  std::int64_t npix;
  double lambda;
};

const std::vector<Observation> observations = {{"HD 142527", "hd142527_band9.npz", 0.08, 128, 3e-4},
                                               {"simulated disc", "simulated_disc.npz", 0.05, 192, 3e-3}};
constexpr std::int64_t most_steps = 6000, most_steps_to_the_optimum = 6000;
constexpr double usual_rate = 0.3;

/// A fit of the first channel of an observation.
struct Problem {
  const Observation& observation;
  std::string likelihood;
  mpol::Smoothing smoothing;
  torch::Dtype dtype;

  mpol::GridCoords coords() const { return {observation.cell_size, observation.npix}; }

  mpol::Objective objective() const {
    const auto visibilities = mpol::io::read_npz(std::filesystem::path(MPOL_DATA_DIR) / observation.file).select_channels({0});
    const std::vector<mpol::Term> terms = {mpol::terms::sparsity(observation.lambda), mpol::terms::tv_image(observation.lambda)};
    if (likelihood == "exact") return {mpol::ExactLikelihood(coords(), visibilities, mpol::ChannelMap::cube(1)).ptr(), terms};
    const auto unchecked = mpol::DataAveragerOptions().scatter_check(mpol::ScatterCheck::off);
    auto gridded = mpol::GriddedLikelihood(mpol::DataAverager(coords(), visibilities, unchecked).to_dataset());
    gridded->to(dtype);
    return {gridded.ptr(), terms};
  }

  std::shared_ptr<mpol::ImageModel> empty_model() const {
    const auto base = at::zeros({1, observation.npix, observation.npix}, dtype);
    auto options = mpol::GriddedNetOptions(coords()).base_cube(base).dtype(dtype);
    return mpol::GriddedNet(options.pixel_mapping(mpol::nonnegative_mapping()), smoothing).ptr();
  }

  std::shared_ptr<mpol::ImageModel> soft_model() const {
    return mpol::GriddedNet(mpol::GriddedNetOptions(coords()).start(-3).dtype(dtype), smoothing).ptr();
  }

  json row() const {
    return {{"case", "optimum"},
            {"observation", observation.name},
            {"npix", observation.npix},
            {"likelihood", likelihood},
            {"pixels", smoothing == mpol::Smoothing::hann ? "hann" : "free"},
            {"dtype", dtype == torch::kFloat32 ? "float32" : "float64"}};
  }
};

mpol::TrainOptions options_of(mpol::OptimizerKind kind) {
  return mpol::TrainOptions().optimizer(kind).learning_rate(usual_rate).epochs(most_steps);
}

/// total and nll of a report, before the step.
std::pair<double, double> losses_of(const mpol::StepReport& report) {
  const auto* values = report.losses.const_data_ptr<double>();
  return {values[0], values[1]};
}

/// The least F, and the regularizers' value there.
std::pair<double, double> optimum_of(Problem problem) {
  problem.dtype = torch::kFloat64;
  const auto objective = problem.objective();
  const auto step = mpol::make_step(problem.empty_model(), objective, options_of(mpol::OptimizerKind::pogm));
  std::pair<double, double> least{std::numeric_limits<double>::infinity(), 0};
  for (std::int64_t i = 0; i < most_steps_to_the_optimum; ++i) {
    const auto [total, nll] = losses_of(step->take(usual_rate));
    if (total < least.first) least = {total, total - nll};
  }
  return least;
}

/// Seconds and steps until F is no more than `target`; the making of the step, with its estimate of the curvature, counts.
void time_to(const Problem& problem, mpol::OptimizerKind kind, double target, double regularizers, double seconds) {
  const auto objective = problem.objective();
  std::int64_t steps = 0;
  double reached = 0;
  const auto times = benchmarks::repeat(
      [&] {
        const bool is_soft = !mpol::is_proximal(kind);
        const auto model = is_soft ? problem.soft_model() : problem.empty_model();
        const auto step = mpol::make_step(model, objective, options_of(kind));
        for (steps = 0; steps < most_steps; ++steps) {
          reached = losses_of(step->take(usual_rate)).first;
          if (reached <= target) break;
        }
      },
      seconds, 3);
  auto row = problem.row();
  row["optimizer"] = mpol::to_string(kind);
  row["steps"] = steps;
  row["above"] = (reached - target) / regularizers + 1e-3;
  print(row, times);
}

/// One step of an optimizer, far from its beginning.
void time_step(const Problem& problem, mpol::OptimizerKind kind, double seconds) {
  const auto objective = problem.objective();
  const auto model = mpol::is_proximal(kind) ? problem.empty_model() : problem.soft_model();
  const auto step = mpol::make_step(model, objective, options_of(kind));
  for (int i = 0; i < 30; ++i) step->take(usual_rate);
  auto row = problem.row();
  row["case"] = "iteration";
  row["optimizer"] = mpol::to_string(kind);
  print(row, benchmarks::repeat([&] { step->take(usual_rate); }, seconds));
}

/// Until 1e-3 of the regularizers' value above the optimum.
void time_to_the_optimum(const Problem& problem, double seconds) {
  const auto [least, regularizers] = optimum_of(problem);
  const double target = least + 1e-3 * regularizers;
  for (const auto kind : {mpol::OptimizerKind::pogm, mpol::OptimizerKind::fista, mpol::OptimizerKind::admm})
    time_to(problem, kind, target, regularizers, seconds);
  if (problem.smoothing == mpol::Smoothing::hann) time_to(problem, mpol::OptimizerKind::adam, target, regularizers, seconds);
}

void run(const Settings& settings) {
  if (settings.what != "optimum" && settings.what != "iteration")
    throw mpol::ValueError(fmt::format("group is {}; it must be optimum or iteration", settings.what));
  for (const auto& observation : observations) {
    if (!settings.data.empty() && settings.data != observation.file) continue;
    for (const auto& dtype : settings.dtypes) {
      for (const auto smoothing : {mpol::Smoothing::hann, mpol::Smoothing::none}) {
        for (const auto* likelihood : {"exact", "gridded"}) {
          const Problem problem{observation, likelihood, smoothing, benchmarks::dtype_of(dtype)};
          if (settings.what == "optimum") time_to_the_optimum(problem, settings.seconds);
          if (smoothing == mpol::Smoothing::none) continue;  // Adam's fused step has the Hann convolution
          for (const auto kind : {mpol::OptimizerKind::pogm, mpol::OptimizerKind::adam})
            time_step(problem, kind, settings.seconds);
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) { return benchmarks::run_benchmark("solver_benchmark", argc, argv, run); }
