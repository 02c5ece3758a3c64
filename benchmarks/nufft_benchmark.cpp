// Times what loose visibilities cost: nonuniform transforms of each type, the exact likelihood and what sets both up; one
// JSON row a case.
//
// usage: nufft_benchmark transforms|exact [--npix N,N…] [--nvis K,K…] [--dtype float32,float64] [--tolerance E]
//        [--data FILE.npz] [--threads T] [--seconds S]
#include <algorithm>
#include <string>
#include <vector>

#include <mpol_cpp/mpol.h>
#include <mpol_cpp/ops/memory/huge_pages.h>
#include <mpol_cpp/ops/nufft/nufft_plan.h>

#include "settings.h"

namespace {

using benchmarks::cell_size, benchmarks::dtype_of, benchmarks::print, benchmarks::Settings;
using nlohmann::json;

/// Type 2, type 1 and both around a residual, of one image and of four at the same points, for data that are there already:
/// the time of sorting is apart.
template <typename T>
void transforms_case(const Settings& settings, std::int64_t npix, std::int64_t nvis, json row) {
  const mpol::GridCoords coords(cell_size, npix);
  const auto observed = benchmarks::observation(settings, coords, 1, nvis);
  const auto& baselines = observed.baselines();
  const auto [block_u, block_v] = baselines.block(0, 0, observed.nvis());
  const auto u = block_u.contiguous(), v = block_v.contiguous();
  const auto data = observed.data()[0].to(torch::kComplexDouble).contiguous();
  const auto weights = observed.weights()[0].to(torch::kFloat64).contiguous();
  const auto points = observed.nvis();
  row["nvis"] = points;
  row["tolerance"] = settings.tolerance;
  const auto make_plan = [&] {
    return std::make_unique<mpol::ops::NufftPlan<T>>(mpol::ops::NufftSettings{npix, coords.dl(), settings.tolerance},
                                                     u.template const_data_ptr<double>(), v.template const_data_ptr<double>(),
                                                     points, baselines.max_abs_u(), baselines.max_abs_v());
  };
  const auto plan = make_plan();
  const auto sorted =
      plan->sorted(reinterpret_cast<const std::complex<double>*>(data.template const_data_ptr<c10::complex<double>>()),
                   weights.template const_data_ptr<double>());
  const auto dtype = c10::CppTypeToScalarType<T>::value;
  const auto image = at::rand({npix, npix}, dtype);
  auto gradient = at::empty_like(image), visibilities = at::empty({points}, c10::toComplexType(dtype));
  auto* values = reinterpret_cast<std::complex<T>*>(visibilities.template mutable_data_ptr<c10::complex<T>>());
  mpol::ops::prefer_huge_pages(values, visibilities.nbytes());  // as numpy does for FINUFFT
  const auto* pixels = image.template const_data_ptr<T>();
  auto* slopes = gradient.template mutable_data_ptr<T>();
  const auto time = [&](const char* name, const auto& call, std::size_t least = 5) {
    row["case"] = name;
    print(row, benchmarks::repeat(call, settings.seconds, least));
  };
  time("plan", make_plan, 3);
  time("type2", [&] { plan->type2(pixels, 1, values); });
  time("type1", [&] { plan->type1(values, 1, slopes, mpol::Accumulate::overwrite); });
  time("fused", [&] { plan->fused(pixels, 1, *sorted, slopes, mpol::Accumulate::overwrite); });
  const auto four = at::rand({4, npix, npix}, dtype);
  auto gradients = at::empty_like(four);
  std::vector<typename mpol::ops::NufftPlan<T>::Comparison> comparisons;
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto at = i * npix * npix;
    comparisons.push_back({four.template const_data_ptr<T>() + at, sorted.get(), gradients.template mutable_data_ptr<T>() + at});
  }
  time("fused_4", [&] { plan->fused(comparisons, 1, mpol::Accumulate::overwrite); });
}

/// The normal operator of one channel. Visibilities beyond 10^7 are made in blocks, each added to it once.
mpol::NormalOperator make_normal_operator(const Settings& settings, const mpol::GridCoords& coords, std::int64_t nvis, json row) {
  constexpr std::int64_t block = 10'000'000;
  const auto channels = mpol::ChannelMap::cube(1);
  row["case"] = "exact_setup";
  if (!settings.data.empty() || nvis <= block) {
    const auto observed = benchmarks::observation(settings, coords, 1, nvis);
    row["nvis"] = observed.nvis();
    const auto make = [&] { return mpol::NormalOperator::of(coords, observed, channels); };
    print(row, benchmarks::repeat(make, settings.seconds, 3));
    return make();
  }
  mpol::NormalOperator normal(coords, 1);
  const auto observe = [&](std::int64_t i) {
    const auto count = std::min(block, nvis - i * block);
    return benchmarks::synthetic_observation(coords, 1, count, torch::kFloat64, 0.4, static_cast<std::uint64_t>(i + 1));
  };
  const auto times = benchmarks::sum_over((nvis + block - 1) / block, observe,
                                          [&](const mpol::Visibilities& observed) { normal.add(observed, channels); });
  row["nvis"] = nvis;
  row["peak_mib"] = benchmarks::peak_mebibytes();
  print(row, times);
  return normal;
}

/// Value and gradient of the exact likelihood, and making its normal operator.
void exact_case(const Settings& settings, std::int64_t npix, std::int64_t nvis, json row) {
  const mpol::GridCoords coords(cell_size, npix);
  auto likelihood = mpol::ExactLikelihood(make_normal_operator(settings, coords, nvis, row));
  row["nvis"] = likelihood->samples();
  const auto sky = at::rand({1, npix, npix}, dtype_of(row["dtype"]));
  auto gradient = at::empty_like(sky);
  row["case"] = "exact";
  print(row, benchmarks::repeat([&] { likelihood->value_and_gradient(sky, gradient, mpol::Accumulate::overwrite); },
                                settings.seconds));
}

void run(const Settings& settings) {
  for (const auto& dtype : settings.dtypes) {
    for (const auto npix : settings.npix) {
      for (const auto nvis : settings.nvis) {
        const json row{{"npix", npix}, {"dtype", dtype}};
        if (settings.what == "exact") exact_case(settings, npix, nvis, row);
        else if (settings.what != "transforms")
          throw mpol::ValueError(fmt::format("group is {}; it must be transforms or exact", settings.what));
        else if (dtype_of(dtype) == torch::kFloat32) transforms_case<float>(settings, npix, nvis, row);
        else transforms_case<double>(settings, npix, nvis, row);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) { return benchmarks::run_benchmark("nufft_benchmark", argc, argv, run); }
