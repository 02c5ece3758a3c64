#include <mpol_cpp/train/usual_image.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/zeros.h>

#include <mpol_cpp/gridding/auto_start.h>
#include <mpol_cpp/gridding/data_averager.h>
#include <mpol_cpp/gridding/peak_signal.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/models/gridded_net.h>
#include <mpol_cpp/objective/noise_unit.h>
#include <mpol_cpp/objective/objective.h>
#include <mpol_cpp/objective/usual_units.h>
#include <mpol_cpp/train/trainer.h>
#include <mpol_cpp/uncertainty/fit_noise.h>

namespace mpol {
namespace {

using Filled = std::vector<double>;  // shares of the field, of each channel or of all

}  // namespace

CallbackAction end_look(const Progress& progress) {
  constexpr std::int64_t epochs_of_looks = 32;
  return progress.loss.epoch + 1 < epochs_of_looks ? CallbackAction::proceed : CallbackAction::stop;
}

Tensor usual_image(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                   const UsualImageOptions& options) {
  const auto likelihood = ExactLikelihood(coords, visibilities, channels).ptr();
  const auto cells =
      DataAverager(coords, visibilities, DataAveragerOptions().channel_map(channels).scatter_check(ScatterCheck::off))
          .to_dataset();
  const bool either_sign = options.sign().value_or(natural_sign(visibilities.observation().stokes)) == PixelSign::either;
  const auto peaks = either_sign ? dirty_peaks(cells).of_either_sign() : dirty_peaks(cells);
  const auto unit = noise_unit(coords, visibilities, channels.nchan(), likelihood->normalizer());
  const bool given = options.sparsity() && options.tv() && options.tv_slope();
  const bool weighs_channels = channels.nchan() > 1 && !given;
  const auto signals = weighs_channels ? channel_signals(cells, visibilities, channels, likelihood->normalizer(), either_sign)
                                       : std::vector<ChannelSignal>{};
  const auto term_for = [&](const Term& term, const std::optional<double>& units, double noise, const Filled& filled) {
    if (units) return term.with_weights({unit.slope * *units});
    if (weighs_channels) return with_usual_weights(term, signals, noise, filled);
    return term.with_weights({unit.slope * usual_units(regularizer_of(term.kind()), peaks.brightest, noise, filled.front())});
  };
  const auto terms_for = [&](double noise, const Filled& filled) {
    return std::vector{term_for(terms::sparsity(0), options.sparsity(), noise, filled),
                       term_for(terms::tv_image(0), options.tv(), noise, filled),
                       term_for(terms::tv_slope(0), options.tv_slope(), noise, filled)};
  };
  const auto start =
      either_sign ? at::zeros({channels.nchan(), coords.npix(), coords.npix()}, torch::kFloat64) : auto_start(cells);
  const auto mapping = either_sign ? either_sign_mapping() : nonnegative_mapping();
  GriddedNet model(GriddedNetOptions(coords).base_cube(start).dtype(options.dtype()).pixel_mapping(mapping));
  // All channels of a cube wait for the slowest: the fits that only show what weights should be need not converge.
  bool looks = weighs_channels;
  const auto train = [&] {
    const auto usual = TrainOptions().optimizer(OptimizerKind::pogm).tolerance(options.tolerance()).epochs(options.most_epochs());
    return looks ? TrainOptions(usual).callbacks({end_look}) : usual;
  };
  double noise_factor = 1;
  Filled filled(weighs_channels ? signals.size() : 1, usual_filled);
  auto terms = terms_for(noise_factor, filled);
  for (int fits = 1;; ++fits) {
    const Objective objective(likelihood, terms);
    const auto fit = Trainer(model, objective, train()).fit();
    const bool ended = fit.stop_reason == StopReason::converged || fit.stop_reason == StopReason::callback;
    if (given || !ended || (weighs_channels ? !looks : fits == most_usual_fits)) break;
    if (fits == 1 || looks) {
      const double reduced = fit.loss.nll() * objective.normalizer() / static_cast<double>(likelihood->visibilities_count());
      const auto draws = [&] { return DirtyNoise(coords, visibilities, channels); };
      const auto noise = measure_fit_noise(model.ptr(), objective, unit, reduced, draws);
      noise_factor = noise.is_off() ? noise.factor() : 1;
    }
    const torch::NoGradGuard no_grad;
    const auto sky = model->make_sky();
    if (weighs_channels) filled = filled_to_follow(signals, noise_factor, sky, cells, filled);
    else if (sky.any().item<bool>())
      filled = {filled_to_follow(peaks, noise_factor, filled_share(sky, cells, noise_factor), filled.front())};
    auto next = terms_for(noise_factor, filled);
    const bool stay_the_same = std::equal(next.begin(), next.end(), terms.begin(), weigh_alike);
    if (stay_the_same && !looks) break;
    looks = looks && !stay_the_same && fits < most_usual_fits;
    terms = std::move(next);
  }
  const torch::NoGradGuard no_grad;
  return model->make_sky().detach().to(torch::kCPU, torch::kFloat64);
}

}  // namespace mpol
