#include <mpol_cpp/analysis/dirty_products.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/ops/fft_fft2.h>
#include <ATen/ops/hypot.h>

#include <mpol_cpp/analysis/field/field_choice.h>
#include <mpol_cpp/coordinates/orientation.h>
#include <mpol_cpp/likelihoods/prediction.h>
#include <mpol_cpp/visibilities/grid_suggestion.h>

namespace mpol {
namespace {

/// A fit has the memory of its own planes when its dirty images are made: room for a fine grid, so that one pass over the data
/// does, and for a small block of samples.
std::int64_t working_bytes(std::int64_t npix) { return 64 * npix * npix + (std::int64_t{16} << 20); }

DirtyImager imager_of(const FitData& data, ImageUnit unit) {
  const auto options = DirtyImagerOptions().weighting(Weighting::briggs).robust(0.5).unit(unit);
  if (data.imaging == Imaging::cells) return DirtyImager(data.dataset, options);
  return DirtyImager(data.coords(), data.visibilities,
                     DirtyImagerOptions(options).channel_map(data.channels).working_bytes(working_bytes(data.coords().npix())));
}

FitRemainder remainder_of(const ResidualSums& sums) {
  return {.statistics = sums.statistics(), .parts = {}, .histogram = sums.histogram(), .wide = sums.wide()};
}

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
    const auto end = begin + residual.numel();
    auto range = std::partition_point(ranges_.begin(), ranges_.end(), [&](const SampleRange& all) { return all.end <= begin; });
    for (; range != ranges_.end() && range->begin < end; ++range) {
      auto& part = parts_[place_[static_cast<std::size_t>(range - ranges_.begin())]];
      const auto first = std::max(begin, range->begin) - begin, last = std::min(end, range->end) - begin;
      const auto own = weights.slice(0, first, last);
      part.counts.add(residual.slice(0, first, last), own);
      part.weight += own.sum().item<double>();
      part.seen += last - first;
    }
  }
  void add_to(ResidualSums& sums) const {
    for (const auto& part : parts_) sums.add_counted(part.counts);
  }
  std::vector<PartResiduals> residuals(std::int64_t nchan) const {
    std::vector<PartResiduals> all;
    for (const auto& part : parts_) {
      const auto seen = static_cast<double>(std::max<std::int64_t>(part.seen, 1));
      all.push_back({part.name, part.samples * nchan, part.weight / seen, part.counts.statistics()});
    }
    return all;
  }

 private:
  struct Part {
    std::string name;
    std::int64_t samples = 0, seen = 0;  // of each channel; of all, as often as they came by
    double weight = 0;                   // the sum of those that came by
    ResidualCounts counts;
  };

  const std::vector<SampleRange>& ranges_;
  std::vector<std::size_t> place_;  // of each range, among the parts
  std::vector<Part> parts_;
};

/// The residual as MPoL has it: with the model at the centres of the cells.
void add_residual_of_cells(DirtyProducts& products, const DirtyImager& imager, const FitData& data, const Tensor& sky) {
  const auto& dataset = data.dataset;
  const auto& coords = dataset->coords();
  const auto model = dataset->at_cells(at::fft_fft2(sky_to_packed(sky)) * coords.cell_area());
  products.residual = products.dirty - imager.image_of(model);
  const auto cells = dataset->cells().remainder(coords.npix() * coords.npix());
  const auto q = coords.packed_q().flatten().index_select(0, cells);
  products.data = binned_amplitudes(q, dataset->visibilities(), dataset->weights(), NoiseBias::subtract);
  products.model = binned_amplitudes(q, model, dataset->weights(), NoiseBias::keep);
  ResidualSums sums(look_around(coords, data.visibilities, summarize_uv(data.visibilities.baselines())));
  sums.add(coords.packed_u().flatten().index_select(0, cells), coords.packed_v().flatten().index_select(0, cells),
           dataset->visibilities() - model, dataset->weights());
  products.remainder = remainder_of(sums);
}

/// The image channel of each data channel.
std::vector<std::int64_t> image_channels(const FitData& data) {
  std::vector<std::int64_t> channels(static_cast<std::size_t>(data.visibilities.nchan()));
  for (std::int64_t image_channel = 0; image_channel < data.channels.nchan(); ++image_channel) {
    for (const auto channel : data.channels.sources[static_cast<std::size_t>(image_channel)])
      channels[static_cast<std::size_t>(channel)] = image_channel;
  }
  return channels;
}

/// The image of data minus model at the samples, block by block.
void add_residual_of_samples(DirtyProducts& products, const DirtyImager& imager, const FitData& data, const Tensor& sky) {
  const auto uv = summarize_uv(data.visibilities.baselines());
  AmplitudeSums of_data(uv.longest), of_model(uv.longest);
  ResidualSums sums(look_around(data.coords(), data.visibilities, uv));
  PartSums of_parts(data.parts);
  const auto channels = image_channels(data);
  const auto block = losses::prediction_block_for(data.coords().npix());
  products.residual = imager.image_of([&](std::int64_t channel, std::int64_t begin, std::int64_t end) {
    const auto residual = at::empty({end - begin}, torch::kComplexDouble);
    const auto image = sky[channels[static_cast<std::size_t>(channel)]];
    for (auto first = begin; first < end; first += block) {
      const auto last = std::min(first + block, end);
      const auto samples = data.visibilities.block(channel, first, last);
      const auto model = losses::predicted_block(data.coords(), image, samples.u, samples.v);
      const auto q = at::hypot(samples.u, samples.v);
      of_data.add(q, samples.data, samples.weights);
      of_model.add(q, model, samples.weights);
      const auto rest = samples.data - model;
      if (data.parts.empty()) {
        sums.add(samples.u, samples.v, rest, samples.weights);
      } else {  // which all samples are of
        sums.add_to_image(samples.u, samples.v, rest, samples.weights);
        of_parts.add(first, rest, samples.weights);
      }
      residual.narrow(0, first - begin, last - first).copy_(rest);
    }
    return residual;
  });
  products.data = of_data.bins(NoiseBias::subtract);
  products.model = of_model.bins(NoiseBias::keep);
  of_parts.add_to(sums);
  products.remainder = remainder_of(sums);
  products.remainder.parts = of_parts.residuals(data.visibilities.nchan());
}

}  // namespace

std::vector<Beam> fits_beams(const DirtyImager& imager) {
  std::vector<Beam> beams;
  for (const auto& beam : imager.fitted_beam()) {
    if (!beam) return {};  // a header cannot say that one channel has no beam
    beams.push_back(*beam);
  }
  return beams;
}

DirtyProducts dirty_products(const FitData& data, const Tensor& sky) {
  const auto imager = imager_of(data, ImageUnit::jy_per_beam);
  DirtyProducts products;
  products.dirty = imager.image();
  products.beams = fits_beams(imager);
  const auto noise = imager.noise().contiguous();
  products.noise.assign(noise.const_data_ptr<double>(), noise.const_data_ptr<double>() + noise.numel());
  if (data.imaging == Imaging::cells) add_residual_of_cells(products, imager, data, sky);
  else add_residual_of_samples(products, imager, data, sky);
  return products;
}

Tensor dirty_start(const FitData& data) { return imager_of(data, ImageUnit::jy_per_arcsec2).image(); }

}  // namespace mpol
