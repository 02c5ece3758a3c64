#include "catch.h"

#include <algorithm>
#include <array>
#include <complex>
#include <vector>

#include <mpol_cpp/fourier/normal_operator.h>
#include <mpol_cpp/fourier/sample_strips.h>
#include <mpol_cpp/ops/nufft/nufft_plan.h>

#include "random.h"

using namespace mpol;
using namespace mpol::testing;

namespace {

Visibilities random_samples(std::int64_t nvis, torch::Dtype dtype) {
  const auto metres = (uniform({2, nvis}, torch::kFloat64, 1) * 2 - 1) * 300;
  return {Baselines::in_metres(metres[0].to(dtype), metres[1].to(dtype), torch::tensor({1e11, 2e11}, torch::kFloat64)),
          normal({2, nvis}, c10::toComplexType(dtype), 2), uniform({2, nvis}, dtype, 3) + 0.5};
}

/// Rows u, v, real, imaginary, weight, in an order that does not depend on theirs.
std::vector<std::array<double, 5>> sorted_rows(const std::vector<VisibilityBlock>& blocks) {
  std::vector<std::array<double, 5>> rows;
  for (const auto& block : blocks) {
    for (std::int64_t i = 0; i < block.u.size(0); ++i) {
      const auto value = block.data.const_data_ptr<c10::complex<double>>()[i];
      rows.push_back({block.u.const_data_ptr<double>()[i], block.v.const_data_ptr<double>()[i], value.real(), value.imag(),
                      block.weights.const_data_ptr<double>()[i]});
    }
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace

TEST_CASE("strips hand on every sample once, in blocks of bounded size that go through the plane", "[fourier][quick]") {
  const auto dtype = GENERATE(torch::kFloat32, torch::kFloat64);
  const auto nvis = GENERATE(1, 99, 100, 101, 1000, 2500);
  const auto visibilities = random_samples(nvis, dtype);
  const double width = 1e4;
  for (const std::int64_t channel : {0, 1}) {
    std::vector<VisibilityBlock> blocks;
    for_each_strip(visibilities, channel, width, {100, 1000}, [&](const VisibilityBlock& block) { blocks.push_back(block); });
    const bool same = sorted_rows(blocks) == sorted_rows({visibilities.block(channel, 0, nvis)});
    CHECK(same);
    for (const auto& block : blocks) CHECK(block.u.size(0) <= 100);
    if (nvis <= 100) continue;
    for (std::size_t i = 1; i < blocks.size(); ++i) {
      if (i % 10 == 0) continue;  // another chunk
      const auto before = (blocks[i - 1].u.abs() / width).floor().max().item<double>();
      CHECK((blocks[i].u.abs() / width).floor().min().item<double>() >= before);
    }
  }
}

TEST_CASE("sums over blocks of points are those of all points", "[fourier][nufft][quick]") {
  const GridCoords coords(0.05, 40);
  const std::int64_t count = 3000;
  const double longest = 0.45 / coords.dl();
  const auto u = (2 * uniform({count}, torch::kFloat64, 5) - 1) * longest;
  const auto v = (2 * uniform({count}, torch::kFloat64, 6) - 1) * longest;
  const auto data = normal({count}, torch::kComplexDouble, 7);
  const auto weights = uniform({count}, torch::kFloat64, 8);
  const ops::NufftSettings settings{40, coords.dl(), 1e-12};
  const auto* d = reinterpret_cast<const std::complex<double>*>(data.const_data_ptr<c10::complex<double>>());
  const auto *x = u.const_data_ptr<double>(), *y = v.const_data_ptr<double>(), *w = weights.const_data_ptr<double>();
  const auto images = [&](const auto& use) {
    auto dirty = torch::empty({40, 40}, torch::kFloat64), beam = torch::empty({40, 40}, torch::kFloat64);
    use(dirty.mutable_data_ptr<double>(), beam.mutable_data_ptr<double>());
    return std::pair(dirty, beam);
  };
  const auto [dirty, beam] = images([&](double* to_dirty, double* to_beam) {
    const ops::NufftPlan<double> plan(settings, x, y, count, longest, longest);
    std::vector<std::complex<double>> weighted(d, d + count), weights_alone(w, w + count);
    for (std::size_t i = 0; i < weighted.size(); ++i) weighted[i] *= w[i];
    plan.type1(weighted.data(), 2.0, to_dirty, Accumulate::overwrite);
    plan.type1(weights_alone.data(), 3.0, to_beam, Accumulate::overwrite);
  });
  for (const std::int64_t block : {3000, 1000, 7}) {
    INFO("blocks of " << block);
    const auto [summed_dirty, summed_beam] = images([&](double* to_dirty, double* to_beam) {
      ops::NufftDirtySums<double> sums(settings, longest, longest);
      for (std::int64_t i = 0; i < count; i += block) sums.add(x + i, y + i, std::min(block, count - i), d + i, w + i);
      sums.images(2.0, to_dirty, 3.0, to_beam);
    });
    CHECK((summed_dirty - dirty).abs().max().item<double>() <= 1e-13 * dirty.abs().max().item<double>());
    CHECK((summed_beam - beam).abs().max().item<double>() <= 1e-13 * beam.abs().max().item<double>());
  }
}

TEST_CASE("a normal operator of more samples than one block is the sum of those of its parts", "[fourier][normal]") {
  const std::int64_t half = 200'000;
  const GridCoords coords(0.05, 32);
  const double longest = 0.9 * (16 - 0.5) * coords.du();
  const auto uv = (2 * uniform({2, 2 * half}, torch::kFloat64, 11) - 1) * longest;
  const auto data = normal({1, 2 * half}, torch::kComplexDouble, 12);
  const auto weights = uniform({1, 2 * half}, torch::kFloat64, 13);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    const auto own = [&](const Tensor& values) { return values.narrow(-1, begin, end - begin); };
    return NormalOperator::of(coords, {Baselines::in_lambda(own(uv[0]), own(uv[1])), own(data), own(weights)},
                              ChannelMap::continuum(1));
  };
  const auto whole = part(0, 2 * half);
  auto sum = part(0, half);
  sum += part(half, 2 * half);
  const auto agree = [](const Tensor& a, const Tensor& b) {
    return (a - b).abs().max().item<double>() <= 1e-12 * b.abs().max().item<double>();
  };
  CHECK(agree(whole.kernel(), sum.kernel()));
  CHECK(agree(whole.dirty(), sum.dirty()));
  CHECK(agree(whole.constant(), sum.constant()));
  CHECK(whole.occupied_cells() == sum.occupied_cells());
  CHECK(whole.nvis() == sum.nvis());
}
