#pragma once

#include <cstdint>
#include <vector>

namespace mpol {

/// Deals things to folds in a random order that depends on the seed alone, on every machine; the folds' sizes differ by one at
/// most.
/// @param what  they are, for the error
/// @return      the fold of each
/// @throws DataError for fewer things than folds
std::vector<std::int64_t> deal(std::int64_t count, std::int64_t folds, std::uint64_t seed, const char* what);

}  // namespace mpol
