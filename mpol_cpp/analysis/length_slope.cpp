#include <mpol_cpp/analysis/length_slope.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ops/hypot.h>

#include <mpol_cpp/distributed/sum_visited.h>
#include <mpol_cpp/likelihoods/prediction.h>

namespace mpol {

bool LengthSlope::tells_sharp_source() const {
  constexpr double clear = 5, least_share = 0.2, most_missed = 0.1;
  const double too_much = chi_squared - samples;
  if (too_much > most_missed * (of_empty - samples)) return false;
  return slope > clear * error * std::sqrt(std::max(1.0, chi_squared / samples)) && explained >= least_share * too_much;
}

void LengthAmplitudes::add(const Tensor& q, const Tensor& model, const Tensor& data, const Tensor& weights) {
  const auto lengths = q.contiguous(), models = model.contiguous(), values = data.contiguous(), given = weights.contiguous();
  const auto* length = lengths.const_data_ptr<double>();
  const auto* m = models.const_data_ptr<c10::complex<double>>();
  const auto* d = values.const_data_ptr<c10::complex<double>>();
  const auto* w = given.const_data_ptr<double>();
  for (std::int64_t i = 0; i < models.numel(); ++i) {
    const double x = length[i] * length[i] / (longest_ * longest_);
    const double real = d[i].real() - m[i].real(), imag = d[i].imag() - m[i].imag();
    const double power = w[i] * (m[i].real() * m[i].real() + m[i].imag() * m[i].imag());
    const double product = w[i] * (m[i].real() * real + m[i].imag() * imag);
    chi_squared_ += w[i] * (real * real + imag * imag);
    powers_[0] += power, powers_[1] += power * x, powers_[2] += power * x * x;
    products_[0] += product, products_[1] += product * x;
  }
  seen_ += static_cast<double>(models.numel());
}

std::optional<LengthSlope> LengthAmplitudes::slope() const {
  constexpr double least_spread = 1e-6;  // of x
  const double determinant = powers_[0] * powers_[2] - powers_[1] * powers_[1];
  if (!(seen_ > 0) || !(determinant > least_spread * powers_[0] * powers_[2])) return std::nullopt;
  const double passes = seen_ / samples_;
  const double factor = (powers_[2] * products_[0] - powers_[1] * products_[1]) / determinant;
  const double slope = (powers_[0] * products_[1] - powers_[1] * products_[0]) / determinant;
  const double by_factor = products_[0] * products_[0] / powers_[0];
  return LengthSlope{.slope = slope,
                     .error = std::sqrt(passes * powers_[0] / determinant),
                     .explained = (factor * products_[0] + slope * products_[1] - by_factor) / passes,
                     .chi_squared = chi_squared_ / passes,
                     .of_empty = (powers_[0] + 2 * products_[0] + chi_squared_) / passes,
                     .samples = 2 * samples_};
}

std::optional<LengthSlope> length_slope(const GridCoords& coords, const Tensor& sky, const Visibilities& visibilities,
                                        const ChannelMap& channels, Communicator* ranks) {
  std::int64_t used = 0;
  for (const auto& sources : channels.sources) used += std::ssize(sources);
  LengthAmplitudes amplitudes(coords.max_uv(), used * visibilities.nvis());
  const auto host = sky.detach().to(torch::kCPU, torch::kFloat64);
  losses::for_each_prediction(coords, host, visibilities, channels,
                              [&](std::int64_t channel, std::int64_t begin, const Tensor& model) {
                                const auto block = visibilities.block(channel, begin, begin + model.numel());
                                amplitudes.add(at::hypot(block.u, block.v), model, block.data, block.weights);
                              });
  if (ranks != nullptr) sum_visited(*ranks, [&amplitudes](const auto& visit) { amplitudes.visit_sums(visit); });
  return amplitudes.slope();
}

}  // namespace mpol
