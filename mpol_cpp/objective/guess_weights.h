#pragma once

#include <string>
#include <vector>

#include <mpol_cpp/datasets/gridded_dataset.h>
#include <mpol_cpp/objective/term.h>

namespace mpol {

/// A first guess of a regulariser's weight from two images of the same data at different resolution: the lambda for which
/// they differ by 1,
///
///   lambda = 1 / |R(sharper) - R(smoother)|
///
/// Only an order of magnitude to begin a search with. MPoL's TrainTest guesses 1/(R(smoother) - R(sharper)), which is negative
/// where the sharper image has more of R, as it mostly has.
/// @param sharper, smoother  (nchan, npix, npix), sky orientation; for the entropy, negative pixels count as 1e-10
/// @throws DataError when both have the same R, or one has no finite one
double guess_weight(const Term& term, const GridCoords& coords, const Tensor& sharper, const Tensor& smoother);

/// The terms with guessed weights, from dirty images with Briggs' robust 0 and 0.5 in Jy/arcsec^2, the unit that regularisers
/// are given in a fit (MPoL compares images in Jy/beam), rounded to two digits. Several terms share: each has the part 1/n of
/// what it would be guessed alone, so that all n together, not each of them, weigh as much as one would.
/// @param dataset  gridded data
std::vector<Term> guess_weights(const std::vector<Term>& terms, const GriddedDataset& dataset);

}  // namespace mpol
