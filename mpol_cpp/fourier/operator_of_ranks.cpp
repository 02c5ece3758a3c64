#include <mpol_cpp/fourier/operator_of_ranks.h>

#include <utility>

#include <ATen/ops/arange.h>

namespace mpol {

NormalOperator operator_of_ranks(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                                 Communicator& ranks, KernelStorage storage) {
  if (ranks.is_alone()) return NormalOperator::of(coords, visibilities, channels, std::move(storage));
  NormalOperator normal(coords, channels.nchan(), std::move(storage));
  const auto share = share_of(visibilities.nvis(), ranks.rank(), ranks.size());
  if (!share.is_empty()) normal.add(visibilities.select(at::arange(share.begin, share.end, torch::kInt64)), channels);
  normal.sum_over(ranks);
  return normal;
}

}  // namespace mpol
