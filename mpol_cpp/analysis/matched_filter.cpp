#include <mpol_cpp/analysis/matched_filter.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/hypot.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/core/units.h>
#include <mpol_cpp/fourier/nufft.h>
#include <mpol_cpp/ops/correlation/correlation_kernels.h>

namespace mpol {
namespace {

/// Images that are transformed together; more would only take memory.
constexpr std::int64_t most_images = 64;
/// Samples in one matrix product, within the caches.
constexpr std::int64_t product_block = 4096;
/// Numbers in the sums of all pieces of a block.
constexpr std::int64_t most_piece_values = std::int64_t{1} << 22;
/// Numbers in the visibilities of a block of templates.
constexpr std::int64_t most_model_values = std::int64_t{1} << 24;

/// Neighbouring channels [first, last) that use the u, v of one of them.
struct ChannelGroup {
  std::int64_t first, last;
  std::int64_t middle() const { return (first + last - 1) / 2; }
};

/// Farthest pixel from the phase centre that has a hundredth of the brightest one's value, radian.
double source_radius(const Tensor& templates, const GridCoords& coords) {
  const auto magnitude = templates.detach().to(torch::kCPU, torch::kFloat64).abs().amax({0, 1});  // (npix, npix)
  const auto bright = magnitude > 0.01 * magnitude.max();
  const auto distance = at::hypot(coords.sky_x(), coords.sky_y());
  return units::arcsec * (distance * bright).max().item<double>();
}

/// The largest distance in wavelengths between the places of a sample in two channels.
class ChannelShifts {
 public:
  explicit ChannelShifts(const Baselines& baselines) : baselines_(baselines) {
    if (!baselines.frequencies().defined()) return;
    longest_ = at::hypot(baselines.u().to(torch::kFloat64), baselines.v().to(torch::kFloat64)).max().item<double>();
  }

  double between(std::int64_t channel, std::int64_t other) const {
    if (baselines_.frequencies().defined())
      return longest_ * std::abs(baselines_.wavelengths_per_unit(channel) - baselines_.wavelengths_per_unit(other));
    const auto [u, v] = baselines_.channel(channel);
    const auto [other_u, other_v] = baselines_.channel(other);
    return at::hypot(u - other_u, v - other_v).max().item<double>();
  }

 private:
  const Baselines& baselines_;
  double longest_ = 0;  // metres, where they are
};

std::vector<ChannelGroup> channel_groups(const Baselines& baselines, std::int64_t nchan, double most_shift) {
  if (baselines.shared()) return {{0, nchan}};
  const ChannelShifts shifts(baselines);
  std::vector<ChannelGroup> groups;
  for (std::int64_t c = 0; c < nchan; ++c) {
    // Where no channel is farther from the first of a group than half of what is allowed, none is from the middle one.
    const bool goes_on = !groups.empty() && shifts.between(groups.back().first, c) <= most_shift / 2;
    if (goes_on) groups.back().last = c + 1;
    else groups.push_back({c, c + 1});
  }
  return groups;
}

/// Sums over the samples for each channel of the data and each of the templates, (nchan, images) float64.
struct ChannelSums {
  Tensor product, norm;
};

ChannelSums no_sums(std::int64_t channels, std::int64_t images, const torch::TensorOptions& options) {
  const auto wide = options.dtype(torch::kFloat64);
  return {at::zeros({channels, images}, wide), at::zeros({channels, images}, wide)};
}

/// Data and weights of some channels and samples, in the precision of the sums; rows are contiguous.
struct ChannelSamples {
  Tensor data;     ///< (channels, n) complex
  Tensor weights;  ///< (channels, n)

  ChannelSamples(const Visibilities& visibilities, const ChannelGroup& group, std::int64_t begin, std::int64_t count,
                 torch::Dtype dtype) {
    const auto part = [&](const Tensor& all, torch::Dtype wanted) {
      const auto some = all.narrow(0, group.first, group.last - group.first).narrow(1, begin, count).to(wanted).resolve_conj();
      return some.stride(1) == 1 || count == 1 ? some : some.contiguous();
    };
    data = part(visibilities.data(), c10::toComplexType(dtype));
    weights = part(visibilities.weights(), dtype);
  }
};

/// On other devices than the CPU, by products of matrices.
void add_by_matrices(ChannelSums& sums, const ChannelSamples& samples, const Tensor& model) {
  const auto count = model.size(1);
  const auto weighted = (at::view_as_real(samples.data) * samples.weights.unsqueeze(-1)).flatten(1);  // (channels, 2 n)
  const auto parts = at::view_as_real(model.contiguous()).flatten(1);                                 // (images, 2 n)
  const auto squares = parts.square().view({parts.size(0), count, 2}).sum(2);
  sums.product.add_(at::matmul(weighted, parts.t()));
  sums.norm.add_(at::matmul(samples.weights, squares.t()));
}

/// On the CPU; `scratch` is that of the kernel.
template <typename T>
void add_by_kernel(ChannelSums& sums, const ChannelSamples& samples, const Tensor& model, std::vector<T>& scratch) {
  const auto kernels = ops::correlation_kernels<T>(selected_isa());
  const auto* data = reinterpret_cast<const std::complex<T>*>(samples.data.const_data_ptr());
  const auto* models = reinterpret_cast<const std::complex<T>*>(model.const_data_ptr());
  const auto* weights = samples.weights.const_data_ptr<T>();
  auto *product = sums.product.mutable_data_ptr<double>(), *norm = sums.norm.mutable_data_ptr<double>();
  scratch.resize(static_cast<std::size_t>(ops::correlation_scratch + model.size(0) * ops::correlated_samples));
  for (std::int64_t first = 0; first < model.size(1); first += ops::correlated_samples) {
    const ops::CorrelatedBlock<T> block{data + first,
                                        weights + first,
                                        samples.data.stride(0),
                                        samples.weights.stride(0),
                                        samples.data.size(0),
                                        models + first,
                                        model.stride(0),
                                        model.size(0),
                                        std::min(ops::correlated_samples, model.size(1) - first)};
    kernels.add(block, product, norm, scratch.data());
  }
}

/// Adds the samples [first, last) of a block of the model.
void add_samples(ChannelSums& sums, const Visibilities& visibilities, const ChannelGroup& group, std::int64_t begin,
                 const Tensor& model, std::int64_t first, std::int64_t last) {
  const auto dtype = c10::toRealValueType(model.scalar_type());
  std::vector<float> narrow;
  std::vector<double> wide;
  for (; first < last; first += product_block) {
    const auto count = std::min(product_block, last - first);
    const ChannelSamples samples(visibilities, group, begin + first, count, dtype);
    const auto part = model.narrow(1, first, count);
    if (!model.is_cpu()) add_by_matrices(sums, samples, part);
    else if (dtype == torch::kFloat64) add_by_kernel<double>(sums, samples, part, wide);
    else add_by_kernel<float>(sums, samples, part, narrow);
  }
}

/// Threads share pieces that are cut and added up the same for any number of them.
void add_block(ChannelSums& sums, const Visibilities& visibilities, const ChannelGroup& group, std::int64_t begin,
               const Tensor& model) {
  const auto channels = group.last - group.first, images = model.size(0), samples = model.size(1);
  const auto pieces = std::clamp<std::int64_t>(most_piece_values / (channels * images), 4, 16);
  const auto length = (samples + pieces - 1) / pieces;
  std::vector<ChannelSums> of_pieces(static_cast<std::size_t>(pieces));
  const auto work = [&](std::int64_t first, std::int64_t last) {
    const torch::NoGradGuard no_grad;
    for (std::int64_t piece = first; piece < last; ++piece) {
      auto& own = of_pieces[static_cast<std::size_t>(piece)] = no_sums(channels, images, sums.product.options());
      add_samples(own, visibilities, group, begin, model, piece * length, std::min(samples, (piece + 1) * length));
    }
  };
  if (model.is_cpu()) at::parallel_for(0, pieces, 1, work);
  else work(0, pieces);
  for (const auto& piece : of_pieces) {
    sums.product.narrow(0, group.first, channels).add_(piece.product);
    sums.norm.narrow(0, group.first, channels).add_(piece.norm);
  }
}

ChannelSums channel_sums(const Visibilities& visibilities, const Tensor& images, const GridCoords& coords,
                         const std::vector<ChannelGroup>& groups, const MatchedFilterOptions& options) {
  const auto count = images.size(0), nvis = visibilities.nvis();
  auto sums = no_sums(visibilities.nchan(), count, visibilities.data().options());
  const auto most = std::max<std::int64_t>(most_model_values / count, product_block);
  const auto block = std::min(options.block(), most);
  for (const auto& group : groups) {
    for (std::int64_t begin = 0; begin < nvis; begin += block) {
      const auto [u, v] = visibilities.baselines().block(group.middle(), begin, std::min(nvis, begin + block));
      const Nufft transform(coords, Baselines::in_lambda(u, v), count, NufftOptions{options.tolerance()});
      add_block(sums, visibilities, group, begin, transform->forward(images).contiguous());
    }
  }
  return sums;
}

/// (nchan, templates, K) -> (templates, positions): the sums along diagonals, of channel p + k with the template's k.
Tensor along_diagonals(const Tensor& sums, std::int64_t positions) {
  auto total = at::zeros({sums.size(1), positions}, sums.options());
  for (std::int64_t k = 0; k < sums.size(2); ++k) total.add_(sums.narrow(0, k, positions).select(2, k).t());
  return total;
}

void check_options(const MatchedFilterOptions& options) {
  if (options.dtype() != torch::kFloat32 && options.dtype() != torch::kFloat64)
    throw ValueError("a matched filter computes in float32 or float64");
  if (options.block() < 1) throw ValueError(fmt::format("block {}: at least one sample is filtered at a time", options.block()));
  if (!(options.phase_error() > 0))
    throw ValueError(fmt::format("phase_error {}: it must be positive, radian", options.phase_error()));
}

/// (templates, K, npix, npix)
Tensor checked_templates(const Tensor& templates, const GridCoords& coords, std::int64_t nchan) {
  const auto npix = coords.npix();
  if (!templates.is_floating_point() || templates.dim() < 3 || templates.dim() > 4 || templates.size(-1) != npix ||
      templates.size(-2) != npix || templates.numel() == 0) {
    throw ShapeError(fmt::format("templates have shape ({}) and dtype {}; real ({{ntemplates,}} nchan, {}, {}) is needed",
                                 fmt::join(templates.sizes(), ", "), c10::toString(templates.scalar_type()), npix, npix));
  }
  const auto cubes = templates.dim() == 4 ? templates : templates.unsqueeze(0);
  if (cubes.size(1) > nchan) {
    throw DataError(
        fmt::format("the template has {} channels, the data {}: a filter must be within the band; use fewer channels of "
                    "the template, or more data",
                    cubes.size(1), nchan));
  }
  return cubes.detach();
}

/// Magnitudes of cubes, summed over their rows and columns, (templates, K, npix) float64.
struct MagnitudeSums {
  Tensor rows, columns;

  explicit MagnitudeSums(const Tensor& cubes)
      : rows(at::linalg_vector_norm(cubes, 1, at::IntArrayRef{-1}).to(torch::kFloat64)),
        columns(at::linalg_vector_norm(cubes, 1, at::IntArrayRef{-2}).to(torch::kFloat64)) {
    if (!rows.isfinite().all().item<bool>() && !cubes.isfinite().all().item<bool>())
      throw DataError("a template has pixels that are not finite; replace them by 0");
  }

  /// Sum of magnitudes of each template's strongest channel in Jy, (templates): what bounds its visibilities.
  Tensor largest_fluxes(const GridCoords& coords) const {
    auto flux = (coords.cell_area() * rows.sum(2)).amax(1);
    if (!(flux > 0).all().item<bool>()) throw DataError("a template is 0 everywhere: there is nothing to look for");
    return flux;
  }

  /// Half the side of the smallest square about the phase centre beyond which each channel has at most this part of its sum,
  /// >= 1.
  std::int64_t half_width(double left_out) const {
    const auto half = rows.size(2) / 2;
    const auto by_distance = [half](const Tensor& sums) { return sums.narrow(2, half, half) + sums.narrow(2, 0, half).flip(2); };
    const auto beyond = (by_distance(rows) + by_distance(columns)).flip(2).cumsum(2).flip(2);
    return std::max<std::int64_t>(1, (beyond > left_out * rows.sum({2}, true)).any(0).any(0).sum().item<std::int64_t>());
  }
};

/// Cubes and their grid without the rim, where templates are dark: visibilities differ by less than the transform's error.
std::pair<Tensor, GridCoords> without_rim(const Tensor& cubes, const MagnitudeSums& sums, const GridCoords& coords,
                                          double tolerance) {
  constexpr std::int64_t step = 16;  // pixels of the half: sizes that are transformed fast
  const auto half = coords.npix() / 2, kept = std::min(half, (sums.half_width(0.1 * tolerance) + step - 1) / step * step);
  const auto inner = [&](const Tensor& all, int dim) { return all.narrow(dim, half - kept, 2 * kept); };
  return {inner(inner(cubes, 2), 3), GridCoords(coords.cell_size(), 2 * kept)};
}

Tensor frequencies_of_positions(const Visibilities& visibilities, std::int64_t width, std::int64_t positions) {
  const auto& frequencies = visibilities.frequencies();
  if (!frequencies.defined()) return {};
  const auto all = frequencies.to(torch::kCPU, torch::kFloat64);
  return 0.5 * (all.narrow(0, 0, positions) + all.narrow(0, width - 1, positions));
}

}  // namespace

FilterResponse matched_filter(const Visibilities& visibilities, const Tensor& templates, const GridCoords& whole_grid,
                              const MatchedFilterOptions& options) {
  const torch::NoGradGuard no_grad;
  check_options(options);
  const auto all = checked_templates(templates, whole_grid, visibilities.nchan());
  const MagnitudeSums sums_of_all(all);
  const auto scale = sums_of_all.largest_fluxes(whole_grid);
  const auto [cubes, coords] = without_rim(all, sums_of_all, whole_grid, options.tolerance());
  const double most_shift = options.phase_error() / (2 * units::pi * std::max(source_radius(cubes, coords), 1e-12));
  const auto groups = channel_groups(visibilities.baselines(), visibilities.nchan(), most_shift);

  // Squares of templates in Jy may be too small for float32; in units of their own flux they are not.
  const auto unit = (cubes / scale.view({-1, 1, 1, 1}).to(cubes.scalar_type())).to(visibilities.data().device(), options.dtype());
  const auto width = cubes.size(1), positions = visibilities.nchan() - width + 1;
  const auto at_a_time = std::max<std::int64_t>(1, most_images / width);
  std::vector<Tensor> products, norms;
  for (std::int64_t first = 0; first < cubes.size(0); first += at_a_time) {
    const auto count = std::min(at_a_time, cubes.size(0) - first);
    const auto images = unit.narrow(0, first, count).flatten(0, 1);
    const auto sums = channel_sums(visibilities, images, coords, groups, options);
    const std::vector<std::int64_t> shape = {visibilities.nchan(), count, width};
    products.push_back(along_diagonals(sums.product.view(shape), positions));
    norms.push_back(along_diagonals(sums.norm.view(shape), positions));
  }
  const auto product = at::cat(products).cpu(), norm = at::cat(norms).cpu(), root = norm.sqrt();
  if (!product.isfinite().all().item<bool>() || !norm.isfinite().all().item<bool>() || !(norm > 0).all().item<bool>()) {
    throw DataError(
        fmt::format("sums of weighted data are not within what {} holds: use float64, or data and weights in another unit",
                    c10::toString(options.dtype())));
  }
  const auto flux = scale.cpu().unsqueeze(1);
  return {product / root, product / norm / flux, 1 / (root * flux),
          at::arange(positions, torch::kFloat64) + 0.5 * static_cast<double>(width - 1),
          frequencies_of_positions(visibilities, width, positions)};
}

double channel_spacing(const Tensor& frequencies, const std::string& whose) {
  const auto values = frequencies.to(torch::kCPU, torch::kFloat64);
  const auto count = values.size(0);
  if (count < 2) throw DataError(fmt::format("{} have one channel, whose width is not known; at least two are needed", whose));
  const double first = values[0].item<double>(), last = values[count - 1].item<double>();
  const double spacing = (last - first) / static_cast<double>(count - 1);
  const auto even = first + spacing * at::arange(count, torch::kFloat64);
  const double worst = (values - even).abs().max().item<double>();
  if (spacing == 0 || worst > 0.01 * std::abs(spacing)) {
    throw DataError(
        fmt::format("the channels of {} are not evenly spaced: one is {:.4g} Hz away from where it would be with {:.6g} Hz "
                    "between neighbours; choose channels without gaps, or resample them",
                    whose, worst, std::abs(spacing)));
  }
  return spacing;
}

Tensor in_channel_order(const Tensor& sky_cube, const Tensor& template_frequencies, const Tensor& data_frequencies) {
  if (template_frequencies.dim() != 1 || sky_cube.dim() < 1 || template_frequencies.size(0) != sky_cube.size(0)) {
    throw ShapeError(fmt::format("a template of shape ({}) has frequencies of shape ({}); one for each channel is needed",
                                 fmt::join(sky_cube.sizes(), ", "), fmt::join(template_frequencies.sizes(), ", ")));
  }
  if (sky_cube.size(0) == 1) return sky_cube;
  const double of_template = channel_spacing(template_frequencies, "the template");
  const double of_data = channel_spacing(data_frequencies, "the data");
  if (std::abs(std::abs(of_template / of_data) - 1) > 0.01) {
    throw DataError(
        fmt::format("the template's channels are {:.6g} Hz wide, the data's {:.6g} Hz; they may differ by 1 %: make the "
                    "template with the data's channels",
                    std::abs(of_template), std::abs(of_data)));
  }
  return of_template * of_data < 0 ? sky_cube.flip({0}) : sky_cube;
}

FilterPeak filter_peak(const Tensor& response, std::int64_t nchan) {
  if (response.dim() != 1 || response.size(0) < 1)
    throw ShapeError(fmt::format("a response has shape ({}); (npositions) is needed", fmt::join(response.sizes(), ", ")));
  const auto values = response.to(torch::kCPU, torch::kFloat64);
  FilterPeak peak;
  peak.position = values.argmax().item<std::int64_t>();
  peak.response = values[peak.position].item<double>();
  const auto apart = (at::arange(values.size(0), torch::kInt64) - peak.position).abs() >= nchan;
  const auto others = values.masked_select(apart);
  if (others.numel() == 0) return peak;
  constexpr double sigma_per_deviation = 1.482602218505602;
  constexpr double relative_error = 1.1664;  // of a sigma from the median deviation, times the root of the number
  peak.noise = sigma_per_deviation * (others - others.median()).abs().median().item<double>();
  const auto independent = std::max(1.0, static_cast<double>(others.numel()) / static_cast<double>(nchan));
  peak.noise_error = relative_error / std::sqrt(independent);
  return peak;
}

}  // namespace mpol
