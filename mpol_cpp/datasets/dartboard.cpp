#include <mpol_cpp/datasets/dartboard.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/coordinates/loglinspace.h>
#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>

namespace mpol {
namespace {

constexpr std::int64_t default_log_rings = 8, default_linear_rings = 5, default_sectors = 8;
constexpr double angle_rounding = 1e-12;  // radian; two cells of a grid differ by more, or not at all

std::vector<double> equal_sectors(std::int64_t count) {
  std::vector<double> edges;
  for (std::int64_t i = 0; i <= count; ++i) edges.push_back(units::pi * static_cast<double>(i) / static_cast<double>(count));
  return edges;
}

void check_edges(const std::vector<double>& edges, const char* name, const char* unit) {
  const bool finite = std::all_of(edges.begin(), edges.end(), [](double edge) { return std::isfinite(edge); });
  const bool increase = std::adjacent_find(edges.begin(), edges.end(), std::greater_equal<>()) == edges.end();
  if (edges.size() < 2 || edges.front() != 0 || !finite || !increase) {
    throw ValueError(
        fmt::format("{} edges are {} {}; they must start at 0 and increase strictly", name, fmt::join(edges, ", "), unit));
  }
}

/// The bin whose half-open interval holds the value; the number of bins or more beyond the last edge.
std::int64_t bin_between(const std::vector<double>& edges, double value) {
  return std::upper_bound(edges.begin(), edges.end(), value) - edges.begin() - 1;
}

}  // namespace

Dartboard::Dartboard(GridCoords coords, DartboardOptions options)
    : coords_(coords), q_edges_(std::move(options.q_edges())), phi_edges_(std::move(options.phi_edges())) {
  if (q_edges_.empty()) q_edges_ = loglinspace(0, coords_.q_max(), default_log_rings, default_linear_rings);
  if (phi_edges_.empty()) phi_edges_ = equal_sectors(default_sectors);
  check_edges(q_edges_, "q", "wavelengths");
  check_edges(phi_edges_, "phi", "radian");
  if (std::abs(phi_edges_.back() - units::pi) > angle_rounding) {
    throw ValueError(
        fmt::format("the last phi edge is {} radian; it must be pi, so that every direction has a sector", phi_edges_.back()));
  }
}

std::int64_t Dartboard::bin_of(std::int64_t packed_row, std::int64_t packed_column) const {
  const auto npix = coords_.npix();
  auto u = packed_column < npix / 2 ? packed_column : packed_column - npix;
  auto v = packed_row < npix / 2 ? packed_row : packed_row - npix;
  if (v < 0 || (v == 0 && u < 0)) {
    u = -u;
    v = -v;
  }
  const double q = coords_.du() * std::hypot(static_cast<double>(u), static_cast<double>(v));
  const double phi = std::atan2(static_cast<double>(v), static_cast<double>(u));  // [0, pi)
  const auto ring = bin_between(q_edges_, q);
  if (ring >= q_bins()) return -1;
  return ring * phi_bins() + std::min(bin_between(phi_edges_, phi + angle_rounding), phi_bins() - 1);
}

Tensor Dartboard::bins_of(const Tensor& cells) const {
  const auto indices = cells.to(torch::kCPU, torch::kInt64).contiguous();
  const auto bins = at::empty_like(indices);
  const auto* from = indices.const_data_ptr<std::int64_t>();
  auto* to = bins.mutable_data_ptr<std::int64_t>();
  const auto npix = coords_.npix();
  for (std::int64_t i = 0; i < indices.numel(); ++i) to[i] = bin_of(from[i] / npix % npix, from[i] % npix);
  return bins;
}

Tensor Dartboard::histogram(const GriddedDataset& dataset) const {
  if (!(dataset->coords() == coords_)) {
    throw ShapeError(
        fmt::format("the dataset has {} pixels of {}\", the dartboard {} of {}\"; make both from the same GridCoords",
                    dataset->coords().npix(), dataset->coords().cell_size(), coords_.npix(), coords_.cell_size()));
  }
  const auto plane = (dataset->cells().to(torch::kCPU) % (coords_.npix() * coords_.npix())).contiguous();
  std::vector<std::int64_t> occupied(plane.const_data_ptr<std::int64_t>(), plane.const_data_ptr<std::int64_t>() + plane.numel());
  std::sort(occupied.begin(), occupied.end());
  occupied.erase(std::unique(occupied.begin(), occupied.end()), occupied.end());
  auto counts = at::zeros({q_bins(), phi_bins()}, torch::kInt64);
  auto* count = counts.mutable_data_ptr<std::int64_t>();
  for (const auto cell : occupied) {
    const auto bin = bin_of(cell / coords_.npix(), cell % coords_.npix());
    if (bin >= 0) ++count[bin];
  }
  return counts;
}

}  // namespace mpol
