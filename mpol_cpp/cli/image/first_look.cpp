#include <mpol_cpp/cli/image/first_look.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/visibilities/value_range.h>

namespace mpol::cli {
namespace {

constexpr std::int64_t numbers_of_look = 8, numbers_of_signal = 5;

/// What a rank tells of its channels: (1, numbers_of_look), or no row where it has none.
Tensor row_of_look(const FitData* own) {
  if (own == nullptr) return at::zeros({0, numbers_of_look}, torch::kFloat64);
  const auto peaks = dirty_peaks(own->dataset);
  const auto& weights = own->visibilities.weights();
  return at::tensor({strongest_signal(own->dataset), peaks.brightest, peaks.darkest, peaks.on_any_scale, peaks.share_on_scale,
                     sum_in_float64(weights), weights.min().item<double>(), weights.max().item<double>()},
                    torch::kFloat64)
      .unsqueeze(0);
}

/// The signals of its channels: (channels, numbers_of_signal).
Tensor rows_of_signals(const FitData* own, const Looking& how) {
  std::vector<double> numbers;
  if (own != nullptr) {
    for (const auto& [peaks, unit] :
         channel_signals(own->dataset, own->visibilities, own->channels, how.normalizer, how.either_sign))
      numbers.insert(numbers.end(), {peaks.brightest, peaks.darkest, peaks.on_any_scale, peaks.share_on_scale, unit});
  }
  return at::tensor(numbers, torch::kFloat64).reshape({-1, numbers_of_signal});
}

/// Places in the order of the numbers of all ranks.
struct MiddlePlaces {
  double lower, upper;  ///< the same where there is an odd number
};

/// The mean of the numbers at the two middle places of all ranks' numbers, which are >= 0: by bisection of their bit patterns,
/// whose order is theirs.
/// @param sorted  this rank's
double middle_of_ranks(const std::vector<double>& sorted, const MiddlePlaces& places, Communicator& ranks) {
  constexpr int bits = 63;  // but the sign
  std::array<std::uint64_t, 2> found{};
  for (int bit = bits - 1; bit >= 0; --bit) {
    std::vector<double> below;
    for (const auto pattern : found) {
      const auto middle = std::bit_cast<double>(pattern | std::uint64_t{1} << bit);
      const auto first = std::partition_point(sorted.begin(), sorted.end(), [&](double value) {
        return std::bit_cast<std::uint64_t>(value + 0.0) < std::bit_cast<std::uint64_t>(middle);
      });
      below.push_back(static_cast<double>(first - sorted.begin()));
    }
    ranks.sum(below);
    if (below[0] <= places.lower) found[0] |= std::uint64_t{1} << bit;
    if (below[1] <= places.upper) found[1] |= std::uint64_t{1} << bit;
  }
  return 0.5 * (std::bit_cast<double>(found[0]) + std::bit_cast<double>(found[1]));
}

/// The numbers of cells with several samples, sorted.
std::vector<double> sorted_scatter(const Tensor& scatter, const Tensor& several) {
  if (!scatter.defined()) return {};
  const auto sorted = std::get<0>(scatter.masked_select(several).sort());
  return {sorted.const_data_ptr<double>(), sorted.const_data_ptr<double>() + sorted.numel()};
}

}  // namespace

FirstLook look_at(const FitData& data, const Looking& how) { return look_at(&data, how, *single_rank()); }

FirstLook look_at(const FitData* own, const Looking& how, Communicator& ranks) {
  const auto rows = ranks.gather(row_of_look(own));
  const auto signals = how.at_channels ? ranks.gather(rows_of_signals(own, how)) : Tensor();
  if (!ranks.is_first()) return {};
  FirstLook look;
  const auto* brightest = rows[rows.select(1, 0).argmax().item<std::int64_t>()].const_data_ptr<double>();
  look.peaks = {brightest[1], brightest[2], brightest[3], brightest[4]};
  if (how.either_sign) look.peaks = look.peaks.of_either_sign();
  look.weights = {rows.select(1, 5).sum().item<double>(), rows.select(1, 6).min().item<double>(),
                  rows.select(1, 7).max().item<double>()};
  for (std::int64_t c = 0; signals.defined() && c < signals.size(0); ++c) {
    const auto* of = signals[c].const_data_ptr<double>();
    look.signals.push_back({{of[0], of[1], of[2], of[3]}, of[4]});
  }
  return look;
}

std::optional<std::pair<DataOutline, UvSummary>> outline_of_ranks(const Visibilities* own, Communicator& ranks) {
  const auto nothing = at::zeros({0}, torch::kFloat64);
  const bool tells = own != nullptr && own->frequencies().defined();
  const auto frequencies = ranks.gather(tells ? own->frequencies().contiguous() : nothing);
  const auto rows = ranks.gather(own != nullptr ? uv_row(own->baselines()) : no_uv_rows());
  std::vector<double> channels{own != nullptr ? static_cast<double>(own->nchan()) : 0};
  ranks.sum(channels);
  if (!ranks.is_first()) return std::nullopt;
  DataOutline outline(tells ? frequencies : Tensor(), own->observation(), static_cast<std::int64_t>(channels.front()),
                      own->nvis());
  return std::pair(std::move(outline), summarize_uv(rows));
}

Scatter scatter_of_ranks(const CellStatistics& own, Communicator& ranks) {
  const auto several = own.samples.defined() ? own.samples > 1 : Tensor();
  const auto real = sorted_scatter(own.real, several), imag = sorted_scatter(own.imag, several);
  std::vector<double> count{static_cast<double>(real.size())};
  ranks.sum(count);
  const auto cells = static_cast<std::int64_t>(count.front());
  if (cells == 0) return {};
  const auto lower = (cells - 1) / 2, upper = cells / 2;
  const MiddlePlaces places{static_cast<double>(lower), static_cast<double>(upper)};
  return {middle_of_ranks(real, places, ranks), middle_of_ranks(imag, places, ranks), cells};
}

}  // namespace mpol::cli
