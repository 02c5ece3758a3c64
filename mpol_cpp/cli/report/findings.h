#pragma once

#include <optional>
#include <string>
#include <vector>

#include <mpol_cpp/cli/report/fit_facts.h>

namespace mpol::cli {

/// Something about a fit that its user should know, and what to do about it.
struct Finding {
  std::string what, remedy;
  std::string text() const { return what + ": " + remedy; }
};

// Each rule looks at the facts of one doubt; nothing where there is none.

/// Nothing in the data exceeds five times the noise, on any scale.
std::optional<Finding> nothing_stands_out(const FitFacts& facts);
/// The dirty image goes further below zero than above, or half as far where brightness is polarised: no image here is negative.
std::optional<Finding> negative_source(const FitFacts& facts);
/// The residual is brightest where the image has a source that is as sharp as it can be.
std::optional<Finding> too_sharp_source(const FitFacts& facts);
/// The data exceed the model the more the longer their baselines are (LengthSlope), and the residuals show it: pixels are too
/// coarse for the source.
std::optional<Finding> sharper_than_pixels(const FitFacts& facts);
/// One image shows channels whose brightness goes with frequency so far that the residuals show it, and a fifth at least of what
/// is too much in their chi^2 comes from that.
std::optional<Finding> channels_differ(const FitFacts& facts);
/// The residuals scatter more than 1.15 or less than 0.87 times what the weights say; not less where outliers make up for it.
std::optional<Finding> wrong_weights(const FitFacts& facts);
/// Gaussian noise was taken, and more of the residuals are wild than it has.
std::optional<Finding> heavy_tails(const FitFacts& facts);
/// The residual image scatters more than the sizes of its samples' errors explain.
std::optional<Finding> shared_errors(const FitFacts& facts);
/// The residual image exceeds six times its noise, that of the residuals themselves where these scatter more than their weights
/// say; not where shared errors explain it.
std::optional<Finding> structure_left(const FitFacts& facts);
/// The primary beam dims the image's flux by 5 % or more.
std::optional<Finding> dimmed_by_antennas(const FitFacts& facts);
/// A twentieth of the flux is so far from the phase centre that w terms may turn its phases by a radian.
std::optional<Finding> sky_not_flat(const FitFacts& facts);
/// The image has a twentieth of its peak at an edge of the field.
std::optional<Finding> touches_edge(const FitFacts& facts);
/// The residual has its brightest place, of more than six times the noise, outside of the field.
std::optional<Finding> flux_outside(const FitFacts& facts);
/// A quarter of the flux lies where the image is no larger than its error.
std::optional<Finding> flux_below_error(const FitFacts& facts);
/// A level over the whole field has more than 15 % of the flux.
std::optional<Finding> haze(const FitFacts& facts);
/// Fewer than two and a half pixels across the finest fringe.
std::optional<Finding> coarse_cells(const FitFacts& facts);
/// No ring of baselines sees three quarters of the flux.
std::optional<Finding> flux_not_measured(const FitFacts& facts);

/// The residuals of spectral windows or files scatter unlike each other beside what their weights say, and one unlike these.
std::optional<Finding> unequal_weights(const FitFacts& facts);

/// All that there is to say, what weighs most first.
std::vector<Finding> findings(const FitFacts& facts);

}  // namespace mpol::cli
