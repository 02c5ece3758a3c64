#include <mpol_cpp/gridding/sample_density.h>

#include <algorithm>

#include <mpol_cpp/gridding/cells/visit_cells.h>

namespace mpol::gridding {
namespace {

constexpr std::int64_t largest_plane = 1024;  // pixels along an axis: 8 MiB

}  // namespace

SampleDensity::SampleDensity(const GridCoords& coords, std::span<const std::int64_t> cells, std::span<const double> density)
    : coords_(coords), first_of_plane_(0), cells_(cells), density_(density) {
  const auto npix = coords.npix();
  if (!cells.empty()) first_of_plane_ = cells.front() / (npix * npix) * npix * npix;
  if (npix <= largest_plane) {
    plane_.resize(static_cast<std::size_t>(npix * npix));
    for (std::size_t i = 0; i < cells.size(); ++i) plane_[static_cast<std::size_t>(cells[i] - first_of_plane_)] = density[i];
    return;
  }
  for (std::int64_t row = 0; row <= npix; ++row) {
    row_begin_.push_back(std::lower_bound(cells.begin(), cells.end(), first_of_plane_ + row * npix) - cells.begin());
  }
}

double SampleDensity::at(std::size_t cell) const {
  if (!plane_.empty()) return plane_[cell];
  const auto row = cell / static_cast<std::size_t>(coords_.npix());
  const auto begin = cells_.begin() + row_begin_[row], end = cells_.begin() + row_begin_[row + 1];
  const auto own = std::lower_bound(begin, end, first_of_plane_ + static_cast<std::int64_t>(cell));
  return density_[static_cast<std::size_t>(own - cells_.begin())];
}

void SampleDensity::multiply(const Tensor& u, const Tensor& v, const Tensor& numbers) const {
  auto* of_samples = numbers.mutable_data_ptr<double>();
  visit_samples(coords_, u, v, CellOrder::packed, [&](std::int64_t sample, std::size_t cell) { of_samples[sample] *= at(cell); });
}

}  // namespace mpol::gridding
