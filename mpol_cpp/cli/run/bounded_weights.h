#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/cli/run/fit_terms.h>
#include <mpol_cpp/objective/term.h>

namespace mpol::cli {

/// The weights with which the fit comes to --chi2-bound, all of them times one factor. Tells people and summary.bound.
/// @throws UsageError where no regularizer is in the fit
std::vector<Term> bounded_weights(const std::vector<Term>& terms, const TermWeighing& with);

/// What a fit that misses its bound is warned of; empty: nothing, or there is none.
std::string bound_warning(const ImageSummary& summary);

}  // namespace mpol::cli
