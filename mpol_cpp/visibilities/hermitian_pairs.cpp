#include <mpol_cpp/visibilities/hermitian_pairs.h>

#include <algorithm>
#include <vector>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::int64_t pair_block = 1 << 14;

struct WantedPartner {
  double u, v;
  c10::complex<double> value;
  bool found = false;
};

std::vector<WantedPartner> wanted_partners(const Visibilities& visibilities, std::int64_t channel, std::int64_t most) {
  std::vector<WantedPartner> wanted;
  const auto nvis = visibilities.nvis(), count = std::min(most, nvis);
  wanted.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto sample = i * nvis / count;
    const auto [u, v] = visibilities.baselines().block(channel, sample, sample + 1);
    const auto value = visibilities.data()[channel][sample].item<c10::complex<double>>();
    const WantedPartner partner{-u.item<double>(), -v.item<double>(), {value.real(), -value.imag()}};
    if (partner.u != 0 || partner.v != 0) wanted.push_back(partner);
  }
  return wanted;
}

}  // namespace

HermitianPairs find_hermitian_pairs(const Visibilities& visibilities, std::int64_t channel, std::int64_t tested) {
  if (channel < 0 || channel >= visibilities.nchan()) {
    throw ValueError(fmt::format("channel {} was asked for; there are {}", channel, visibilities.nchan()));
  }
  auto wanted = wanted_partners(visibilities, channel, tested);
  const auto row = visibilities.data().select(0, channel);
  for (std::int64_t begin = 0; begin < visibilities.nvis(); begin += pair_block) {
    const auto end = std::min(begin + pair_block, visibilities.nvis());
    const auto [u, v] = visibilities.baselines().block(channel, begin, end);
    const auto* us = u.const_data_ptr<double>();
    const auto* vs = v.const_data_ptr<double>();
    for (auto& partner : wanted) {
      std::int64_t candidates = 0;  // counted without branches: there are hardly any
      for (std::int64_t i = 0; i < end - begin; ++i) candidates += us[i] == partner.u ? 1 : 0;
      for (std::int64_t i = 0; candidates > 0 && !partner.found && i < end - begin; ++i) {
        partner.found = us[i] == partner.u && vs[i] == partner.v && row[begin + i].item<c10::complex<double>>() == partner.value;
      }
    }
  }
  const auto paired = std::count_if(wanted.begin(), wanted.end(), [](const auto& partner) { return partner.found; });
  return {static_cast<std::int64_t>(wanted.size()), static_cast<std::int64_t>(paired)};
}

void check_no_hermitian_pairs(const Visibilities& visibilities) {
  const auto pairs = find_hermitian_pairs(visibilities);
  if (!pairs.present()) return;
  throw DataError(
      fmt::format("visibilities with their Hermitian partners: {} of {} that were tested; each measurement may be "
                  "there once only: leave out the half with conjugated values at (-u, -v)",
                  pairs.paired, pairs.tested));
}

}  // namespace mpol
