#include <mpol_cpp/analysis/dirty_products.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/ops/fft_fft2.h>
#include <ATen/ops/full.h>
#include <ATen/ops/hypot.h>

#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/distributed/sum_visited.h>
#include <mpol_cpp/gridding/compared_memory.h>
#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

namespace mpol {
namespace {

/// Images are written in float32.
constexpr double tolerance_of_products = 1e-9;

DirtyImagerOptions options_of_products() {
  return DirtyImagerOptions().weighting(Weighting::briggs).robust(0.5).tolerance(tolerance_of_products);
}

DirtyImager imager_of(const FitData& data, ImageUnit unit) {
  const auto options = options_of_products().unit(unit);
  if (data.imaging == Imaging::cells) return DirtyImager(data.dataset, options);
  return DirtyImager(
      data.dataset, data.visibilities,
      DirtyImagerOptions(options).channel_map(data.channels).working_bytes(gridding::storage_to_compare(data.coords().npix())));
}

FitRemainder remainder_of(const ResidualSums& sums) {
  return {.statistics = sums.statistics(),
          .parts = {},
          .histogram = sums.histogram(),
          .wide = sums.wide(),
          .slope = {},
          .lengths = {}};
}

/// Calls visit(index, first, last) with the ranges that have samples of [begin, end), and which these are, counted from `begin`.
template <typename Visit>
void each_range(const std::vector<SampleRange>& ranges, std::int64_t begin, std::int64_t end, const Visit& visit) {
  auto range = std::partition_point(ranges.begin(), ranges.end(), [&](const SampleRange& all) { return all.end <= begin; });
  for (; range != ranges.end() && range->begin < end; ++range)
    visit(static_cast<std::size_t>(range - ranges.begin()), std::max(begin, range->begin) - begin,
          std::min(end, range->end) - begin);
}

/// Amplitudes of samples of several frequencies that make one image: of the channels of the data, or of its parts.
class FrequencySums {
 public:
  /// @param samples  of a channel, of all of whom sums will be added up
  FrequencySums(const FitData& fit, std::int64_t samples)
      : parts_(fit.parts), by_parts_(fit.visibilities.nchan() == 1), amplitudes_(groups_of(fit, samples)) {}

  /// @param begin  of the samples among those of their channel
  void add(std::int64_t channel, std::int64_t begin, const Tensor& model, const VisibilityBlock& samples) {
    if (!amplitudes_) return;
    if (!by_parts_) return amplitudes_->add(static_cast<std::size_t>(channel), model, samples.data, samples.weights);
    each_range(parts_, begin, begin + model.numel(), [&](std::size_t part, std::int64_t first, std::int64_t last) {
      amplitudes_->add(part, model.slice(0, first, last), samples.data.slice(0, first, last),
                       samples.weights.slice(0, first, last));
    });
  }
  template <typename Visit>
  void visit_sums(const Visit& visit) {
    if (amplitudes_) amplitudes_->visit_sums(visit);
  }
  std::optional<SpectralSlope> slope() const { return amplitudes_ ? amplitudes_->slope() : std::nullopt; }

 private:
  /// Nothing where there is one frequency, or each makes its own image.
  static std::optional<FrequencyAmplitudes> groups_of(const FitData& fit, std::int64_t samples) {
    if (fit.channels.nchan() != 1) return std::nullopt;
    std::vector<FrequencyAmplitudes::Group> groups;
    const auto& visibilities = fit.visibilities;
    if (visibilities.nchan() == 1) {
      groups.reserve(fit.parts.size());
      for (const auto& part : fit.parts) groups.push_back({part.frequency, part.end - part.begin});
    } else if (visibilities.frequencies().defined()) {
      groups.reserve(static_cast<std::size_t>(visibilities.nchan()));
      for (std::int64_t c = 0; c < visibilities.nchan(); ++c)
        groups.push_back({visibilities.frequencies()[c].item<double>(), samples});
    }
    return groups.size() > 1 ? std::optional<FrequencyAmplitudes>(groups) : std::nullopt;
  }

  const std::vector<SampleRange>& parts_;
  bool by_parts_;
  std::optional<FrequencyAmplitudes> amplitudes_;
};

/// Residuals of each part of the data. Each sample is of one part, or of none; parts of one name are one.
class PartSums {
 public:
  /// @param ranges  in their order
  explicit PartSums(const std::vector<SampleRange>& ranges) : ranges_(ranges) {
    for (const auto& range : ranges) {
      const auto found = std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.name == range.name; });
      place_.push_back(static_cast<std::size_t>(found - parts_.begin()));
      if (found == parts_.end()) parts_.push_back({.name = range.name, .counts = {}});
      parts_[place_.back()].samples += range.end - range.begin;
    }
  }

  /// @param begin  of the samples among those of their channel
  void add(std::int64_t begin, const Tensor& residual, const Tensor& weights) {
    each_range(ranges_, begin, begin + residual.numel(), [&](std::size_t range, std::int64_t first, std::int64_t last) {
      auto& part = parts_[place_[range]];
      const auto own = weights.slice(0, first, last);
      part.counts.add(residual.slice(0, first, last), own);
      part.weight += own.sum().item<double>();
      part.seen += static_cast<double>(last - first);
    });
  }
  template <typename Visit>
  void visit_sums(const Visit& visit) {
    for (auto& part : parts_) {
      part.counts.visit_sums(visit);
      for (double* sum : {&part.weight, &part.seen}) visit(sum, std::size_t{1});
    }
  }
  void add_to(ResidualSums& sums) const {
    for (const auto& part : parts_) sums.add_counted(part.counts);
  }
  std::vector<PartResiduals> residuals(std::int64_t nchan) const {
    std::vector<PartResiduals> all;
    for (const auto& part : parts_) {
      all.push_back({part.name, part.samples * nchan, part.weight / std::max(part.seen, 1.0), part.counts.statistics()});
    }
    return all;
  }

 private:
  struct Part {
    std::string name;
    std::int64_t samples = 0;     // of each channel
    double seen = 0, weight = 0;  // of all channels, as often as they came by; the sum of these
    ResidualCounts counts;
  };

  const std::vector<SampleRange>& ranges_;
  std::vector<std::size_t> place_;  // of each range, among the parts
  std::vector<Part> parts_;
};

/// What products are made of beside their images: sums over the samples of all channels.
struct ProductSums {
  /// @param samples     how many there are in all channels, of which these sums count some
  /// @param of_channel  the same of a channel, and of all of whom sums will be added up
  ProductSums(const ProductFrame& frame, const FitData& fit, std::int64_t samples, std::int64_t of_channel)
      : data(frame.longest),
        model(frame.longest),
        residuals(frame.wide),
        lengths(frame.longest, samples),
        frequencies(fit, of_channel),
        parts(fit.parts),
        has_parts_(!fit.parts.empty()) {}

  AmplitudeSums data, model;
  ResidualSums residuals;
  LengthAmplitudes lengths;
  FrequencySums frequencies;  // not of ranks with other channels, which make an image of each
  PartSums parts;             // nor of any ranks

  /// @param begin  of the samples among those of their channel
  void add(std::int64_t channel, std::int64_t begin, const VisibilityBlock& samples, const Tensor& of_model) {
    const auto q = at::hypot(samples.u, samples.v);
    data.add(q, samples.data, samples.weights);
    model.add(q, of_model, samples.weights);
    frequencies.add(channel, begin, of_model, samples);
    lengths.add(q, of_model, samples.data, samples.weights);
    const auto rest = samples.data - of_model;
    residuals.add_to_image(samples.u, samples.v, rest, samples.weights);
    if (has_parts_) parts.add(begin, rest, samples.weights);  // which all samples are of
    else residuals.count(rest, samples.weights);
  }

  /// Adds those of other samples.
  void add(ProductSums& others) {
    const auto all_of = [](ProductSums& sums) {
      return [&sums](const auto& visit) {
        sums.visit_sums(visit);
        sums.frequencies.visit_sums(visit);
        sums.parts.visit_sums(visit);
      };
    };
    add_visited(all_of(*this), all_of(others));
  }

  /// Adds those of ranks with other channels.
  void sum_over(Communicator& ranks) {
    sum_visited(ranks, [this](const auto& visit) { visit_sums(visit); });
  }
  /// Adds those of ranks with other samples of the same channels.
  void sum_samples_over(Communicator& ranks) {
    sum_visited(ranks, [this](const auto& visit) {
      visit_sums(visit);
      frequencies.visit_sums(visit);
    });
  }

  void put_into(DirtyProducts& products) const {
    products.data = data.bins(NoiseBias::subtract);
    products.model = model.bins(NoiseBias::keep);
    products.remainder = remainder_of(residuals);
    products.remainder.lengths = lengths.slope();
  }

 private:
  template <typename Visit>
  void visit_sums(const Visit& visit) {
    data.visit_sums(visit);
    model.visit_sums(visit);
    residuals.visit_sums(visit);
    lengths.visit_sums(visit);
  }

  bool has_parts_;
};

/// The same sums by several threads: each lane has its own, of every fourth piece of the samples, so that what comes of them does
/// not depend on how many threads there are.
class SumLanes {
 public:
  SumLanes(const ProductFrame& frame, const FitData& fit, std::int64_t of_channel) {
    lanes_.reserve(lanes);
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      lanes_.emplace_back(frame, fit, lane == 0 ? fit.visibilities.nchan() * fit.visibilities.nvis() : 0, of_channel);
  }

  void add(const ComparedSamples& compared) {
    const auto& [channel, begin, samples, model] = compared;
    const auto count = model.numel();
    ops::share_tasks(
        lanes, 1, [&, channel = channel, begin = begin, &samples = samples, &model = model](std::int64_t lane, std::int64_t) {
          for (auto first = lane * piece; first < count; first += lanes * piece) {
            const auto own = [&](const Tensor& all) { return all.slice(0, first, std::min(first + piece, count)); };
            lanes_[static_cast<std::size_t>(lane)].add(
                channel, begin + first, {own(samples.u), own(samples.v), own(samples.data), own(samples.weights)}, own(model));
          }
        });
  }

  /// All of them; the lanes are used up.
  ProductSums& total() {
    for (; lanes_.size() > 1; lanes_.pop_back()) lanes_.front().add(lanes_.back());
    return lanes_.front();
  }

 private:
  static constexpr std::int64_t lanes = 4, piece = 8192;  // of which LibTorch's operations take no threads of their own

  std::vector<ProductSums> lanes_;
};

/// What a packed plane has at the cells of data, (ncells).
Tensor at_cells_of(const GriddedDataset& dataset, const Tensor& plane) {
  return plane.flatten().index_select(0, dataset->cells().remainder(plane.numel()));
}

/// The residual as MPoL has it: with the model at the centres of the cells.
Tensor residual_of_cells(ProductSums& sums, const DirtyImager& imager, const Tensor& dirty, const FitData& data,
                         const Tensor& sky) {
  const auto& dataset = data.dataset;
  const auto& coords = dataset->coords();
  const auto model = dataset->at_cells(at::fft_fft2(sky_to_packed(sky)) * coords.cell_area());
  const auto q = at_cells_of(dataset, coords.packed_q());
  sums.data.add(q, dataset->visibilities(), dataset->weights());
  sums.model.add(q, model, dataset->weights());
  sums.residuals.add(at_cells_of(dataset, coords.packed_u()), at_cells_of(dataset, coords.packed_v()),
                     dataset->visibilities() - model, dataset->weights());
  return dirty - imager.image_of(model);
}

std::vector<double> numbers_of(const Tensor& values) {
  const auto all = values.contiguous();
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()};
}

/// Dirty images, their noise and beams, and the residual. @param beams  (nchan, 3), NaN where one is no ellipse
struct ProductImages {
  Tensor dirty, residual, noise, beams;
};

/// The images, and the sums that were made on the way. @param sharing  ranks that have other samples of the same images
std::pair<ProductImages, ProductSums> images_and_sums(const FitData& data, const Tensor& sky, const ProductFrame& frame,
                                                      Communicator& sharing = *single_rank()) {
  const auto imager = imager_of(data, ImageUnit::jy_per_beam);
  ProductImages images{.dirty = {}, .residual = {}, .noise = imager.noise(), .beams = {}};
  std::vector<double> samples{static_cast<double>(data.visibilities.nvis())};
  sharing.sum(samples);
  SumLanes lanes(frame, data, static_cast<std::int64_t>(samples.front()));
  if (data.imaging == Imaging::cells) {
    images.dirty = imager.image();
    images.residual = residual_of_cells(lanes.total(), imager, images.dirty, data, sky);
  } else {
    auto made = imager.compare(
        sky, [&lanes](const ComparedSamples& compared) { lanes.add(compared); },
        [&sharing](Tensor& image) { sharing.all_reduce_sum(image); });
    images.dirty = std::move(made.image);
    images.residual = std::move(made.residual);
  }
  images.beams = rows_of_beams(imager.fitted_beam());
  return {images, lanes.total()};
}

DirtyProducts products_of(const ProductImages& images, const ProductSums& sums) {
  DirtyProducts products;
  products.dirty = images.dirty;
  products.residual = images.residual;
  products.beams = fits_beams(beams_of_rows(images.beams));
  products.noise = numbers_of(images.noise);
  sums.put_into(products);
  return products;
}

}  // namespace

std::vector<Beam> fits_beams(const DirtyImager& imager) { return fits_beams(imager.fitted_beam()); }

/// A header cannot say that one channel has none.
std::vector<Beam> fits_beams(const std::vector<std::optional<Beam>>& fitted) {
  std::vector<Beam> beams;
  for (const auto& beam : fitted) {
    if (!beam) return {};
    beams.push_back(*beam);
  }
  return beams;
}

Tensor rows_of_beams(const std::vector<std::optional<Beam>>& beams) {
  auto rows = at::full({static_cast<std::int64_t>(beams.size()), 3}, NAN, torch::kFloat64);
  auto row = rows.accessor<double, 2>();
  for (std::size_t i = 0; i < beams.size(); ++i) {
    if (!beams[i]) continue;
    auto own = row[static_cast<std::int64_t>(i)];
    own[0] = beams[i]->major;
    own[1] = beams[i]->minor;
    own[2] = beams[i]->position_angle;
  }
  return rows;
}

std::vector<std::optional<Beam>> beams_of_rows(const Tensor& rows) {
  std::vector<std::optional<Beam>> beams;
  const auto row = rows.accessor<double, 2>();
  for (std::int64_t i = 0; i < rows.size(0); ++i)
    beams.push_back(std::isnan(row[i][0]) ? std::nullopt : std::optional(Beam{row[i][0], row[i][1], row[i][2]}));
  return beams;
}

std::vector<std::optional<Beam>> dirty_beams(const GridCoords& coords, const Visibilities& visibilities,
                                             const ChannelMap& channels, Imaging imaging) {
  const auto options = options_of_products().imaging(imaging).channel_map(channels);
  return DirtyImager(coords, visibilities, options).fitted_beam();
}

ProductFrame product_frame(const GridCoords& coords, const DataOutline& data, const UvSummary& uv) {
  return {uv.longest, look_around(coords, data, uv)};
}

ProductFrame product_frame(const FitData& data, const UvSummary& uv) {
  auto frame = product_frame(data.coords(), data.visibilities, uv);
  if (data.imaging == Imaging::cells) frame.longest = at_cells_of(data.dataset, data.coords().packed_q()).max().item<double>();
  return frame;
}

DirtyProducts dirty_products(const FitData& data, const Tensor& sky) {
  return dirty_products(data, sky, product_frame(data, summarize_uv(data.visibilities.baselines())));
}

DirtyProducts dirty_products(const FitData& data, const Tensor& sky, const ProductFrame& frame) {
  auto [images, sums] = images_and_sums(data, sky, frame);
  sums.parts.add_to(sums.residuals);
  auto products = products_of(images, sums);
  if (data.imaging == Imaging::cells) return products;
  products.remainder.parts = sums.parts.residuals(data.visibilities.nchan());
  products.remainder.slope = sums.frequencies.slope();
  return products;
}

std::optional<DirtyProducts> dirty_products(const FitData& own, const Tensor& sky, const ProductFrame& frame,
                                            Communicator& ranks) {
  const FitData without_parts{own.visibilities, own.channels, own.dataset, own.imaging};
  auto [images, sums] = images_and_sums(without_parts, sky, frame);
  sums.sum_over(ranks);
  for (auto* rows : {&images.dirty, &images.residual, &images.noise, &images.beams}) *rows = ranks.gather(rows->contiguous());
  if (!ranks.is_first()) return std::nullopt;
  return products_of(images, sums);
}

std::optional<DirtyProducts> dirty_products_of_samples(const FitData& own, const Tensor& sky, const ProductFrame& frame,
                                                       Communicator& ranks) {
  const FitData without_parts{own.visibilities, own.channels, own.dataset, Imaging::exact};
  auto [images, sums] = images_and_sums(without_parts, sky, frame, ranks);
  sums.sum_samples_over(ranks);
  if (!ranks.is_first()) return std::nullopt;
  auto products = products_of(images, sums);
  products.remainder.slope = sums.frequencies.slope();
  return products;
}

Tensor dirty_start(const FitData& data) { return imager_of(data, ImageUnit::jy_per_arcsec2).image(); }

}  // namespace mpol
