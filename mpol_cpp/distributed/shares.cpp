#include <mpol_cpp/distributed/shares.h>

#include <algorithm>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

Share share_of(std::int64_t count, std::int64_t rank, std::int64_t size) {
  if (count < 0 || rank < 0 || rank >= size)
    throw ValueError(
        fmt::format("a share of {} things for rank {} of {}: ranks go from 0 to their number less one", count, rank, size));
  const auto each = count / size, more = count % size;
  const auto begin = rank * each + std::min(rank, more);
  return {begin, begin + each + (rank < more ? 1 : 0)};
}

}  // namespace mpol
