#include <mpol_cpp/fourier/normal_operator.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/full.h>
#include <ATen/ops/real.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/sample_strips.h>
#include <mpol_cpp/gridding/cells/visit_cells.h>
#include <mpol_cpp/ops/memory/huge_pages.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_convolution.h>
#include <mpol_cpp/ops/nufft/nufft_kernels.h>
#include <mpol_cpp/ops/nufft/nufft_plan.h>
#include <mpol_cpp/ops/memory/share_tasks.h>
#include <mpol_cpp/ops/toeplitz/toeplitz_product.h>

namespace mpol {
namespace {

constexpr double normal_tolerance = 1e-12;
constexpr std::int64_t normal_chunk = 8192;  // samples that one thread takes at a time

/// The transform of t over 4 npix^2, (npix + 1, 2 npix), and b of some samples.
struct NormalTerms {
  Tensor kernel, dirty;
};

/// Kernel and dirty image of sums over samples.
NormalTerms normal_terms(const GridCoords& coords, ops::NufftDirtySums<double>& sums) {
  const auto npix = coords.npix();
  auto dirty = at::empty({2 * npix, 2 * npix}, torch::kFloat64), t = at::empty_like(dirty);
  for (const auto& plane : {dirty, t}) ops::prefer_huge_pages(plane.mutable_data_ptr(), plane.nbytes());
  sums.images(coords.cell_area(), dirty.mutable_data_ptr<double>(), coords.cell_area() * coords.cell_area(),
              t.mutable_data_ptr<double>());
  t.select(0, 0).zero_();  // no two pixels are npix apart
  t.select(1, 2 * npix - 1).zero_();
  const auto circular = t.roll({npix, npix + 1}, {0, 1});  // the origin first
  const double norm = 1.0 / (4.0 * static_cast<double>(npix * npix));
  return {at::real(at::fft_rfft2(circular)).transpose(0, 1) * norm, dirty.narrow(0, npix / 2, npix).narrow(1, npix / 2, npix)};
}

/// Width of the strips in which samples come: that of the transform's tiles.
double strip_width(const GridCoords& coords) { return static_cast<double>(ops::NufftTile::cells) * coords.du() / 4; }

/// sum w |d|^2, of chunks whose sizes do not depend on the number of threads.
double weighted_power(const Tensor& data, const Tensor& weights) {
  const auto* values = data.const_data_ptr<c10::complex<double>>();
  const auto* weight = weights.const_data_ptr<double>();
  const auto count = weights.size(0), chunks = (count + normal_chunk - 1) / normal_chunk;
  std::vector<double> sums(static_cast<std::size_t>(chunks));
  ops::share_tasks(chunks, 1, [&](std::int64_t chunk, std::int64_t) {
    double sum = 0;
    for (auto i = chunk * normal_chunk; i < std::min(count, (chunk + 1) * normal_chunk); ++i) {
      sum += weight[i] * (values[i].real() * values[i].real() + values[i].imag() * values[i].imag());
    }
    sums[static_cast<std::size_t>(chunk)] = sum;
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

void check_normal_image(const Tensor& image, const NormalOperator& normal) {
  const auto npix = normal.coords().npix();
  if (image.dim() < 3 || image.size(-3) != normal.nchan() || image.size(-2) != npix || image.size(-1) != npix) {
    throw ShapeError(
        fmt::format("the image has shape {}; the data need (…, {}, {}, {})", image.sizes().vec(), normal.nchan(), npix, npix));
  }
  if (image.device() != normal.device()) {
    throw DeviceError(fmt::format("the image is on {}, the normal operator on {}: move one to the other with .to(device)",
                                  image.device().str(), normal.device().str()));
  }
}

template <typename T>
Tensor apply_normal(const NormalOperator& normal, const Tensor& x) {
  const auto npix = normal.coords().npix(), pixels = npix * npix;
  const ops::ToeplitzConvolution<T> convolution(npix);
  const auto image = x.contiguous();
  const auto kernel = normal.kernel().to(x.scalar_type());
  auto product = at::empty_like(image);
  for (std::int64_t i = 0; i < image.numel() / pixels; ++i) {
    convolution.apply(kernel.template const_data_ptr<T>() + i % normal.nchan() * 2 * npix * (npix + 1),
                      image.template const_data_ptr<T>() + i * pixels, product.template mutable_data_ptr<T>() + i * pixels);
  }
  return product;
}

}  // namespace

NormalOperator::NormalOperator(const GridCoords& coords, std::int64_t nchan, KernelStorage storage)
    : coords_(coords), nchan_(nchan), storage_(std::move(storage)) {
  if (nchan < 1) throw ValueError(fmt::format("{} image channels: give at least 1", nchan));
  const auto npix = coords.npix();
  kernel_ = storage_.zeros({nchan, npix + 1, 2 * npix}, torch::kFloat64);
  dirty_ = at::zeros({nchan, npix, npix}, torch::kFloat64);
  constant_ = at::zeros({nchan}, torch::kFloat64);
  cell_counts_ = at::zeros({nchan, npix, npix}, torch::kInt32);
}

NormalOperator NormalOperator::of(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                                  KernelStorage storage) {
  NormalOperator normal(coords, channels.nchan(), std::move(storage));
  normal.add(visibilities, channels);
  return normal;
}

void NormalOperator::add(const Visibilities& visibilities, const ChannelMap& channels) {
  if (channels.nchan() != nchan_) {
    throw ShapeError(fmt::format("data for {} image channels; this operator has {}", channels.nchan(), nchan_));
  }
  channels.check_sources(visibilities.nchan());
  if (!device().is_cpu()) {
    throw DeviceError(
        fmt::format("data are added to a normal operator on the CPU, not on {}: build it there and move it with "
                    ".to(device)",
                    device().str()));
  }
  const auto& baselines = visibilities.baselines();
  coords_.check_data_fit(baselines.max_abs_u(), baselines.max_abs_v());
  own_tensors();
  for (std::int64_t image_channel = 0; image_channel < nchan_; ++image_channel) {
    for (const auto channel : channels.sources[static_cast<std::size_t>(image_channel)]) {
      add_channel(image_channel, visibilities, channel);
    }
  }
}

/// Copies share their tensors until one of them changes.
void NormalOperator::own_tensors() {
  if (is_shared(kernel_)) {
    kernel_ = device().is_cpu() ? storage_.copy(kernel_, torch::kFloat64) : kernel_.clone();
  }
  for (auto* tensor : {&dirty_, &constant_, &cell_counts_}) {
    if (is_shared(*tensor)) *tensor = tensor->clone();
  }
}

void NormalOperator::add_channel(std::int64_t image_channel, const Visibilities& visibilities, std::int64_t channel) {
  const torch::NoGradGuard no_grad;
  const auto& baselines = visibilities.baselines();
  const auto plane = cell_counts_[image_channel];
  auto* counts = plane.mutable_data_ptr<std::int32_t>();
  // A plane of twice the image's size holds all differences of pixels; the origin is at row npix, column npix - 1.
  ops::NufftDirtySums<double> sums({2 * coords_.npix(), coords_.dl(), normal_tolerance}, baselines.max_abs_u(),
                                   baselines.max_abs_v());
  double power = 0;
  for_each_strip(visibilities, channel, strip_width(coords_), {}, [&](const VisibilityBlock& block) {
    sums.add(block.u.const_data_ptr<double>(), block.v.const_data_ptr<double>(), block.u.size(0),
             reinterpret_cast<const std::complex<double>*>(block.data.const_data_ptr<c10::complex<double>>()),
             block.weights.const_data_ptr<double>());
    power += weighted_power(block.data, block.weights);
    gridding::visit_cells(coords_, block.u, block.v,
                          [&](std::size_t cell) { std::atomic_ref(counts[cell]).fetch_add(1, std::memory_order_relaxed); });
  });
  const auto terms = normal_terms(coords_, sums);
  kernel_[image_channel].add_(terms.kernel);
  dirty_[image_channel].add_(terms.dirty);
  constant_[image_channel].add_(power);
  nvis_ += visibilities.nvis();
}

void NormalOperator::check_same_grid(const NormalOperator& other) const {
  if (coords_ == other.coords_ && nchan_ == other.nchan_) return;
  throw ShapeError(
      fmt::format("operators of {} channels of {} pixels of {}\" and of {} channels of {} pixels of {}\" have no sum", nchan_,
                  coords_.npix(), coords_.cell_size(), other.nchan_, other.coords_.npix(), other.coords_.cell_size()));
}

NormalOperator& NormalOperator::add_signed(const NormalOperator& other, int sign) {
  check_same_grid(other);
  own_tensors();
  kernel_.add_(other.kernel_, sign);
  dirty_.add_(other.dirty_, sign);
  constant_.add_(other.constant_, sign);
  cell_counts_.add_(other.cell_counts_, sign);
  nvis_ += sign * other.nvis_;
  return *this;
}

NormalOperator& NormalOperator::sum_over(Communicator& ranks) {
  if (ranks.is_alone()) return *this;
  own_tensors();
  for (auto* tensor : {&kernel_, &dirty_, &constant_, &cell_counts_}) ranks.all_reduce_sum(*tensor);
  auto count = at::full({1}, nvis_, torch::kInt64);
  ranks.all_reduce_sum(count);
  nvis_ = count.item<std::int64_t>();
  return *this;
}

NormalOperator& NormalOperator::operator*=(double factor) { return scale_weights(at::full({nchan_}, factor, torch::kFloat64)); }

NormalOperator& NormalOperator::scale_weights(const Tensor& factors) {
  if (factors.dim() != 1 || factors.size(0) != nchan_) {
    throw ShapeError(fmt::format("factors of shape {} for the weights of {} image channels", factors.sizes().vec(), nchan_));
  }
  const auto own = factors.detach().to(torch::kCPU, torch::kFloat64);
  if (!((own >= 0) & own.isfinite()).all().item<bool>()) {
    throw ValueError("a factor of the weights is negative or not finite; factors must be >= 0");
  }
  const auto on_device = own.to(device());
  own_tensors();
  kernel_.mul_(on_device.view({-1, 1, 1}));
  dirty_.mul_(on_device.view({-1, 1, 1}));
  constant_.mul_(on_device);
  return *this;
}

Tensor NormalOperator::apply(const Tensor& x) const {
  check_normal_image(x, *this);
  const torch::NoGradGuard no_grad;
  if (x.scalar_type() != torch::kFloat32 && x.scalar_type() != torch::kFloat64) {
    throw ShapeError(fmt::format("the image is {}; cast it to float32 or float64", c10::toString(x.scalar_type())));
  }
  if (!x.device().is_cpu()) return ops::toeplitz_product(x, kernel_);
  return x.scalar_type() == torch::kFloat32 ? apply_normal<float>(*this, x) : apply_normal<double>(*this, x);
}

NormalOperator NormalOperator::to(torch::Device device) const {
  auto moved = *this;
  for (auto* tensor : {&moved.kernel_, &moved.dirty_, &moved.constant_, &moved.cell_counts_}) *tensor = tensor->to(device);
  return moved;
}

Tensor NormalOperator::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) const {
  const torch::NoGradGuard no_grad;
  if (sky.scalar_type() != torch::kFloat64) {
    throw ShapeError(fmt::format("the image is {}; cast it to float64", c10::toString(sky.scalar_type())));
  }
  const auto product = apply(sky);
  const auto value = (sky * (product - 2 * dirty_)).sum({-3, -2, -1}) + constant_.sum();
  if (accumulate == Accumulate::add) gradient.add_(2 * (product - dirty_));
  else gradient.copy_(2 * (product - dirty_));
  return value;
}

std::int64_t NormalOperator::occupied_cells() const { return (cell_counts_ > 0).sum().item<std::int64_t>(); }

std::int64_t NormalOperator::memory_bytes() const {
  return static_cast<std::int64_t>(kernel_.nbytes() + dirty_.nbytes() + constant_.nbytes() + cell_counts_.nbytes());
}

}  // namespace mpol
