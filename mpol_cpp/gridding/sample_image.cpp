#include <mpol_cpp/gridding/sample_image.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>

#include <mpol_cpp/core/units.h>

namespace mpol::gridding {
namespace {

constexpr double image_tolerance = 1e-12;
constexpr std::int64_t smallest_part = 64;  // pixels
constexpr std::int64_t smallest_block = std::int64_t{1} << 14, largest_block = std::int64_t{1} << 20;
constexpr std::int64_t bytes_per_sample = 80;  // u, v, values, and a plan while it sorts its points

}  // namespace

SampleImage::SampleImage(const GridCoords& coords, Baselines baselines, std::int64_t working_bytes)
    : coords_(coords), baselines_(std::move(baselines)), parts_(0), part_npix_(0), block_(0) {
  const auto npix = coords_.npix();
  const auto none = at::empty({0}, torch::kFloat64);
  std::int64_t grid_bytes = 0;
  do {
    ++parts_;
    part_npix_ = (npix + 2 * parts_ - 1) / (2 * parts_) * 2;  // even, and all parts together no less than the image
    finish_ = plan_of(none, none);
    const auto part_bytes = parts_ > 1 ? part_npix_ * part_npix_ * static_cast<std::int64_t>(sizeof(double)) : 0;
    grid_bytes = finish_->cells_to_image_bytes() + part_bytes;
  } while (4 * grid_bytes > 3 * working_bytes && part_npix_ / 2 >= smallest_part);
  block_ = std::clamp((working_bytes - grid_bytes) / bytes_per_sample, smallest_block, largest_block);
}

std::unique_ptr<SampleImage::Plan> SampleImage::plan_of(const Tensor& u, const Tensor& v) const {
  const ops::NufftSettings settings{part_npix_, coords_.dl(), image_tolerance};
  return std::make_unique<Plan>(settings, u.const_data_ptr<double>(), v.const_data_ptr<double>(), u.size(0),
                                baselines_.max_abs_u(), baselines_.max_abs_v());
}

/// Adds samples to the cells of the part whose middle is at l, m.
void SampleImage::add_block(const SampleRange& range, const SampleValues& values, double l, double m,
                            const ops::AlignedArray<Plan::Complex>& cells) const {
  auto block = values(range);
  if (l != 0 || m != 0) {
    const auto phase = (range.u * l).add_(range.v * m).mul_(2 * units::pi);
    block.mul_(at::polar(at::ones_like(phase), phase));
  }
  plan_of(range.u, range.v)->add_to(cells, reinterpret_cast<const Plan::Complex*>(block.const_data_ptr<c10::complex<double>>()));
}

/// Makes the part of the image from a row and a column on.
void SampleImage::make_part(const std::vector<std::int64_t>& channels, const SampleValues& values, double scale, std::int64_t row,
                            std::int64_t column, const Tensor& image) const {
  const auto nvis = baselines_.nvis(), shift = (coords_.npix() - part_npix_) / 2;
  const double l = coords_.dl() * static_cast<double>(shift - column), m = coords_.dl() * static_cast<double>(row - shift);
  const auto cells = finish_->empty_cells();
  for (const auto channel : channels) {
    for (std::int64_t begin = 0; begin < nvis; begin += block_) {
      const auto end = std::min(nvis, begin + block_);
      const auto [u, v] = baselines_.block(channel, begin, end);
      add_block({channel, begin, end, u.contiguous(), v.contiguous()}, values, l, m, cells);
    }
  }
  if (parts_ == 1) return finish_->to_image(cells, scale, image.mutable_data_ptr<double>());
  const auto part = at::empty({part_npix_, part_npix_}, torch::kFloat64);
  finish_->to_image(cells, scale, part.mutable_data_ptr<double>());
  image.narrow(0, row, part_npix_).narrow(1, column, part_npix_).copy_(part);
}

void SampleImage::make(const std::vector<std::int64_t>& channels, const SampleValues& values, double scale,
                       const Tensor& image) const {
  const auto last = coords_.npix() - part_npix_;  // where the last part begins; it may overlap the one before
  for (std::int64_t i = 0; i < parts_; ++i) {
    for (std::int64_t j = 0; j < parts_; ++j) {
      make_part(channels, values, scale, std::min(i * part_npix_, last), std::min(j * part_npix_, last), image);
    }
  }
}

}  // namespace mpol::gridding
