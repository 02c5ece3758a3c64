#include <mpol_cpp/objective/guess_weights.h>

#include <cmath>
#include <optional>
#include <string>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/two_digits.h>
#include <mpol_cpp/gridding/dirty_imager.h>

namespace mpol {
namespace {

double value_at(const Term& term, const GridCoords& coords, const Tensor& image) {
  const torch::NoGradGuard no_gradient;
  const auto least = term.kind() == TermKind::custom ? std::nullopt : regularizer_of(term.kind()).least_pixel;
  const auto sky = least ? image.clamp_min(*least) : image;
  return term.evaluate(ModelOutput(coords, sky, sky)).sum().item<double>();
}

}  // namespace

double guess_weight(const Term& term, const GridCoords& coords, const Tensor& sharper, const Tensor& smoother) {
  const double weight = 1 / std::abs(value_at(term, coords, sharper) - value_at(term, coords, smoother));
  if (std::isfinite(weight)) return weight;
  throw DataError(fmt::format("no weight of {} can be guessed: the two images do not differ in it; give one", term.name()));
}

std::vector<Term> guess_weights(const std::vector<Term>& terms, const GriddedDataset& dataset) {
  if (terms.empty()) return {};
  const auto image_with = [&](double robust) {
    const auto options = DirtyImagerOptions().weighting(Weighting::briggs).robust(robust).unit(ImageUnit::jy_per_arcsec2);
    return DirtyImager(dataset, options).image();
  };
  const auto sharper = image_with(0), smoother = image_with(0.5);
  std::vector<Term> guessed;
  guessed.reserve(terms.size());
  for (const auto& term : terms) {
    const double weight =
        two_digits(guess_weight(term, dataset->coords(), sharper, smoother) / static_cast<double>(terms.size()));
    guessed.push_back(term.with_weights({weight}));
  }
  return guessed;
}

}  // namespace mpol
