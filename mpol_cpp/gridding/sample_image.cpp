#include <mpol_cpp/gridding/sample_image.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>

#include <mpol_cpp/core/units.h>
#include <mpol_cpp/gridding/cells/own_memory.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol::gridding {
namespace {

constexpr std::int64_t smallest_part = 64;  // pixels
constexpr std::int64_t smallest_block = std::int64_t{1} << 14, largest_block = std::int64_t{1} << 20;
constexpr std::int64_t bytes_per_point = 64, bytes_per_value = 16;  // u, v and a plan while it sorts its points; of an image

std::int64_t grids_of(const ImageOfSamples& image) { return image.model.defined() ? 2 : 1; }

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
  Block(std::int64_t size, std::size_t images)
      : u(in_own_memory(size, torch::kFloat64)), v(in_own_memory(size, torch::kFloat64)) {
    values.reserve(images);
    for (std::size_t i = 0; i < images; ++i) values.push_back(in_own_memory(size, torch::kComplexDouble));
  }

  Tensor u, v;
  std::vector<Tensor> values;
};

/// The images [first, last) of those that are asked for.
struct SampleImage::Pass {
  std::span<const ImageOfSamples> images;
  std::size_t first, last;
  std::int64_t block_size;
  const Block& block;
};

SampleImage::SampleImage(const GridCoords& coords, Baselines baselines, std::int64_t working_bytes, Cut cut, double tolerance)
    : coords_(coords),
      baselines_(std::move(baselines)),
      working_bytes_(working_bytes),
      parts_(0),
      part_npix_(0),
      grid_bytes_(0),
      tolerance_(tolerance) {
  const auto npix = coords_.npix();
  const auto none = at::empty({0}, torch::kFloat64);
  do {
    ++parts_;
    part_npix_ = (npix + 2 * parts_ - 1) / (2 * parts_) * 2;  // even, and all parts together no less than the image
    finish_ = plan_of(none, none);
    const auto part_bytes = parts_ > 1 ? part_npix_ * part_npix_ * static_cast<std::int64_t>(sizeof(double)) : 0;
    grid_bytes_ = finish_->cells_to_image_bytes() + part_bytes;
  } while (cut == Cut::allowed && grids_at_once() < 1 && part_npix_ / 2 >= smallest_part);
}

/// Grids that leave a quarter of the working storage to the samples.
std::int64_t SampleImage::grids_at_once() const { return 3 * working_bytes_ / (4 * grid_bytes_); }

std::unique_ptr<SampleImage::Plan> SampleImage::plan_of(const Tensor& u, const Tensor& v) const {
  const ops::NufftSettings settings{part_npix_, coords_.dl(), tolerance_};
  return std::make_unique<Plan>(settings, u.const_data_ptr<double>(), v.const_data_ptr<double>(), u.size(0),
                                baselines_.max_abs_u(), baselines_.max_abs_v());
}

/// Makes the part of the images from a row and a column on.
void SampleImage::make_part(const std::vector<std::int64_t>& channels, const Pass& pass, const SampleValues& values,
                            std::int64_t row, std::int64_t column) const {
  const auto nvis = baselines_.nvis(), shift = (coords_.npix() - part_npix_) / 2;
  const double l = coords_.dl() * static_cast<double>(shift - column), m = coords_.dl() * static_cast<double>(row - shift);
  std::vector<Plan::Cells> sums, models(pass.images.size());
  std::vector<const Plan::Cells*> cells;
  sums.reserve(pass.last - pass.first);
  cells.reserve(pass.last - pass.first);
  for (auto i = pass.first; i < pass.last; ++i) {
    cells.push_back(&sums.emplace_back(finish_->empty_cells()));
    if (const auto& model = pass.images[i].model; model.defined()) {
      models[i] = finish_->empty_cells();
      finish_->to_cells(model.const_data_ptr<double>(), 1, models[i]);
    }
  }
  const auto numbers = [](const Tensor& of_samples) {
    return reinterpret_cast<Plan::Complex*>(of_samples.mutable_data_ptr<c10::complex<double>>());
  };
  std::vector<Tensor> of_samples(pass.images.size());
  std::vector<const Plan::Complex*> to_add(pass.last - pass.first);
  for (const auto channel : channels) {
    for (std::int64_t begin = 0; begin < nvis; begin += pass.block_size) {
      const auto end = std::min(nvis, begin + pass.block_size);
      const auto own = [&](const Tensor& room) { return room.narrow(0, 0, end - begin); };
      const auto u = own(pass.block.u), v = own(pass.block.v);
      baselines_.write_block(channel, begin, end, u, v);
      const auto plan = plan_of(u, v);
      for (auto i = pass.first; i < pass.last; ++i) {
        of_samples[i] = own(pass.block.values[i - pass.first]);
        if (pass.images[i].model.defined()) plan->interpolate(models[i], numbers(of_samples[i]));
      }
      values({channel, begin, end, u, v}, of_samples);
      for (auto i = pass.first; i < pass.last; ++i) {
        if (l != 0 || m != 0) turn(u, v, l, m, of_samples[i]);
        to_add[i - pass.first] = numbers(of_samples[i]);
      }
      plan->add_to(cells, to_add);
    }
  }
  for (auto i = pass.first; i < pass.last; ++i) {
    const auto& [scale, image, model] = pass.images[i];
    const auto& own = sums[i - pass.first];
    if (parts_ == 1) {
      finish_->to_image(own, scale, image.mutable_data_ptr<double>());
      continue;
    }
    const auto part = in_own_memory(part_npix_ * part_npix_, torch::kFloat64).view({part_npix_, part_npix_});
    finish_->to_image(own, scale, part.mutable_data_ptr<double>());
    image.narrow(0, row, part_npix_).narrow(1, column, part_npix_).copy_(part);
  }
}

void SampleImage::make(const std::vector<std::int64_t>& channels, std::span<const ImageOfSamples> images,
                       const SampleValues& values) const {
  const auto last_part = coords_.npix() - part_npix_;  // where the last one begins; it may overlap the one before
  for (std::size_t first = 0, last = 0; first < images.size(); first = last) {
    std::int64_t grids = 0;
    do grids += grids_of(images[last++]);
    while (last < images.size() && grids + grids_of(images[last]) <= grids_at_once());
    const auto bytes_per_sample = bytes_per_point + bytes_per_value * static_cast<std::int64_t>(last - first);
    const auto room = (working_bytes_ - grids * grid_bytes_) / bytes_per_sample;
    const auto size = std::min(std::clamp(room, smallest_block, largest_block), std::max<std::int64_t>(baselines_.nvis(), 1));
    const Block block(size, last - first);
    for (std::int64_t i = 0; i < parts_; ++i) {
      for (std::int64_t j = 0; j < parts_; ++j) {
        const auto row = std::min(i * part_npix_, last_part), column = std::min(j * part_npix_, last_part);
        make_part(channels, {images, first, last, size, block}, values, row, column);
      }
    }
  }
}

}  // namespace mpol::gridding
