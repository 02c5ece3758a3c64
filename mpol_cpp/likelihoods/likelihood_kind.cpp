#include <mpol_cpp/likelihoods/likelihood_kind.h>

#include <algorithm>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/likelihoods/exact_likelihood.h>
#include <mpol_cpp/likelihoods/gridded_likelihood.h>
#include <mpol_cpp/likelihoods/loose_likelihood.h>
#include <mpol_cpp/likelihoods/prediction.h>

namespace mpol {

const std::vector<LikelihoodKind>& all_likelihoods() {
  static const std::vector<LikelihoodKind> all = {
      ExactLikelihoodImpl::kind(),
      GriddedLikelihoodImpl::kind(),
      LooseLikelihoodImpl::kind(),
  };
  return all;
}

const LikelihoodKind& likelihood_kind(const std::string& name) {
  const auto& all = all_likelihoods();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& kind) { return kind.name == name; });
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const auto& kind : all) names.push_back(kind.name);
  throw ValueError(fmt::format("\"{}\" is not a likelihood; there are {}", name, fmt::join(names, ", ")));
}

namespace detail {

double residual_bytes(const LikelihoodSizes& sizes) {
  const auto npix = static_cast<double>(sizes.npix), nchan = static_cast<double>(sizes.channels_of_results);
  return npix * npix * (96 + 24 * nchan) + std::min(static_cast<double>(sizes.visibilities), 0x1p20) * 100;
}

double prediction_bytes(const LikelihoodSizes& sizes) {
  const auto block = static_cast<double>(losses::prediction_block_for(sizes.npix));
  const auto pixels = static_cast<double>(sizes.npix * sizes.npix);
  return 110 * pixels + 96 * std::min(static_cast<double>(sizes.visibilities), block);
}

}  // namespace detail
}  // namespace mpol
