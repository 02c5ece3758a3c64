#include <mpol_cpp/fourier/operator_of_ranks.h>

#include <optional>
#include <utility>

#include <ATen/ops/arange.h>

namespace mpol {

NormalOperator operator_of_shares(const GridCoords& coords, const Visibilities* own, const ChannelMap& channels,
                                  Communicator& ranks, KernelStorage storage) {
  NormalOperator normal(coords, channels.nchan(), std::move(storage));
  if (own != nullptr) normal.add(*own, channels);
  normal.sum_over(ranks);
  return normal;
}

NormalOperator operator_of_ranks(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                                 Communicator& ranks, KernelStorage storage) {
  if (ranks.is_alone()) return NormalOperator::of(coords, visibilities, channels, std::move(storage));
  const auto share = share_of(visibilities.nvis(), ranks.rank(), ranks.size());
  std::optional<Visibilities> own;
  if (!share.is_empty()) own = visibilities.select(at::arange(share.begin, share.end, torch::kInt64));
  return operator_of_shares(coords, own ? &*own : nullptr, channels, ranks, std::move(storage));
}

}  // namespace mpol
