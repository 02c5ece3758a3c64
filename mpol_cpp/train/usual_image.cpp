#include <mpol_cpp/train/usual_image.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/zeros.h>

#include <mpol_cpp/analysis/length_slope.h>
#include <mpol_cpp/core/log.h>
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
  return progress.loss.epoch + 1 < epochs_of_look ? CallbackAction::proceed : CallbackAction::stop;
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
  FitNoise noise;
  Filled filled(weighs_channels ? signals.size() : 1, usual_filled);
  auto terms = terms_for(noise.factor(), filled);
  const auto filled_of_sky = [&](const Tensor& sky) {
    if (weighs_channels) return filled_to_follow(signals, noise.factor(), sky, cells, filled);
    if (!sky.any().item<bool>()) return filled;
    return Filled{filled_to_follow(peaks, noise.factor(), filled_share(sky, cells, noise.factor()), filled.front())};
  };
  // true where there is something to set anew
  const auto set_weights_of = [&](const Filled& next_filled) {
    filled = next_filled;
    auto next = terms_for(noise.factor(), filled);
    const bool differ = !std::equal(next.begin(), next.end(), terms.begin(), weigh_alike);
    terms = std::move(next);
    return differ;
  };
  bool is_slow = false;
  const auto end_slow_fit = [&](const Progress& progress) {
    if (progress.loss.epoch + 1 != epochs_of_early_look) return CallbackAction::proceed;
    const torch::NoGradGuard no_grad;
    is_slow = set_weights_of(filled_of_sky(progress.model.make_sky()));
    return is_slow ? CallbackAction::stop : CallbackAction::proceed;
  };
  const auto train = [&](bool is_first) {
    auto usual = TrainOptions().optimizer(OptimizerKind::pogm).tolerance(options.tolerance()).epochs(options.most_epochs());
    usual.logs_warnings(false);
    if (looks) usual.callbacks({end_look});
    else if (is_first && !given) usual.callbacks({end_slow_fit}).model_interval(epochs_of_early_look);
    return is_slow ? usual.fewest_epochs(epochs_of_early_look) : usual;
  };
  const auto noise_of = [&](const Objective& objective, double reduced) {
    const auto found =
        measure_fit_noise(model.ptr(), objective, unit, reduced, [&] { return DirtyNoise(coords, visibilities, channels); });
    if (found.factor() <= 1 || !found.is_off()) return found;
    const auto lengths = length_slope(coords, model->make_sky(), visibilities, channels);
    return lengths && lengths->tells_sharp_source() ? found.without_misfit() : found;
  };
  double reduced_of_noise = 0;  // chi^2/(2 N) of the first fit that converged, which shows it
  TrainResult fit;
  for (int fits = 1, looks_done = 0;; ++fits) {
    std::optional<Objective> objective(std::in_place, likelihood, terms);
    fit = Trainer(model, *objective, train(fits == 1)).fit();
    if (is_slow && fits == 1) fit = Trainer(model, objective.emplace(likelihood, terms), train(false)).fit();
    const bool ended = fit.stop_reason == StopReason::converged || fit.stop_reason == StopReason::callback;
    if (given || !ended) break;
    const double reduced = fit.loss.nll() * objective->normalizer() / static_cast<double>(likelihood->visibilities_count());
    if (noise.factor() > 1 && !looks && refutes_noise(reduced, reduced_of_noise)) {
      noise = {};
      set_weights_of(filled);
      fit = Trainer(model, Objective(likelihood, terms), train(false)).fit();
      break;
    }
    const bool tells_noise = reduced_of_noise == 0 && !looks;
    if (weighs_channels ? !looks && !tells_noise : fits == most_usual_fits) break;
    if (tells_noise) {
      const double before = noise.factor();
      noise = noise_to_follow(noise_of(*objective, reduced), noise);
      reduced_of_noise = reduced;
      if (weighs_channels && noise.factor() == before) break;
    } else if (reduced_of_noise == 0) {
      noise = noise_of_look(reduced);
    }
    const torch::NoGradGuard no_grad;
    const bool change = set_weights_of(filled_of_sky(model->make_sky()));
    if (!change && !looks) break;
    looks_done = looks ? looks_done + 1 : 0;  // with a new noise they begin anew
    looks = weighs_channels && (tells_noise || (change && looks_done < most_usual_fits));
  }
  for (const auto& warning : fit.warnings) log_warning(warning);
  const torch::NoGradGuard no_grad;
  return model->make_sky().detach().to(torch::kCPU, torch::kFloat64);
}

}  // namespace mpol
