#include <mpol_cpp/distributed/channel_neighbors.h>

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

namespace mpol {

std::int64_t ChannelNeighbors::channels_before(std::int64_t nchan) const {
  std::vector<double> channels(static_cast<std::size_t>(ranks_->size()), 0.0);
  channels[static_cast<std::size_t>(ranks_->rank())] = static_cast<double>(nchan);
  ranks_->sum(channels);
  double before = 0;
  for (std::int64_t rank = 0; rank < ranks_->rank(); ++rank) before += channels[static_cast<std::size_t>(rank)];
  return static_cast<std::int64_t>(before);
}

ChannelNeighbors::Handed ChannelNeighbors::exchange(const Tensor& to_before, const Tensor& to_after) const {
  const auto rank = ranks_->rank();
  const auto send = [&](const Tensor& tensor, std::int64_t to) {
    ranks_->send(tensor.detach().to(torch::kCPU).contiguous(), to);
  };
  const auto receive = [&](std::int64_t from, const Tensor& like) { return ranks_->receive(from).to(like.device()); };
  Handed handed;
  const auto with_after = [&](bool sends_first) {
    if (!has_after()) return;
    if (sends_first) send(to_after, rank + 1);
    handed.after = receive(rank + 1, to_after);
    if (!sends_first) send(to_after, rank + 1);
  };
  const auto with_before = [&](bool sends_first) {
    if (!has_before()) return;
    if (sends_first) send(to_before, rank - 1);
    handed.before = receive(rank - 1, to_before);
    if (!sends_first) send(to_before, rank - 1);
  };
  // The even one of two neighbors sends first; all pairs of one kind talk at the same time.
  if (rank % 2 == 0) with_after(true), with_before(true);
  else with_before(false), with_after(false);
  return handed;
}

ChannelNeighbors::Surrounded ChannelNeighbors::with_neighbors(const Tensor& cube, std::int64_t reach) const {
  const auto nchan = cube.size(-3);
  std::vector<Tensor> before, after;  // the nearest ones first
  const auto nothing = at::empty({0}, cube.options().requires_grad(false));
  // The k-th channel from an end, or what the other neighbor has handed over where this rank has fewer.
  const auto from_end = [&](std::int64_t k, bool last, const std::vector<Tensor>& beyond) {
    if (k <= nchan) return cube.select(-3, last ? nchan - k : k - 1);
    const auto index = static_cast<std::size_t>(k - nchan - 1);
    return index < beyond.size() ? beyond[index] : nothing;
  };
  for (std::int64_t k = 1; k <= reach; ++k) {
    const auto handed = exchange(from_end(k, false, after), from_end(k, true, before));
    if (handed.before.defined() && handed.before.numel() > 0) before.push_back(handed.before);
    if (handed.after.defined() && handed.after.numel() > 0) after.push_back(handed.after);
  }
  std::vector<Tensor> all;
  for (auto plane = before.rbegin(); plane != before.rend(); ++plane) all.push_back(plane->unsqueeze(-3));
  all.push_back(cube);
  for (const auto& plane : after) all.push_back(plane.unsqueeze(-3));
  return {at::cat(all, -3), static_cast<std::int64_t>(before.size()), static_cast<std::int64_t>(after.size())};
}

void ChannelNeighbors::sum(Tensor& numbers) const {
  if (ranks_->takes(numbers.device()) && numbers.is_contiguous()) return ranks_->all_reduce_sum(numbers);
  auto own = numbers.to(torch::kCPU).contiguous();
  ranks_->all_reduce_sum(own);
  numbers.copy_(own);
}

std::vector<double> ChannelNeighbors::largest(const std::vector<double>& numbers) const {
  const auto count = numbers.size();
  std::vector<double> all(count * static_cast<std::size_t>(ranks_->size()), 0.0), found(numbers);
  std::copy(numbers.begin(), numbers.end(), all.begin() + static_cast<std::ptrdiff_t>(count) * ranks_->rank());
  ranks_->sum(all);
  for (std::size_t i = 0; i < all.size(); ++i) found[i % count] = std::max(found[i % count], all[i]);
  return found;
}

}  // namespace mpol
