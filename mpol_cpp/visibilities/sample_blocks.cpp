#include <mpol_cpp/visibilities/sample_blocks.h>

#include <utility>

#include <ATen/ops/_unique2.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/searchsorted.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {

Tensor SampleBlocks::of(std::int64_t channel, std::int64_t begin, std::int64_t end) const {
  const auto row = indices.dim() == 1 ? indices : indices.select(0, indices.size(0) == 1 ? 0 : channel);
  if (begin < 0 || end < begin || end > row.size(0))
    throw ShapeError(fmt::format("samples {} to {} of {} are not there", begin, end, row.size(0)));
  return row.slice(0, begin, end);
}

void SampleBlocks::check(std::int64_t nchan, std::int64_t nvis) const {
  const bool has_rows = indices.defined() && indices.dim() == 2;
  const bool fits = indices.defined() && indices.scalar_type() == torch::kInt64 && indices.device().is_cpu() &&
                    (indices.dim() == 1 || (has_rows && (indices.size(0) == 1 || indices.size(0) == nchan))) &&
                    indices.size(-1) == nvis;
  if (!fits) {
    throw ShapeError(fmt::format("blocks of samples have shape {}; they must be int64, ({}) or ({}, {})",
                                 indices.defined() ? fmt::format("{}", indices.sizes().vec()) : "of nothing", nvis, nchan, nvis));
  }
  if (nvis == 0) return;
  const auto least = indices.min().item<std::int64_t>(), most = indices.max().item<std::int64_t>();
  if (least < 0 || most >= size())
    throw ValueError(fmt::format("samples are in blocks {} to {}, of which only 0 to {} have names", least, most, size() - 1));
}

SampleBlocks SampleBlocks::of_numbers(const Tensor& numbers, const std::string& word) {
  const auto [values, place, counts] = at::_unique2(numbers.to(torch::kCPU, torch::kInt64), /*sorted=*/true,
                                                    /*return_inverse=*/true);
  SampleBlocks blocks{place, {}};
  for (std::int64_t i = 0; i < values.numel(); ++i)
    blocks.names.push_back(fmt::format("{} {}", word, values[i].item<std::int64_t>()));
  return blocks;
}

SampleBlocks SampleBlocks::crossed(const SampleBlocks& other) const {
  if (indices.size(-1) != other.indices.size(-1))
    throw ShapeError(fmt::format("blocks of {} samples and of {}", indices.size(-1), other.indices.size(-1)));
  const auto pairs = indices * other.size() + other.indices;  // rows of channels spread over those without
  const auto [values, place, counts] = at::_unique2(pairs, /*sorted=*/true, /*return_inverse=*/true);
  SampleBlocks blocks{place, {}};
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const auto pair = values[i].item<std::int64_t>();
    blocks.names.push_back(names.at(static_cast<std::size_t>(pair / other.size())) + " " +
                           other.names.at(static_cast<std::size_t>(pair % other.size())));
  }
  return blocks;
}

Tensor stretches_of_time(const Tensor& times, std::int64_t count) {
  if (count < 1) throw ValueError(fmt::format("{} stretches of time; there must be at least 1", count));
  if (times.dim() != 1 || times.numel() == 0)
    throw ShapeError(fmt::format("times have shape {}; they must be (nvis), one for each sample", times.sizes().vec()));
  const auto own = times.to(torch::kCPU, torch::kFloat64);
  if (!at::isfinite(own).all().item<bool>()) throw DataError("some times are not finite");
  // A stretch begins with the moment of its first sample, so that all samples of that moment are in it.
  const auto sorted = std::get<0>(own.sort());
  const auto begins = sorted.index_select(0, (at::arange(1, count, torch::kInt64) * own.numel()).div(count, "floor"));
  const auto labels = at::searchsorted(begins.contiguous(), own, /*out_int32=*/false, /*right=*/true);
  return std::get<1>(at::_unique2(labels, /*sorted=*/true, /*return_inverse=*/true)).contiguous();
}

}  // namespace mpol
