#include <mpol_cpp/cli/report/findings.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <mpol_cpp/cli/image/noise_choice.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>
#include <mpol_cpp/visibilities/phase_center.h>
#include <mpol_cpp/core/format.h>

namespace mpol::cli {
namespace {

constexpr double clear_peak = 6;  // of noise: the largest of a million Gaussian numbers is 5
constexpr std::int64_t fewest_residuals = 100;

/// How far the noise is from what the weights promise, where that makes it larger.
double excess(const FitFacts& facts) { return std::max(1.0, facts.residuals.sigma_factor); }

/// @param east, north  from the image's middle
std::string place_words(const FitFacts& facts, double east, double north) {
  return offset_text({facts.center.east + east, facts.center.north + north}) + " of the phase centre";
}

std::string npix_words(const FitFacts& facts, double width) {
  return fmt::format("--npix {}", pixels_for(width, facts.cell_size));
}

/// Whether all residuals hold something that the image cannot: flux outside of the field, a negative source, a sharp one. Then
/// nothing else is concluded from them.
bool residuals_are_explained(const FitFacts& facts) {
  return flux_outside(facts) || negative_source(facts) || channels_differ(facts) || too_sharp_source(facts) ||
         sharper_than_pixels(facts);
}

/// Half as wide cells.
std::string finer_words(const FitFacts& facts) {
  return fmt::format("--cell-size {:.3g} --npix {}", facts.cell_size / 2, 2 * facts.npix);
}

bool residuals_stand_out(const FitFacts& facts) {
  return facts.shared_noise > 1 || facts.residuals.sigma_factor > largest_sigma || facts.residual_peak > clear_peak;
}

/// Whether data exceed the model towards long baselines, and not for one sharp place of the image alone, at which or beside
/// which the residual would be brightest.
bool pixels_blur_all(const FitFacts& facts) {
  constexpr double main_part = 0.7, beside = 3;  // cells
  if (!facts.lengths || !facts.lengths->tells_sharp_source()) return false;
  const double apart = std::hypot(facts.sharp_east - facts.residual_east, facts.sharp_north - facts.residual_north);
  return facts.sharp_residual < main_part * facts.residual_peak && apart > beside * facts.cell_size;
}

/// How far the noise is from what the weights say, either way, as far as residuals tell.
double noise_of_data(const FitFacts& facts) {
  const bool tells = !facts.of_cells && facts.residuals.samples >= fewest_residuals && facts.residuals.sigma_factor > 0;
  return tells ? facts.residuals.sigma_factor : 1;
}

}  // namespace

std::optional<Finding> nothing_stands_out(const FitFacts& facts) {
  constexpr double clear = 5;
  const double noise = noise_of_data(facts), peak = facts.data.on_any_scale / noise;
  if (!facts.settled || !(peak > 0) || peak >= clear || flux_outside(facts)) return std::nullopt;
  return Finding{
      fmt::format("no source stands out of the noise: the dirty image reaches {:.1f} times its noise on any scale, as noise "
                  "alone does, so that this image shows noise",
                  peak),
      fmt::format("a point of {:.2g} Jy, five times the noise, would have been seen", clear * noise * facts.dirty_noise)};
}

std::optional<Finding> negative_source(const FitFacts& facts) {
  const double least = facts.may_be_negative ? 0.5 : 1, depth = facts.data.darkest / excess(facts);
  // Dark rings about what short baselines would see are no negative source: an image without one leaves nothing of them.
  if (facts.sign == PixelSign::either || !facts.settled || !(depth > clear_peak) || !residuals_stand_out(facts) ||
      facts.data.darkest < least * facts.data.brightest || flux_outside(facts))
    return std::nullopt;
  return Finding{
      fmt::format("the data go below zero: the dirty image reaches -{:.1f} times its noise, and {:.1f} above zero, while "
                  "no pixel of this image is negative",
                  facts.data.darkest, facts.data.brightest),
      "--sign either fits pixels of both signs: absorption, polarised brightness, differences"};
}

std::optional<Finding> channels_differ(const FitFacts& facts) {
  constexpr double clear = 5, least_share = 0.2;
  const auto& slope = facts.slope;
  if (!facts.settled || !slope || !(std::abs(slope->index) > clear * slope->error * excess(facts))) return std::nullopt;
  if (!residuals_stand_out(facts) || flux_outside(facts) || negative_source(facts)) return std::nullopt;
  // Whatever an image misses shows a little of a slope: what counts is how much of it a slope would take away.
  const double explained = std::pow(slope->index / slope->error, 2);
  const double too_much =
      2 * static_cast<double>(facts.residuals.samples) * (std::pow(facts.residuals.standard_deviation, 2) - 1);
  if (explained < least_share * too_much) return std::nullopt;
  constexpr double hz_of_ghz = 1e9;
  const double ratio = std::pow(slope->highest / slope->lowest, std::abs(slope->index));
  const auto change = ratio < 2 ? fmt::format("{:.2g} %", 100 * (ratio - 1)) : fmt::format("a factor of {:.2g}", ratio);
  return Finding{
      fmt::format("the brightness goes as frequency^{:.2f}, +- {:.2g}: by {} between {:.5g} and {:.5g} GHz, which one "
                  "image of all of them cannot show",
                  slope->index, slope->error * excess(facts), change, slope->lowest / hz_of_ghz, slope->highest / hz_of_ghz),
      fmt::format("--fit-blocks amplitude{} takes it out of the data, and tells how bright each is",
                  facts.slope_of_channels ? " --blocks channel" : "")};
}

std::optional<Finding> too_sharp_source(const FitFacts& facts) {
  if (channels_differ(facts)) return std::nullopt;  // which is in all residuals
  if (!facts.settled || !(facts.sharp_residual / excess(facts) > clear_peak) || pixels_blur_all(facts)) return std::nullopt;
  return Finding{fmt::format("the source {} is sharper than this image can be: {:.1f} sigma of it are left in the residual",
                             place_words(facts, facts.sharp_east, facts.sharp_north), facts.sharp_residual),
                 "--points auto fits it beside the image, at its own place between pixels" +
                     (facts.lengths && facts.lengths->tells_sharp_source()
                          ? fmt::format("; if it is no point, {} follows it further", finer_words(facts))
                          : std::string())};
}

std::optional<Finding> sharper_than_pixels(const FitFacts& facts) {
  const auto& lengths = facts.lengths;
  if (!facts.settled || !pixels_blur_all(facts) || !residuals_stand_out(facts)) return std::nullopt;
  if (flux_outside(facts) || negative_source(facts) || channels_differ(facts)) return std::nullopt;
  return Finding{
      fmt::format(
          "the source is sharper than pixels of {:.3g}\" show: the longest baselines see {:.2g} % more than the image, and "
          "chi^2/(2N) is {:.2f}{}",
          facts.cell_size, 100 * lengths->slope, lengths->chi_squared / lengths->samples,
          facts.shared_noise == 1 ? "; LAMBDA were not set for that" : ""),
      finer_words(facts) + " follows it further" +
          (facts.sharp_residual / excess(facts) > clear_peak
               ? fmt::format("; if it is a point, as {} may be, --points auto fits it beside the image",
                             place_words(facts, facts.sharp_east, facts.sharp_north))
               : std::string())};
}

std::optional<Finding> wrong_weights(const FitFacts& facts) {
  const double sigma = facts.residuals.sigma_factor, factor = sigma * sigma;
  if (!facts.settled || facts.of_cells || facts.residuals.samples < fewest_residuals) return std::nullopt;
  if (unequal_weights(facts)) return std::nullopt;  // which tells more
  if (sigma > largest_sigma && !facts.weights_were_doubted && !residuals_are_explained(facts)) {
    return Finding{fmt::format("the residuals scatter {:.2f} times more than the weights say, so that these look too large by a "
                               "factor of {:.2f}",
                               sigma, factor),
                   "mpol weights --apply one corrects them, unless it is the image that does not fit"};
  }
  const bool outliers_decide = has_heavy_tails(facts.residuals) && facts.residuals.standard_deviation > least_sigma;
  if (sigma < least_sigma && !outliers_decide) {
    return Finding{
        fmt::format("the residuals scatter only {:.2f} times what the weights say, so that these look too small by a factor "
                    "of {:.2f}",
                    sigma, 1 / factor),
        "mpol weights --apply one corrects them, unless the image follows the noise (larger LAMBDA tell)"};
  }
  return std::nullopt;
}

std::optional<Finding> unequal_weights(const FitFacts& facts) {
  constexpr std::size_t most_named = 4;
  if (!facts.settled || facts.of_cells || residuals_are_explained(facts)) return std::nullopt;
  std::vector<PartResiduals> parts;
  for (const auto& part : facts.parts)
    if (part.statistics.samples >= fewest_residuals) parts.push_back(part);
  const auto sigma = [](const PartResiduals& part) { return part.statistics.sigma_factor; };
  const auto [least, most] = std::minmax_element(
      parts.begin(), parts.end(), [&](const PartResiduals& a, const PartResiduals& b) { return sigma(a) < sigma(b); });
  if (parts.size() < 2 || !(sigma(*most) > largest_sigma * sigma(*least))) return std::nullopt;
  std::erase_if(parts, [&](const PartResiduals& part) { return sigma(part) >= least_sigma && sigma(part) <= largest_sigma; });
  if (parts.empty()) return std::nullopt;
  std::sort(parts.begin(), parts.end(), [&](const PartResiduals& a, const PartResiduals& b) {
    return std::abs(std::log(sigma(a))) > std::abs(std::log(sigma(b)));
  });
  std::vector<std::string> words;
  for (std::size_t i = 0; i < std::min(parts.size(), most_named); ++i) {
    const double factor = sigma(parts[i]) * sigma(parts[i]);
    words.push_back(fmt::format("those of {} too {} by a factor of {:.2f}", parts[i].name, factor > 1 ? "large" : "small",
                                std::max(factor, 1 / factor)));
  }
  if (parts.size() > most_named) words.push_back(fmt::format("{} more as the report says", parts.size() - most_named));
  return Finding{fmt::format("the residuals say that weights are wrong, and not all alike: {}", fmt::join(words, ", ")),
                 "--fit-blocks weight gives each part a factor of its own"};
}

std::optional<Finding> heavy_tails(const FitFacts& facts) {
  if (!facts.settled || facts.of_cells || facts.noise != NoiseModel::Kind::gaussian || !has_heavy_tails(facts.residuals))
    return std::nullopt;
  if (residuals_are_explained(facts)) return std::nullopt;
  return Finding{
      fmt::format("{:.2g} % of the residuals lie beyond four sigma, of which Gaussian noise has 0.006 %, so that their median "
                  "({:.2f} of what the weights say) and mean square ({:.2f}) disagree",
                  100 * facts.residuals.beyond_four, facts.residuals.sigma_factor, facts.residuals.standard_deviation),
      "--noise student --likelihood loose makes little of such outliers; or flag them"};
}

std::optional<Finding> shared_errors(const FitFacts& facts) {
  if (!facts.settled || !(facts.shared_noise > 1) || residuals_are_explained(facts)) return std::nullopt;
  return Finding{
      fmt::format("the residual image scatters {:.2f} times more than errors of single visibilities explain; LAMBDA that "
                  "nobody gave are set for that",
                  facts.shared_noise),
      "neighbours share errors (calibration, phases, averaging), or show what an image cannot: self-calibrate, or try "
      "--fit-blocks"};
}

std::optional<Finding> structure_left(const FitFacts& facts) {
  const double peak = facts.residual_peak / excess(facts);
  if (!facts.settled || !(peak > clear_peak) || residuals_are_explained(facts) || shared_errors(facts)) return std::nullopt;
  const auto channel = facts.channels > 1 ? fmt::format(" of channel {}", facts.residual_channel) : std::string();
  return Finding{fmt::format("the residual image{} still holds {:.1f} sigma, {}", channel, peak,
                             place_words(facts, facts.residual_east, facts.residual_north)),
                 fmt::format("smaller LAMBDA ({}) leave less, unless it comes from calibration errors or from outside the field",
                             facts.cross_validated ? "than cross-validation took" : "mpol crossval chooses them")};
}

std::optional<Finding> dimmed_by_antennas(const FitFacts& facts) {
  constexpr double limit = 0.95;
  const auto& beam = facts.primary_beam;
  if (!facts.settled || !beam || beam->at_flux >= limit || nothing_stands_out(facts)) return std::nullopt;
  return Finding{
      fmt::format("the antennas see this source at {:.0f} % of its brightness, as it is off the middle of their primary "
                  "beam, {:.3g}\" wide at half power ({})",
                  100 * beam->at_flux, beam->fwhm, beam->antennas),
      "mpol pbcor of image.fits and error maps takes that out, for antennas that pointed at the phase centre"};
}

std::optional<Finding> sky_not_flat(const FitFacts& facts) {
  constexpr double limit = 0.05;
  if (!facts.settled || facts.flux_beyond_flat <= limit || nothing_stands_out(facts)) return std::nullopt;
  return Finding{
      fmt::format("{:.0f} % of the flux is more than {:.3g}\" from the phase centre, where w terms, which are not corrected, may "
                  "turn phases of the longest baselines by more than a radian: sources there may be blurred or shifted",
                  100 * facts.flux_beyond_flat, facts.flat_radius),
      "shift the data's phase centre to the source (phaseshift of CASA), or image what is nearer"};
}

std::optional<Finding> touches_edge(const FitFacts& facts) {
  constexpr double limit = 0.05, clear = 3;  // times what the noise makes of a fringe
  const double in_fringe = facts.edge_peak * std::pow(facts.finest_fringe, 2);
  if (!facts.settled || !(facts.peak > 0) || facts.edge_peak <= limit * facts.peak || nothing_stands_out(facts))
    return std::nullopt;
  if (in_fringe <= clear * facts.dirty_noise * excess(facts)) return std::nullopt;
  const double width = facts.cell_size * static_cast<double>(facts.npix);
  return Finding{fmt::format("the image has {:.0f} % of its peak at the edge of the field of {:.3g}\"",
                             100 * facts.edge_peak / facts.peak, width),
                 fmt::format("a larger field, {}, holds it", npix_words(facts, 1.5 * width))};
}

std::optional<Finding> flux_outside(const FitFacts& facts) {
  const double noise = facts.wide_noise, peak = std::abs(facts.outside.value);  // a source out there is in all residuals
  if (!facts.settled || !(noise > 0) || peak <= clear_peak * noise || peak < std::abs(facts.inside.value)) return std::nullopt;
  const double reach = std::max(std::abs(facts.outside.east), std::abs(facts.outside.north));
  return Finding{fmt::format("there is flux outside of the field, {:.1f} sigma, {}", peak / noise,
                             place_words(facts, facts.outside.east, facts.outside.north)),
                 fmt::format("{} holds it, or subtract it", npix_words(facts, 2.2 * reach))};
}

std::optional<Finding> haze(const FitFacts& facts) {
  constexpr double limit = 0.15;
  if (!facts.settled || !(facts.flux_of_floor > 0) || facts.floor_flux <= limit * facts.flux_of_floor) return std::nullopt;
  if (nothing_stands_out(facts)) return std::nullopt;
  return Finding{fmt::format("a haze of {:.2g} Jy/arcsec^2 over the whole field has {:.0f} % of the flux, {:.2g} Jy", facts.floor,
                             100 * facts.floor_flux / facts.flux_of_floor, facts.floor_flux),
                 "no baseline measures it: take the flux from the source alone (mpol profile), or a larger --sparsity"};
}

std::optional<Finding> flux_below_error(const FitFacts& facts) {
  constexpr double limit = 0.25;
  if (!facts.settled || !(facts.share_below_error > limit) || nothing_stands_out(facts)) return std::nullopt;
  return Finding{
      fmt::format("{:.0f} % of the image's flux lies where it is below its own error: noise may have made it, or hidden more",
                  100 * facts.share_below_error),
      "believe what exceeds error.fits (errors.png), and of the flux no more than its error says"};
}

std::optional<Finding> coarse_cells(const FitFacts& facts) {
  constexpr double fewest = 2.5;
  if (!(facts.finest_fringe > 0) || facts.finest_fringe >= fewest * facts.cell_size) return std::nullopt;
  return Finding{fmt::format("cells of {:.3g}\" are only {:.1f} across the finest fringe of {:.3g}\"", facts.cell_size,
                             facts.finest_fringe / facts.cell_size, facts.finest_fringe),
                 "--cell-size auto takes five"};
}

std::optional<Finding> flux_not_measured(const FitFacts& facts) {
  constexpr double limit = 0.75;
  if (!facts.settled || !(facts.flux_seen < limit) || nothing_stands_out(facts)) return std::nullopt;
  return Finding{fmt::format("baselines, the shortest of about {:.3g} lambda, see only {:.0f} % of the image's flux",
                             facts.shortest, 100 * facts.flux_seen),
                 "the rest follows from the priors: shorter baselines would measure it"};
}

std::vector<Finding> findings(const FitFacts& facts) {
  std::vector<Finding> all;
  for (const auto rule :
       {nothing_stands_out, flux_outside, negative_source, channels_differ, too_sharp_source, sharper_than_pixels, touches_edge,
        shared_errors, structure_left, unequal_weights, wrong_weights, heavy_tails, flux_not_measured, flux_below_error, haze,
        dimmed_by_antennas, sky_not_flat, coarse_cells}) {
    if (auto finding = rule(facts)) all.push_back(std::move(*finding));
  }
  return all;
}

}  // namespace mpol::cli
