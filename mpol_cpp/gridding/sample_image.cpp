#include <mpol_cpp/gridding/sample_image.h>

#include <algorithm>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/cells/own_memory.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::gridding {
namespace {

constexpr double image_tolerance = 1e-12;
constexpr std::int64_t smallest_part = 64;  // pixels
constexpr std::int64_t smallest_block = std::int64_t{1} << 14, largest_block = std::int64_t{1} << 20;
constexpr std::int64_t bytes_per_sample = 80;  // u, v, values, and a plan while it sorts its points

/// Turns the phases of samples by those of a sky position l, m.
void turn(const Tensor& u, const Tensor& v, double l, double m, const Tensor& values) {
  constexpr std::int64_t chunk = 8192;  // small enough for what is made on the way to stay in a cache
  const auto count = values.size(0);
  ops::share_tasks((count + chunk - 1) / chunk, 1, [&](std::int64_t i, std::int64_t) {
    const auto own = [&](const Tensor& of_samples) { return of_samples.slice(0, i * chunk, std::min(count, (i + 1) * chunk)); };
    const auto phase = (own(u) * l).add_(own(v) * m).mul_(2 * units::pi);
    own(values).mul_(at::polar(at::ones_like(phase), phase));
  });
}

}  // namespace

/// Room for the samples of a block, the same for all: what the allocator is asked for again and again wanders through its heap.
struct SampleImage::Block {
  explicit Block(std::int64_t size)
      : u(in_own_memory(size, torch::kFloat64)),
        v(in_own_memory(size, torch::kFloat64)),
        values(in_own_memory(size, torch::kComplexDouble)) {}

  Tensor u, v, values;
};

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

/// Makes the part of the image from a row and a column on.
void SampleImage::make_part(const std::vector<std::int64_t>& channels, const SampleValues& values, double scale, std::int64_t row,
                            std::int64_t column, const Tensor& image, const Block& block) const {
  const auto nvis = baselines_.nvis(), shift = (coords_.npix() - part_npix_) / 2;
  const double l = coords_.dl() * static_cast<double>(shift - column), m = coords_.dl() * static_cast<double>(row - shift);
  const auto cells = finish_->empty_cells();
  for (const auto channel : channels) {
    for (std::int64_t begin = 0; begin < nvis; begin += block_) {
      const auto end = std::min(nvis, begin + block_);
      const auto own = [&](const Tensor& room) { return room.narrow(0, 0, end - begin); };
      const auto u = own(block.u), v = own(block.v), of_samples = own(block.values);
      baselines_.write_block(channel, begin, end, u, v);
      values({channel, begin, end, u, v}, of_samples);
      if (l != 0 || m != 0) turn(u, v, l, m, of_samples);
      plan_of(u, v)->add_to(cells, reinterpret_cast<const Plan::Complex*>(of_samples.const_data_ptr<c10::complex<double>>()));
    }
  }
  if (parts_ == 1) return finish_->to_image(cells, scale, image.mutable_data_ptr<double>());
  const auto part = in_own_memory(part_npix_ * part_npix_, torch::kFloat64).view({part_npix_, part_npix_});
  finish_->to_image(cells, scale, part.mutable_data_ptr<double>());
  image.narrow(0, row, part_npix_).narrow(1, column, part_npix_).copy_(part);
}

void SampleImage::make(const std::vector<std::int64_t>& channels, const SampleValues& values, double scale,
                       const Tensor& image) const {
  const Block block(std::min(block_, baselines_.nvis()));
  const auto last = coords_.npix() - part_npix_;  // where the last part begins; it may overlap the one before
  for (std::int64_t i = 0; i < parts_; ++i) {
    for (std::int64_t j = 0; j < parts_; ++j) {
      make_part(channels, values, scale, std::min(i * part_npix_, last), std::min(j * part_npix_, last), image, block);
    }
  }
}

}  // namespace mpol::gridding
