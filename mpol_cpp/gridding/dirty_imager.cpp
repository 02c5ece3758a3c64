#include <mpol_cpp/gridding/dirty_imager.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <mutex>
#include <span>
#include <utility>

#include <ATen/ops/complex.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/gridding/cells/cell_sums.h>
#include <mpol_cpp/gridding/density_weights.h>
#include <mpol_cpp/gridding/cells/own_memory.h>
#include <mpol_cpp/gridding/sample_density.h>
#include <mpol_cpp/gridding/sample_image.h>
#include <mpol_cpp/gridding/sky_image.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol {
namespace {

/// What fine grids and blocks of samples may take of the 64 MiB that are promised; the allocator keeps much of the rest at times.
constexpr std::int64_t promised_bytes = std::int64_t{36} << 20;

Tensor taper_at(const Taper& taper, const Tensor& u, const Tensor& v) {
  auto values = taper(u, v).to(torch::kFloat64);
  if (values.sizes() != u.sizes()) {
    throw ShapeError(fmt::format("the taper made shape ({}) of u and v of shape ({}); it must keep it",
                                 fmt::join(values.sizes(), ", "), fmt::join(u.sizes(), ", ")));
  }
  return values;
}

/// u and v at the centres of cells, wavelengths.
std::pair<Tensor, Tensor> cell_centers(const GridCoords& coords, const Tensor& cells) {
  const auto npix = coords.npix();
  const auto centered = [&](const Tensor& packed) {
    return at::where(packed >= npix / 2, packed - npix, packed).to(torch::kFloat64) * coords.du();
  };
  return {centered(cells.remainder(npix)), centered(cells.floor_divide(npix).remainder(npix))};
}

std::span<const std::int64_t> integers(const Tensor& values, std::int64_t begin, std::int64_t end) {
  return {values.const_data_ptr<std::int64_t>() + begin, static_cast<std::size_t>(end - begin)};
}
std::span<const double> reals(const Tensor& values, std::int64_t begin, std::int64_t end) {
  return {values.const_data_ptr<double>() + begin, static_cast<std::size_t>(end - begin)};
}
std::span<const c10::complex<double>> complexes(const Tensor& values, std::int64_t begin, std::int64_t end) {
  return {values.const_data_ptr<c10::complex<double>>() + begin, static_cast<std::size_t>(end - begin)};
}

Tensor on_cpu(const Tensor& values, torch::Dtype dtype) {
  return values.detach().to(torch::kCPU, dtype).resolve_conj().contiguous();
}

/// Calls use(k) for all samples, on several threads.
template <typename Use>
void each_sample(std::int64_t count, const Use& use) {
  constexpr std::int64_t grain = 8192;
  ops::share_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
    for (auto k = begin; k < end; ++k) use(k);
  });
}

/// Multiplies complex128 values by real ones, float64.
void multiply_by(const Tensor& values, const Tensor& factors) {
  auto* products = values.mutable_data_ptr<c10::complex<double>>();
  const auto* factor = factors.const_data_ptr<double>();
  each_sample(values.size(0), [&](std::int64_t k) { products[k] *= factor[k]; });
}

/// Room for the samples of one range after the other.
struct SampleRoom {
  VisibilityBlock block_of(const Visibilities& visibilities, const gridding::SampleRange& range) {
    const auto count = range.end - range.begin;
    if (!data.defined() || data.size(0) < count) {
      data = gridding::in_own_memory(count, torch::kComplexDouble);
      weights = gridding::in_own_memory(count, torch::kFloat64);
    }
    const auto given = [&](const Tensor& all) { return all.select(0, range.channel).slice(0, range.begin, range.end).detach(); };
    return {range.u, range.v, data.narrow(0, 0, count).copy_(given(visibilities.data())),
            weights.narrow(0, 0, count).copy_(given(visibilities.weights()))};
  }

  Tensor data, weights;
};

/// What compare() makes.
enum Compared : std::size_t { of_data, of_beam, of_residual, compared };

}  // namespace

/// Beam shapes, measured when first asked for.
struct DirtyImager::Cache {
  std::once_flag measured;
  std::vector<BeamShape> shapes;
};

/// What exact images are made of.
struct DirtyImager::Samples {
  Visibilities visibilities;  // shares the storage of what was given
  ChannelMap channels;
  gridding::SampleImage transform;
  std::int64_t working_bytes;
};

DirtyImager::DirtyImager(const GridCoords& coords, std::int64_t nchan, DirtyImagerOptions options)
    : coords_(coords), nchan_(nchan), options_(std::move(options)), cache_(std::make_shared<Cache>()) {
  const double robust = options_.robust();
  if (options_.weighting() == Weighting::briggs && !(robust >= -2 && robust <= 2)) {
    throw ValueError(fmt::format("robust is {}; it must lie in -2 (nearly uniform) to 2 (nearly natural)", robust));
  }
}

DirtyImager::DirtyImager(const GridCoords& coords, const Visibilities& visibilities, DirtyImagerOptions options)
    : DirtyImager(coords, options.channel_map() ? options.channel_map()->nchan() : visibilities.nchan(), options) {
  const auto map = options_.channel_map().value_or(ChannelMap::cube(visibilities.nchan()));
  sum_cells(visibilities, map);
  if (options_.imaging() != Imaging::cells) keep_samples(visibilities, map);
}

DirtyImager::DirtyImager(const GriddedDataset& averages, const Visibilities& visibilities, DirtyImagerOptions options)
    : DirtyImager(averages->coords(), averages->nchan(), std::move(options)) {
  options_.imaging(Imaging::exact);
  const auto map = options_.channel_map().value_or(ChannelMap::cube(visibilities.nchan()));
  map.check_sources(visibilities.nchan());
  if (map.nchan() != nchan_)
    throw ValueError(fmt::format(
        "the averages have {} image channels, the channel map has {}: give the map that they were made by", nchan_, map.nchan()));
  if (options_.taper()) sum_cells(visibilities, map);
  else take_averages(averages);
  keep_samples(visibilities, map);
}

/// Only cells and their density weights are needed of averages from here on.
void DirtyImager::keep_samples(const Visibilities& visibilities, const ChannelMap& map) {
  visibilities_ = imaging_weights_ = Tensor();
  if (options_.weighting() == Weighting::natural) density_ = Tensor();  // 1
  const auto working_bytes = options_.working_bytes().value_or(promised_bytes + visibilities.memory_bytes() / 11);
  gridding::SampleImage transform(coords_, visibilities.baselines(), working_bytes, gridding::SampleImage::Cut::allowed,
                                  options_.tolerance());
  samples_ = std::make_shared<Samples>(Samples{visibilities, map, std::move(transform), working_bytes});
}

/// One pass over the data, two with a taper.
void DirtyImager::sum_cells(const Visibilities& visibilities, const ChannelMap& map) {
  const auto& taper = options_.taper();
  gridding::CellSumOptions of_data;
  if (taper) {
    of_data.transform = [&](const Tensor& u, const Tensor& v, const Tensor& data) { return taper_at(taper, u, v) * data; };
  }
  auto sums = gridding::sum_cells(coords_, visibilities, map, of_data);
  cells_ = std::move(sums.cells);
  visibilities_ = std::move(sums.averages);
  if (!taper) {
    scatter_ = sums.scatter;
    weigh(sums.weights, sums.weights, sums.weights);
    return;
  }
  gridding::CellSumOptions of_taper;
  of_taper.transform = [&](const Tensor& u, const Tensor& v, const Tensor&) {
    const auto values = taper_at(taper, u, v);
    return at::complex(values, values.square());
  };
  const auto response = at::view_as_real(gridding::sum_cells(coords_, visibilities, map, of_taper).averages);
  const auto mean_taper = response.select(1, 0), mean_square = response.select(1, 1);
  visibilities_ = at::where(mean_taper != 0, visibilities_ / mean_taper, at::zeros({}, torch::kComplexDouble));
  weigh(sums.weights, sums.weights * mean_taper, sums.weights * mean_square);
}

DirtyImager::DirtyImager(const GriddedDataset& dataset, DirtyImagerOptions options)
    : DirtyImager(dataset->coords(), dataset->nchan(), std::move(options)) {
  if (options_.channel_map())
    throw ValueError("the data are gridded already: a channel map belongs to the DataAverager that gridded them");
  options_.imaging(Imaging::cells);
  take_averages(dataset);
}

/// With a taper at the centres of the cells.
void DirtyImager::take_averages(const GriddedDataset& averages) {
  cells_ = on_cpu(averages->cells(), torch::kInt64);
  visibilities_ = on_cpu(averages->visibilities(), torch::kComplexDouble);
  const auto weights = on_cpu(averages->weights(), torch::kFloat64);
  if (!options_.taper()) return weigh(weights, weights, weights);
  const auto [u, v] = cell_centers(coords_, cells_);
  const auto taper = taper_at(options_.taper(), u, v);
  weigh(weights, weights * taper, weights * taper.square());
}

/// From sum w, sum T w and sum T^2 w of each cell to D, C and noise.
void DirtyImager::weigh(const Tensor& cell_weights, const Tensor& tapered, const Tensor& tapered_twice) {
  const auto per_plane = coords_.npix() * coords_.npix();
  const auto all = integers(cells_, 0, cells_.size(0));
  for (std::int64_t channel = 0; channel <= nchan_; ++channel) {
    first_cell_.push_back(std::lower_bound(all.begin(), all.end(), channel * per_plane) - all.begin());
  }
  normalization_ = at::empty({nchan_}, torch::kFloat64);
  noise_ = at::empty({nchan_}, torch::kFloat64);
  density_ = at::empty_like(cell_weights);
  for (std::int64_t channel = 0; channel < nchan_; ++channel) {
    const auto [begin, end] = cells_of(channel);
    const std::span density(density_.mutable_data_ptr<double>() + begin, static_cast<std::size_t>(end - begin));
    const auto once = reals(tapered, begin, end), twice = reals(tapered_twice, begin, end);
    gridding::density_weights(coords_.npix(), integers(cells_, begin, end), reals(cell_weights, begin, end), options_.weighting(),
                              options_.robust(), density);
    double sum = 0, variance = 0;
    for (std::size_t k = 0; k < density.size(); ++k) {
      variance += density[k] * density[k] * twice[k];
      sum += density[k] * once[k];
    }
    if (!density.empty() && !(sum > 0)) {
      throw DataError(
          fmt::format("the taper leaves channel {} no weight (its sum is {}): widen it in the uv plane", channel, sum));
    }
    normalization_[channel] = 0.5 / sum;
    noise_[channel] = std::sqrt(variance) / sum;
  }
  if (options_.imaging() == Imaging::cells) imaging_weights_ = density_ * tapered;
}

std::pair<std::int64_t, std::int64_t> DirtyImager::cells_of(std::int64_t channel) const {
  return {first_cell_[static_cast<std::size_t>(channel)], first_cell_[static_cast<std::size_t>(channel) + 1]};
}

double DirtyImager::unit_factor(std::int64_t channel) const {
  return options_.unit() == ImageUnit::jy_per_arcsec2 ? 1 / shapes()[static_cast<std::size_t>(channel)].area : 1;
}

void DirtyImager::make_image_of_cells(std::int64_t channel, const Tensor& visibilities, double scale,
                                      const Tensor& storage) const {
  const auto [begin, end] = cells_of(channel);
  gridding::WeightedCells cells{
      integers(cells_, begin, end), reals(imaging_weights_, begin, end), {}, scale * normalization_[channel].item<double>()};
  if (visibilities.defined()) cells.visibilities = complexes(visibilities, begin, end);
  gridding::make_sky_image(cells, coords_.npix(), storage);
}

const std::vector<std::int64_t>& DirtyImager::sources_of(std::int64_t channel) const {
  return samples_->channels.sources[static_cast<std::size_t>(channel)];
}

/// T D w of the samples of an image channel.
struct DirtyImager::SampleWeights {
  SampleWeights(const DirtyImager& own, std::int64_t channel) : imager(own) {
    const auto [begin, end] = own.cells_of(channel);
    if (!own.density_.defined()) return;
    density.emplace(own.coords_, integers(own.cells_, begin, end), reals(own.density_, begin, end));
  }

  /// (n) float64.
  Tensor of(const gridding::SampleRange& range) const {
    const auto given = imager.samples_->visibilities.weights().select(0, range.channel).slice(0, range.begin, range.end);
    const auto weights = at::empty({range.end - range.begin}, torch::kFloat64).copy_(given.detach());
    if (density) density->multiply(range.u, range.v, weights);
    if (const auto& taper = imager.options_.taper()) weights.mul_(taper_at(taper, range.u, range.v).to(torch::kCPU));
    return weights;
  }

  const DirtyImager& imager;
  std::optional<gridding::SampleDensity> density;
};

void DirtyImager::make_image_of_samples(std::int64_t channel, const VisibilityBlocks& visibilities, double scale,
                                        const Tensor& storage) const {
  const SampleWeights weights(*this, channel);
  const auto values = [&](const gridding::SampleRange& range, std::span<const Tensor> weighted) {
    const auto block = visibilities(range.channel, range.begin, range.end);
    if (!block.is_complex() || block.dim() != 1 || block.size(0) != range.end - range.begin) {
      throw ShapeError(fmt::format("a block of visibilities has shape ({}) and dtype {}; complex ({}) is needed",
                                   fmt::join(block.sizes(), ", "), c10::toString(block.scalar_type()), range.end - range.begin));
    }
    weighted[0].copy_(block.detach());
    multiply_by(weighted[0], weights.of(range));
  };
  const auto npix = coords_.npix();
  const gridding::ImageOfSamples image{.scale = 2 * scale * normalization_[channel].item<double>(),
                                       .image = storage.narrow(0, 0, npix * npix).view({npix, npix})};
  samples_->transform.make(sources_of(channel), {&image, 1}, values);
}

ComparedImages DirtyImager::compare(const Tensor& sky, const std::function<void(const ComparedSamples&)>& use,
                                    const ImageSum& sum) const {
  const auto npix = coords_.npix();
  if (!samples_) throw ValueError("models are compared with samples; images of cells have none");
  if (sky.sizes() != at::IntArrayRef({nchan_, npix, npix}) || sky.scalar_type() != torch::kFloat64 || !sky.is_cpu()) {
    throw ShapeError(fmt::format("a model image has shape ({}) and dtype {} on {}; float64 ({}, {}, {}) on the CPU is needed",
                                 fmt::join(sky.sizes(), ", "), c10::toString(sky.scalar_type()), sky.device().str(), nchan_, npix,
                                 npix));
  }
  const auto cube = [&] { return gridding::in_own_memory(nchan_ * npix * npix, torch::kFloat64).view({nchan_, npix, npix}); };
  const ComparedImages images{cube(), cube()};
  const auto beam = gridding::in_own_memory(npix * npix, torch::kFloat64).view({npix, npix});
  const gridding::SampleImage transform(coords_, samples_->visibilities.baselines(), samples_->working_bytes,
                                        gridding::SampleImage::Cut::none, options_.tolerance());
  std::vector<BeamShape> shapes;
  shapes.reserve(static_cast<std::size_t>(nchan_));
  SampleRoom room;
  for (std::int64_t channel = 0; channel < nchan_; ++channel) {
    const SampleWeights weights(*this, channel);
    const auto scale = 2 * normalization_[channel].item<double>();
    std::array<gridding::ImageOfSamples, compared> made;
    made[of_data] = {.scale = scale, .image = images.image[channel]};
    made[of_beam] = {.scale = scale, .image = beam};
    made[of_residual] = {
        .scale = scale, .image = images.residual[channel], .model = (sky[channel] * coords_.cell_area()).contiguous()};
    const auto values = [&](const gridding::SampleRange& range, std::span<const Tensor> sums) {
      const auto weighted = [&](Compared which) {
        return sums[which].defined() ? sums[which].mutable_data_ptr<c10::complex<double>>() : nullptr;
      };
      auto *of_samples = weighted(of_data), *ones = weighted(of_beam), *rest = weighted(of_residual);
      const auto given = weights.of(range);
      const auto* weight = given.const_data_ptr<double>();
      const auto block = room.block_of(samples_->visibilities, range);
      const auto* data = block.data.const_data_ptr<c10::complex<double>>();
      if (rest != nullptr) use({range.channel, range.begin, block, sums[of_residual]});
      each_sample(range.end - range.begin, [&](std::int64_t k) {
        if (of_samples != nullptr) of_samples[k] = weight[k] * data[k];
        if (ones != nullptr) ones[k] = weight[k];
        if (rest != nullptr) rest[k] = weight[k] * (data[k] - rest[k]);
      });
    };
    transform.make(sources_of(channel), made, values);
    for (auto& image : made) {
      if (sum) sum(image.image);
    }
    shapes.push_back(measure_beam(beam, coords_.cell_size()));
  }
  std::call_once(cache_->measured, [&] { cache_->shapes = std::move(shapes); });
  return images;
}

void DirtyImager::make_beam(std::int64_t channel, const Tensor& storage) const {
  if (!samples_) return make_image_of_cells(channel, {}, 1, storage);
  const auto ones = [](std::int64_t, std::int64_t begin, std::int64_t end) {
    return at::ones({end - begin}, torch::kComplexDouble);
  };
  make_image_of_samples(channel, ones, 1, storage);
}

Tensor DirtyImager::make_images(const std::function<void(std::int64_t, const Tensor&)>& make_image) const {
  const auto npix = coords_.npix(), pixels = npix * npix;
  // The working storage of a channel reaches a little into the next one, which is made afterwards.
  const auto storage = gridding::in_own_memory(nchan_ * pixels + gridding::sky_image_storage(npix) - pixels, torch::kFloat64);
  for (std::int64_t channel = 0; channel < nchan_; ++channel) {
    make_image(channel, storage.narrow(0, channel * pixels, gridding::sky_image_storage(npix)));
  }
  return storage.narrow(0, 0, nchan_ * pixels).view({nchan_, npix, npix});
}

Tensor DirtyImager::image() const {
  if (!samples_) return image_of(visibilities_);
  const auto& data = samples_->visibilities.data();
  return image_of([&data](std::int64_t channel, std::int64_t begin, std::int64_t end) {
    return data.select(0, channel).slice(0, begin, end);
  });
}

Tensor DirtyImager::image_of(const VisibilityBlocks& visibilities) const {
  if (!samples_) throw ValueError("images of cells take one visibility for each cell; make exact ones of visibilities in blocks");
  return make_images([&](std::int64_t channel, const Tensor& storage) {
    make_image_of_samples(channel, visibilities, unit_factor(channel), storage);
  });
}

Tensor DirtyImager::image_of(const Tensor& visibilities) const {
  const auto expected = samples_ ? samples_->visibilities.data().sizes() : cells_.sizes();
  if (visibilities.sizes() != expected || !visibilities.is_complex()) {
    throw ShapeError(fmt::format("visibilities have shape ({}) and dtype {}; complex ({}) is needed, one for each {}",
                                 fmt::join(visibilities.sizes(), ", "), c10::toString(visibilities.scalar_type()),
                                 fmt::join(expected, ", "), samples_ ? "sample" : "occupied cell"));
  }
  if (samples_) {
    return image_of([&](std::int64_t channel, std::int64_t begin, std::int64_t end) {
      return visibilities.select(0, channel).slice(0, begin, end);
    });
  }
  const auto in_cells = on_cpu(visibilities, torch::kComplexDouble);
  return make_images([&](std::int64_t channel, const Tensor& storage) {
    make_image_of_cells(channel, in_cells, unit_factor(channel), storage);
  });
}

Tensor DirtyImager::beam() const {
  auto beams = make_images([&](std::int64_t channel, const Tensor& storage) { make_beam(channel, storage); });
  std::call_once(cache_->measured, [&] {
    std::vector<BeamShape> shapes;  // as in shapes(): all or none
    for (std::int64_t c = 0; c < nchan_; ++c) shapes.push_back(measure_beam(beams[c], coords_.cell_size()));
    cache_->shapes = std::move(shapes);
  });
  return beams;
}

const std::vector<BeamShape>& DirtyImager::shapes() const {
  std::call_once(cache_->measured, [&] {
    const auto npix = coords_.npix();
    const auto storage = gridding::in_own_memory(gridding::sky_image_storage(npix), torch::kFloat64);
    std::vector<BeamShape> shapes;  // a channel that throws leaves none behind: the next call measures all again
    for (std::int64_t channel = 0; channel < nchan_; ++channel) {
      make_beam(channel, storage);
      shapes.push_back(measure_beam(storage.narrow(0, 0, npix * npix).view({npix, npix}), coords_.cell_size()));
    }
    cache_->shapes = std::move(shapes);
  });
  return cache_->shapes;
}

Tensor DirtyImager::normalization() const { return normalization_.clone(); }

Tensor DirtyImager::noise() const { return options_.unit() == ImageUnit::jy_per_arcsec2 ? noise_ / beam_area() : noise_.clone(); }

Tensor DirtyImager::beam_area() const {
  auto areas = at::empty({nchan_}, torch::kFloat64);
  for (std::int64_t channel = 0; channel < nchan_; ++channel) areas[channel] = shapes()[static_cast<std::size_t>(channel)].area;
  return areas;
}

Tensor DirtyImager::peak_sidelobe() const {
  auto levels = at::empty({nchan_}, torch::kFloat64);
  for (std::int64_t channel = 0; channel < nchan_; ++channel)
    levels[channel] = shapes()[static_cast<std::size_t>(channel)].peak_sidelobe;
  return levels;
}

std::vector<std::optional<Beam>> DirtyImager::fitted_beam() const {
  std::vector<std::optional<Beam>> beams;
  for (const auto& shape : shapes()) beams.push_back(shape.gaussian);
  return beams;
}

}  // namespace mpol
