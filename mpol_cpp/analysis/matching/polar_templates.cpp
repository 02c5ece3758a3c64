#include <mpol_cpp/analysis/matching/polar_templates.h>

#include <map>
#include <vector>

#include <ATen/ops/isfinite.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol {
namespace {

constexpr std::int64_t most_places = std::int64_t{1} << 26;

void check_finite(const Tensor& values) {
  if (values.isfinite().all().item<bool>()) return;
  throw DataError("templates with values that are not finite: replace them, by 0 where nothing is known");
}

void check_points(const PolarPoints& points, std::int64_t nr, std::int64_t nphi) {
  const auto& [radius, azimuth, value] = points;
  const auto whole = [](const Tensor& places) { return at::isIntegralType(places.scalar_type(), false); };
  if (value.dim() != 2 || value.size(0) == 0 || radius.sizes() != value.sizes() || azimuth.sizes() != value.sizes() ||
      !value.is_floating_point() || !whole(radius) || !whole(azimuth)) {
    throw ShapeError(
        fmt::format("points of templates of shapes ({}), ({}) and ({}): expected (n, npoints) each, places as integers",
                    fmt::join(radius.sizes(), ", "), fmt::join(azimuth.sizes(), ", "), fmt::join(value.sizes(), ", ")));
  }
  // Places in two turns of all rings are counted in 32 bits.
  if (nr < 1 || nphi < 1 || nphi > most_places || nr > most_places / nphi) {
    throw ValueError(fmt::format("{} x {} bins for templates: expected at least one and no more than {}", nr, nphi, most_places));
  }
  check_finite(value);
}

/// The points of each template by bin, as they are, with those in one bin added up and those of no brightness left out.
PolarTemplates::Points sorted_points(const PolarPoints& points, std::int64_t nr, std::int64_t nphi) {
  const auto radius = points.radius.to(torch::kCPU, torch::kInt64).contiguous(),
             azimuth = points.azimuth.to(torch::kCPU, torch::kInt64).contiguous(),
             value = points.value.to(torch::kCPU, torch::kFloat64).contiguous();
  const auto* r = radius.const_data_ptr<std::int64_t>();
  const auto* phi = azimuth.const_data_ptr<std::int64_t>();
  const auto* brightness = value.const_data_ptr<double>();
  const auto row = value.size(1);
  std::vector<std::int64_t> starts{0};
  std::vector<std::int32_t> bins;
  std::vector<double> values;
  for (std::int64_t i = 0; i < value.size(0); ++i) {
    std::map<std::int64_t, double> by_bin;
    for (auto k = i * row; k < (i + 1) * row; ++k) {
      if (brightness[k] == 0) continue;
      if (r[k] < 0 || r[k] >= nr) {
        throw ValueError(
            fmt::format("a point of template {} in the radius bin {}, of {}: leave it out or set it to 0", i, r[k], nr));
      }
      by_bin[r[k] * nphi + ((phi[k] % nphi) + nphi) % nphi] += brightness[k];
    }
    for (const auto& [bin, sum] : by_bin) {
      bins.push_back(static_cast<std::int32_t>(bin));
      values.push_back(sum);
    }
    starts.push_back(static_cast<std::int64_t>(bins.size()));
  }
  return {at::tensor(starts, torch::kInt64), at::tensor(bins, torch::kInt32), at::tensor(values, torch::kFloat64)};
}

}  // namespace

PolarTemplates::PolarTemplates(const Tensor& maps) {
  if (maps.dim() != 3 || maps.numel() == 0 || (maps.scalar_type() != torch::kFloat32 && maps.scalar_type() != torch::kFloat64)) {
    throw ShapeError(fmt::format("templates of shape ({}) of {}: expected (n, nr, nphi) of float32 or float64",
                                 fmt::join(maps.sizes(), ", "), c10::toString(maps.scalar_type())));
  }
  check_finite(maps);
  size_ = maps.size(0);
  nr_ = maps.size(1);
  nphi_ = maps.size(2);
  maps_ = maps.detach();
}

PolarTemplates::PolarTemplates(const PolarPoints& points, std::int64_t nr, std::int64_t nphi)
    : size_(points.value.dim() > 0 ? points.value.size(0) : 0), nr_(nr), nphi_(nphi) {
  check_points(points, nr, nphi);
  points_ = std::make_shared<const Points>(sorted_points(points, nr, nphi));
}

Tensor PolarTemplates::maps(const Tensor& index, const torch::TensorOptions& options) const {
  if (maps_.defined()) return maps_.index_select(0, index.to(maps_.device())).to(options);
  const auto wanted = index.to(torch::kCPU, torch::kInt64).contiguous();
  const auto count = wanted.size(0), size = nr_ * nphi_;
  auto maps = at::zeros({count, size}, torch::kFloat64);
  const auto* template_of = wanted.const_data_ptr<std::int64_t>();
  const auto* starts = points_->starts.const_data_ptr<std::int64_t>();
  const auto* bins = points_->bins.const_data_ptr<std::int32_t>();
  const auto* values = points_->values.const_data_ptr<double>();
  auto* map = maps.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < count; ++i)
    for (auto k = starts[template_of[i]]; k < starts[template_of[i] + 1]; ++k) map[i * size + bins[k]] = values[k];
  return maps.view({-1, nr_, nphi_}).to(options);
}

}  // namespace mpol
