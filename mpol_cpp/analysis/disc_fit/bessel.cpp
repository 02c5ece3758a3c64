#include <mpol_cpp/analysis/disc_fit/bessel.h>

#include <cmath>
#include <cstdint>

#include <ATen/ops/empty.h>

#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol {
namespace {

template <typename Function>
Tensor of_each(const Tensor& x, const Function& function) {
  constexpr std::int64_t grain = 256;
  const auto values = x.detach().to(torch::kCPU).contiguous();
  auto results = at::empty(values.sizes(), torch::kFloat64);
  const auto* value = values.const_data_ptr<double>();
  auto* result = results.mutable_data_ptr<double>();
  ops::share_ranges(values.numel(), grain, [&](std::int64_t first, std::int64_t last) {
    for (auto i = first; i < last; ++i) result[i] = function(value[i]);
  });
  return results.to(x.device());
}

}  // namespace

Tensor bessel_j0(const Tensor& x) {
  return of_each(x, [](double value) { return ::j0(value); });
}

Tensor bessel_j1(const Tensor& x) {
  return of_each(x, [](double value) { return ::j1(value); });
}

}  // namespace mpol
