#include <mpol_cpp/fourier/sample_strips.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <ATen/ops/empty.h>

namespace mpol {
namespace {

constexpr std::int64_t located_together = std::int64_t{1} << 16;  // samples
constexpr std::int64_t most_strips = std::int64_t{1} << 16;

/// Some successive samples of a channel by increasing strip, those of a strip in their own order.
class Chunk {
 public:
  Chunk(const Visibilities& visibilities, std::int64_t channel, std::int64_t first, std::int64_t count, double width)
      : order_(static_cast<std::size_t>(count)) {
    const auto& baselines = visibilities.baselines();
    const auto strips = std::min(most_strips, static_cast<std::int64_t>(baselines.max_abs_u() / width) + 1);
    std::vector<std::uint16_t> strip(static_cast<std::size_t>(count));
    std::vector<std::int64_t> next(static_cast<std::size_t>(strips) + 1);
    for (std::int64_t begin = 0; begin < count; begin += located_together) {
      const auto end = std::min(count, begin + located_together);
      const auto u = baselines.block(channel, first + begin, first + end).first.contiguous();
      const auto* values = u.const_data_ptr<double>();
      for (auto i = begin; i < end; ++i) {
        const auto own = std::min(strips - 1, static_cast<std::int64_t>(std::abs(values[i - begin]) / width));
        strip[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(own);
        ++next[static_cast<std::size_t>(own) + 1];
      }
    }
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (std::int64_t i = 0; i < count; ++i) {
      auto& place = next[strip[static_cast<std::size_t>(i)]];
      order_[static_cast<std::size_t>(place++)] = static_cast<std::uint32_t>(i);
    }
  }

  /// Indices [begin, end) of the order as those of samples, counted from `first`.
  Tensor indices(std::int64_t first, std::int64_t begin, std::int64_t end) const {
    auto chosen = at::empty({end - begin}, torch::kInt64);
    std::transform(order_.begin() + begin, order_.begin() + end, chosen.mutable_data_ptr<std::int64_t>(),
                   [first](std::uint32_t i) { return first + i; });
    return chosen;
  }

 private:
  std::vector<std::uint32_t> order_;
};

}  // namespace

void for_each_strip(const Visibilities& visibilities, std::int64_t channel, double width, const SampleStripOptions& options,
                    const std::function<void(const VisibilityBlock&)>& use) {
  const auto nvis = visibilities.nvis();
  if (nvis <= options.most_samples) return use(visibilities.block(channel, 0, nvis));
  for (std::int64_t first = 0; first < nvis; first += options.chunk) {
    const auto count = std::min(nvis - first, options.chunk);
    const Chunk chunk(visibilities, channel, first, count, width);
    for (std::int64_t begin = 0; begin < count; begin += options.most_samples) {
      use(visibilities.pick(channel, chunk.indices(first, begin, std::min(count, begin + options.most_samples))));
    }
  }
}

}  // namespace mpol
