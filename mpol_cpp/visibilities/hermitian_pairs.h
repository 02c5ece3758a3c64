#pragma once

#include <cstdint>

#include <mpol_cpp/visibilities/visibilities.h>

namespace mpol {

/// How many of a few samples have their Hermitian partner, conj(V) at (-u, -v), among the data.
struct HermitianPairs {
  std::int64_t tested = 0, paired = 0;  ///< samples looked at, and those of them that have a partner

  /// Noise makes a single pair by chance impossible; a few are samples that were simulated without it.
  bool present() const { return 2 * paired > tested; }
};

/// Looks for the partners of up to `tested` samples, spread evenly over a channel, in one pass over it. Samples at u = v = 0
/// are their own partners and are not tested. (MPoL's verify_no_hermitian_pairs looks at u and v apart, and misses most.)
/// @throws ValueError for a channel that is not there
HermitianPairs find_hermitian_pairs(const Visibilities& visibilities, std::int64_t channel = 0, std::int64_t tested = 8);

/// The sky is real, so a partner says nothing new: with partners among the data each measurement would count twice, and sigma
/// be too small by sqrt(2).
/// @throws DataError when the first channel holds Hermitian pairs
void check_no_hermitian_pairs(const Visibilities& visibilities);

}  // namespace mpol
