#include <mpol_cpp/components/point_fit.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

#include <ATen/ops/tensor.h>

#include <mpol_cpp/calibration/saved_rounds.h>
#include <mpol_cpp/components/point_likelihood.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/gridding/dirty_imager.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/uncertainty/sharp_source.h>

namespace mpol {
namespace {

constexpr double largest_shift = 1;      // of a round, in units of PointLikelihood::shift_unit()
constexpr double pixels_of_spot = 9;     // of the sharpest that an image shows
constexpr std::size_t most_refused = 4;  // places, after which no more are tried
constexpr double known_around = 3;       // pixels about a source, or a place that turned out to be no point's
constexpr double clear_flux = 5;         // errors: a source that is fainter stays where it is

/// The mean of the pixels that lie three away from a source's along rows or columns, Jy/arcsec^2: just beyond the Hann kernel.
double brightness_around(const Tensor& image, const PointComponent& source, const GridCoords& coords) {
  constexpr std::int64_t distance = 3;
  const auto npix = coords.npix();
  const auto row = npix / 2 + std::llround(source.north / coords.cell_size()),
             column = npix / 2 - 1 - std::llround(source.east / coords.cell_size());
  const auto pixels = image.accessor<double, 2>();
  double sum = 0;
  int count = 0;
  for (auto y = row - distance; y <= row + distance; ++y) {
    for (auto x = column - distance; x <= column + distance; ++x) {
      if (std::max(std::abs(y - row), std::abs(x - column)) != distance) continue;
      ++count;
      if (y >= 0 && y < npix && x >= 0 && x < npix) sum += std::abs(pixels[y][x]);
    }
  }
  return sum / count;
}

/// Gives chi^2 of what is left of data, over all channels.
double chi_squared_of(const Visibilities& residual) {
  double sum = 0;
  for (std::int64_t channel = 0; channel < residual.nchan(); ++channel)
    sum += (residual.weights()[channel] * residual.data()[channel].abs().square()).sum(torch::kFloat64).item<double>();
  return sum;
}

/// The rounds, and what is kept of them.
class PointRounds {
 public:
  PointRounds(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
              std::vector<PointComponent> start, PointImager& imager, const PointFitOptions& options)
      : coords_(coords), visibilities_(visibilities), channels_(channels), imager_(imager), options_(options) {
    found_.sources = std::move(start);
    for (auto& source : found_.sources) source.flux.resize(static_cast<std::size_t>(channels.nchan()), 0.0);
  }

  PointFit run() {
    load();
    take_rounds(found_, options_.rounds(), [this] { return take_round(); });
    return std::move(found_);
  }

 private:
  /// @return whether the round came to its end
  bool take_round() {
    const auto rest = without_points(visibilities_, channels_, found_.sources, options_.room());
    std::shared_ptr<PointLikelihoodImpl> beside;
    const auto sky = imager_.image_of(rest, [&](std::shared_ptr<Likelihood> image) -> std::shared_ptr<Likelihood> {
      if (found_.sources.empty()) return image;
      const auto device =
          image->as_module().buffers().empty() ? torch::Device(torch::kCPU) : image->as_module().buffers().front().device();
      beside = std::make_shared<PointLikelihoodImpl>(std::move(image), rest, channels_, found_.sources);
      beside->to(device);
      return beside;
    });
    if (!sky.defined()) return false;
    ++found_.rounds;
    found_.change = beside ? move(*beside, sky) : 0;
    const bool stands = found_.change <= options_.tolerance();
    const bool has_found = stands && options_.searches() && search(sky);
    found_.converged = stands && !has_found && !has_refused_;
    has_refused_ = false;
    save();
    if (options_.on_round()) options_.on_round()({found_.rounds, found_.sources, found_.change, has_found});
    return true;
  }

  /// The sources take what the image leaves them. @return the largest change, in its error
  double move(const PointLikelihoodImpl& likelihood, const Tensor& sky) {
    const auto amplitudes = likelihood.amplitudes(sky), covariance = likelihood.covariance();
    const double unit = likelihood.shift_unit();
    double most = 0;
    for (std::size_t s = 0; s < found_.sources.size(); ++s) {
      auto& source = found_.sources[s];
      source.flux_error.assign(source.flux.size(), 0.0);
      double along_east = 0, along_north = 0, known = 0, clear = 0;
      for (std::size_t c = 0; c < source.flux.size(); ++c) {
        const auto channel = static_cast<std::int64_t>(c), first = static_cast<std::int64_t>(s) * PointLikelihoodImpl::unknowns;
        const auto own = amplitudes[channel][static_cast<std::int64_t>(s)];
        const auto variance = [&](std::int64_t j) { return covariance[channel][first + j][first + j].item<double>(); };
        const double change = own[0].item<double>(), error = std::sqrt(variance(0));
        const double shared = brightness_around(sky[channel], source, coords_) * pixels_of_spot * coords_.cell_area();
        source.flux[c] += change;
        source.flux_error[c] = std::hypot(error, shared);
        most = std::max(most, std::abs(change) / error);
        const double flux = source.flux[c], of_shift = (variance(1) + variance(2)) / 2 + shared * shared;
        along_east += flux * own[1].item<double>() / of_shift;
        along_north += flux * own[2].item<double>() / of_shift;
        known += flux * flux / of_shift;
        clear = std::max(clear, std::abs(flux) / error);
      }
      if (!(clear > clear_flux)) continue;
      source.place_error = unit / std::sqrt(known);
      const auto shift = [&](double along) { return std::clamp(along / known, -largest_shift, largest_shift) * unit; };
      const double east = shift(along_east), north = shift(along_north);
      source.east += east;
      source.north += north;
      most = std::max(most, std::hypot(east, north) / source.place_error);
    }
    return most;
  }

  /// Keeps the last source that was found only where chi^2 has fallen by it as it should, and looks for the next.
  /// @return whether there is one more source now
  bool search(const Tensor& sky) {
    const auto residual = losses::residual_visibilities(
        coords_, sky, without_points(visibilities_, channels_, found_.sources, options_.room()), channels_);
    const double chi_squared = chi_squared_of(residual);
    const double excess = std::max(1.0, chi_squared / (2 * static_cast<double>(visibilities_.nchan() * visibilities_.nvis())));
    if (is_on_trial_ && !(chi_squared_before_ - chi_squared > options_.clear_peak() * options_.clear_peak() * excess)) {
      refused_.push_back(found_.sources.back());
      found_.sources.pop_back();
      is_on_trial_ = false;
      has_refused_ = true;
      return false;
    }
    is_on_trial_ = false;
    chi_squared_before_ = chi_squared;
    if (static_cast<std::int64_t>(found_.sources.size()) >= options_.most_sources() || refused_.size() >= most_refused)
      return false;
    const auto source = next_source(sky, residual);
    if (!source) return false;
    found_.sources.push_back(*source);
    return is_on_trial_ = true;
  }

  /// Whether a source is there already, or was refused.
  bool is_known(const PointComponent& source) const {
    const auto is_near = [&](const PointComponent& other) {
      return std::hypot(source.east - other.east, source.north - other.north) <= known_around * coords_.cell_size();
    };
    return std::ranges::any_of(found_.sources, is_near) || std::ranges::any_of(refused_, is_near);
  }

  /// What the image cannot follow, where it is as sharp as it can be.
  /// @param left  data less image and sources
  std::optional<PointComponent> next_source(const Tensor& sky, const Visibilities& left) const {
    const DirtyImager imager(coords_, left, DirtyImagerOptions().channel_map(channels_).weighting(Weighting::briggs).robust(0.5));
    const auto residual = imager.image() / imager.noise().view({-1, 1, 1});
    const auto sky_x = coords_.sky_x(), sky_y = coords_.sky_y();
    const auto source_at = [&](const MissedForSharpness& place) {
      return PointComponent{.east = sky_x[place.row][place.column].item<double>(),
                            .north = sky_y[place.row][place.column].item<double>(),
                            .flux = std::vector<double>(static_cast<std::size_t>(channels_.nchan()), 0.0)};
    };
    const auto passed_over = [&](const MissedForSharpness& place) { return is_known(source_at(place)); };
    auto missed = missed_for_sharpness(residual, sky, options_.clear_peak(), passed_over);
    if (sky.min().item<double>() < 0) {  // pixels of either sign
      const double least = missed ? missed->residual : options_.clear_peak();
      if (const auto negative = missed_for_sharpness(-residual, -sky, least, passed_over)) missed = negative;
    }
    return missed ? std::optional(source_at(*missed)) : std::nullopt;
  }

  void save() const {
    if (options_.state().empty()) return;
    std::vector<double> numbers;
    for (const auto& source : found_.sources) {
      numbers.insert(numbers.end(), {source.east, source.north, source.place_error});
      numbers.insert(numbers.end(), source.flux.begin(), source.flux.end());
      auto errors = source.flux_error;
      errors.resize(source.flux.size(), 0.0);
      numbers.insert(numbers.end(), errors.begin(), errors.end());
    }
    const std::vector<double> progress = {static_cast<double>(found_.rounds), found_.change, found_.converged ? 1.0 : 0.0,
                                          is_on_trial_ ? 1.0 : 0.0, chi_squared_before_};
    std::vector<double> refused;
    for (const auto& source : refused_) refused.insert(refused.end(), {source.east, source.north});
    NamedTensors tensors = {{"progress", at::tensor(progress, torch::kFloat64)}};
    if (!numbers.empty()) tensors["sources"] = at::tensor(numbers, torch::kFloat64);
    if (!refused.empty()) tensors["refused"] = at::tensor(refused, torch::kFloat64);
    write_rounds(options_.state(), {tensors, imager_.state()}, options_.fingerprint());
  }

  void load() {
    if (options_.state().empty()) return;
    const auto saved = read_rounds(options_.state(), options_.fingerprint());
    if (!saved) return;
    const auto numbers_of = [&](const char* name) {
      const auto found = saved->tensors.find(name);
      if (found == saved->tensors.end()) return std::vector<double>();
      const auto own = found->second.to(torch::kFloat64).contiguous();
      return std::vector<double>(own.const_data_ptr<double>(), own.const_data_ptr<double>() + own.numel());
    };
    const auto nchan = static_cast<std::size_t>(channels_.nchan()), of_source = 3 + 2 * nchan;
    const auto progress = numbers_of("progress"), numbers = numbers_of("sources"), refused = numbers_of("refused");
    if (progress.size() != 5 || refused.size() % 2 != 0 || numbers.size() % of_source != 0)
      throw FileError(fmt::format("{} does not fit these sources", options_.state().string()));
    found_.sources.clear();
    for (auto at = numbers.begin(); at != numbers.end(); at += static_cast<std::ptrdiff_t>(of_source)) {
      const auto fluxes = at + 3, errors = fluxes + static_cast<std::ptrdiff_t>(nchan);
      found_.sources.push_back({at[0], at[1], {fluxes, errors}, at[2], {errors, errors + static_cast<std::ptrdiff_t>(nchan)}});
    }
    found_.rounds = static_cast<std::int64_t>(progress[0]);
    found_.change = progress[1];
    found_.converged = progress[2] != 0;
    is_on_trial_ = progress[3] != 0;
    chi_squared_before_ = progress[4];
    refused_.clear();
    for (std::size_t i = 0; i < refused.size(); i += 2)
      refused_.push_back({.east = refused[i], .north = refused[i + 1], .flux = {}});
    imager_.load_state(saved->of_imager);
  }

  const GridCoords& coords_;
  const Visibilities& visibilities_;
  const ChannelMap& channels_;
  PointImager& imager_;
  const PointFitOptions& options_;
  PointFit found_;
  bool is_on_trial_ = false, has_refused_ = false;  // the last source; of this round
  double chi_squared_before_ = 0;                   // of the data beside the sources but that one
  std::vector<PointComponent> refused_;
};

}  // namespace

PointFit fit_points(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                    std::vector<PointComponent> start, PointImager& imager, const PointFitOptions& options) {
  if (options.rounds() < 1) throw ValueError(fmt::format("rounds is {}; it must be at least 1", options.rounds()));
  if (!(options.tolerance() > 0)) throw ValueError(fmt::format("tolerance is {}; it must be > 0", options.tolerance()));
  if (!(options.clear_peak() > 0)) throw ValueError(fmt::format("clear_peak is {}; it must be > 0", options.clear_peak()));
  if (start.empty() && !options.searches())
    throw ValueError("no point source is given, and none is looked for: give a place, or set searches(true)");
  return PointRounds(coords, visibilities, channels, std::move(start), imager, options).run();
}

}  // namespace mpol
