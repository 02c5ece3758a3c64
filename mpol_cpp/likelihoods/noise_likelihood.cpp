#include <mpol_cpp/likelihoods/noise_likelihood.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/view_as_real.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/nufft_plans.h>
#include <mpol_cpp/likelihoods/forms/loose_samples.h>
#include <mpol_cpp/likelihoods/forms/sky_checks.h>
#include <mpol_cpp/ops/memory/share_tasks.h>

namespace mpol {
namespace {

constexpr std::int64_t noise_block = 4096;  // samples whose sum is taken at once, whatever the number of threads

/// -2 ln L of a sample as a function of x, and its derivative.
struct Deviance {
  double value, slope;
};

Deviance deviance(const NoiseModel& noise, double x) {
  switch (noise.kind) {
    case NoiseModel::Kind::student:
      return {(noise.parameter + 2) * std::log1p(x / noise.parameter), (noise.parameter + 2) / (noise.parameter + x)};
    case NoiseModel::Kind::huber: {
      const double k = noise.parameter;
      if (x > k * k) return {2 * k * std::sqrt(x) - k * k, k / std::sqrt(x)};
      break;
    }
    default:
      break;
  }
  return {x, 1};
}

/// The same of a tensor, differentiable.
Tensor deviances(const NoiseModel& noise, const Tensor& x) {
  if (noise.kind == NoiseModel::Kind::student) return (noise.parameter + 2) * at::log1p(x / noise.parameter);
  if (noise.kind != NoiseModel::Kind::huber) return x;
  const double k = noise.parameter;
  return at::where(x <= k * k, x, 2 * k * x.clamp_min(k * k).sqrt() - k * k);
}

/// Samples with the weights of their real and imaginary parts.
template <typename T>
struct WeightedData {
  const std::complex<T>* data;
  const T *weights, *imaginary_weights;
};

/// Replaces model visibilities by the gradient with respect to them; returns the sum of -2 ln L.
template <typename T>
double weigh_samples(const NoiseModel& noise, std::complex<T>* model, const WeightedData<T>& samples, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::complex<double> v(model[i]), d(samples.data[i]);
    const double w = samples.weights[i], imaginary_w = samples.imaginary_weights[i], amplitude = std::abs(v);
    auto residual = v - d;
    if (noise.kind == NoiseModel::Kind::amplitude) {
      const double difference = amplitude - std::abs(d);
      residual = amplitude > 0 ? v * (difference / amplitude) : std::complex<double>(0);
      sum += w * difference * difference;
      model[i] = std::complex<T>(2 * w * residual);
      continue;
    }
    const std::complex<double> weighted(w * residual.real(), imaginary_w * residual.imag());
    const auto own = deviance(noise, weighted.real() * residual.real() + weighted.imag() * residual.imag());
    sum += own.value;
    model[i] = std::complex<T>(2 * own.slope * weighted);
  }
  return sum;
}

/// The same for every problem, in blocks.
/// @param model  (problems, samples) complex, contiguous
template <typename T>
Tensor weigh_problems(const NoiseModel& noise, Tensor& model, const Tensor& data, const Tensor& weights,
                      const Tensor& imaginary_weights) {
  const auto problems = model.size(0), samples = model.size(1), blocks = (samples + noise_block - 1) / noise_block;
  auto* v = reinterpret_cast<std::complex<T>*>(model.mutable_data_ptr<c10::complex<T>>());
  const auto* d = reinterpret_cast<const std::complex<T>*>(data.const_data_ptr<c10::complex<T>>());
  const auto *w = weights.const_data_ptr<T>(), *imaginary_w = imaginary_weights.const_data_ptr<T>();
  std::vector<double> sums(static_cast<std::size_t>(problems * blocks));
  ops::share_tasks(problems * blocks, 1, [&](std::int64_t i, std::int64_t) {
    const auto first = i % blocks * noise_block;
    sums[static_cast<std::size_t>(i)] =
        weigh_samples<T>(noise, v + i / blocks * samples + first, {d + first, w + first, imaginary_w + first},
                         std::min(noise_block, samples - first));
  });
  auto values = at::zeros({problems}, torch::kFloat64);
  auto* value = values.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < sums.size(); ++i) value[static_cast<std::int64_t>(i) / blocks] += sums[i];
  return values;
}

/// The derivative of `deviances`.
Tensor deviance_slopes(const NoiseModel& noise, const Tensor& x) {
  if (noise.kind == NoiseModel::Kind::student) return (x + noise.parameter).reciprocal() * (noise.parameter + 2);
  return x.clamp_min(noise.parameter * noise.parameter).rsqrt() * noise.parameter;
}

/// As weigh_problems, by LibTorch's operations on any device. None of them copies a number from the host, so that all can be
/// recorded as a CUDA graph.
Tensor weigh_by_tensors(const NoiseModel& noise, Tensor& model, const Tensor& data, const Tensor& weights,
                        const Tensor& imaginary_weights) {
  const auto sum = [](const Tensor& x) { return x.sum({1}, false, torch::kFloat64); };
  if (noise.kind == NoiseModel::Kind::amplitude) {
    const auto difference = model.abs() - data.abs(), weighted = weights * difference;
    model.sgn_().mul_(2 * weighted);
    return sum(weighted * difference);
  }
  model.sub_(data);
  auto residual = at::view_as_real(model);
  const auto of_parts = at::stack({weights, imaginary_weights}, -1);
  const auto x = (residual.square() * of_parts).sum({-1});
  const bool has_slope = noise.kind != NoiseModel::Kind::gaussian;
  residual.mul_(has_slope ? 2 * of_parts * deviance_slopes(noise, x).unsqueeze(-1) : 2 * of_parts);
  return sum(deviances(noise, x));
}

void check_noise_parameter(const char* name, double value) {
  if (value > 0 && std::isfinite(value)) return;
  throw ValueError(fmt::format("{} is {}; it must be a finite number > 0", name, value));
}

}  // namespace

NoiseModel NoiseModel::student(double degrees_of_freedom) {
  check_noise_parameter("degrees_of_freedom", degrees_of_freedom);
  return {Kind::student, degrees_of_freedom};
}

NoiseModel NoiseModel::huber(double threshold) {
  check_noise_parameter("threshold", threshold);
  return {Kind::huber, threshold};
}

std::string to_string(NoiseModel::Kind kind) {
  switch (kind) {
    case NoiseModel::Kind::gaussian:
      return "gaussian";
    case NoiseModel::Kind::student:
      return "student";
    case NoiseModel::Kind::huber:
      return "huber";
    case NoiseModel::Kind::amplitude:
      return "amplitude";
  }
  throw ValueError(fmt::format("{} is not a kind of noise", static_cast<int>(kind)));
}

NoiseLikelihoodImpl::NoiseLikelihoodImpl(const GridCoords& coords, const Visibilities& visibilities, const ChannelMap& channels,
                                         NoiseModel noise, NufftOptions options, const Tensor& imaginary_weights)
    : Likelihood(coords), nchan_(channels.nchan()), noise_(noise) {
  auto samples = losses::detail::loose_samples(coords, visibilities, channels);
  normalizer_ = static_cast<double>(samples.occupied_cells);
  channels_ = std::make_shared<losses::detail::ImageChannels>(std::move(samples.image_channels), nchan_);
  data_ = samples.visibilities.data().resolve_conj().contiguous();
  weights_ = samples.visibilities.weights().contiguous();
  if (imaginary_weights.defined()) take_imaginary_weights(imaginary_weights, visibilities, samples.sources);
  nufft_ = Nufft(coords, samples.visibilities.baselines(), samples.visibilities.nchan(), options);
  reset();
}

void NoiseLikelihoodImpl::take_imaginary_weights(const Tensor& weights, const Visibilities& visibilities,
                                                 const std::vector<std::int64_t>& sources) {
  if (noise_.kind == NoiseModel::Kind::amplitude) {
    throw ValueError("amplitudes have one weight: give no weights of imaginary parts");
  }
  // Visibilities check shape and values.
  const Visibilities of_imaginary_parts(visibilities.baselines(), visibilities.data(), weights);
  imaginary_weights_ = of_imaginary_parts.select_channels(sources).weights().to(weights_.scalar_type()).contiguous();
}

void NoiseLikelihoodImpl::reset() {
  // Tensors of its own, of the same values: a copy of the module that is moved or cast leaves this one alone.
  data_ = register_metadata("data", data_.variable_data());
  weights_ = register_metadata("weights", weights_.variable_data());
  if (imaginary_weights_.defined()) {
    imaginary_weights_ = register_metadata("imaginary_weights", imaginary_weights_.variable_data());
  }
}

void NoiseLikelihoodImpl::check(const Tensor& sky) const {
  losses::detail::check_sky_on(data_.device(), sky, nchan_, coords().npix(), "loose");
}

Tensor NoiseLikelihoodImpl::model(const Tensor& sky) const { return nufft_->forward(channels_->images(sky)); }

Tensor NoiseLikelihoodImpl::weigh(const Tensor& sky, Tensor& model) const {
  const auto shape = sky.sizes().slice(0, static_cast<std::size_t>(sky.dim() - 3));
  auto flat = model.view({-1, data_.numel()});
  const auto d = data_.to(model.scalar_type()).flatten(), w = weights_.to(sky.scalar_type()).flatten();
  const auto imaginary_w = imaginary_weights_.defined() ? imaginary_weights_.to(sky.scalar_type()).flatten() : w;
  const bool by_tensors = !sky.is_cpu() || nufft_plans(*nufft_).uses_gpu_kernels(sky.device());
  if (by_tensors) return weigh_by_tensors(noise_, flat, d, w, imaginary_w).view(shape);
  if (sky.scalar_type() == torch::kFloat32) return weigh_problems<float>(noise_, flat, d, w, imaginary_w).view(shape);
  return weigh_problems<double>(noise_, flat, d, w, imaginary_w).view(shape);
}

Tensor NoiseLikelihoodImpl::chi_squared(const Tensor& sky) {
  check(sky);
  if (!torch::GradMode::is_enabled() || !sky.requires_grad()) {  // without the arrays that a derivative needs
    auto own = model(sky);
    return weigh(sky, own).to(sky.scalar_type());
  }
  const auto v = model(sky), d = data_.to(v.scalar_type());
  const auto w = weights_.to(sky.scalar_type());
  const auto imaginary_w = imaginary_weights_.defined() ? imaginary_weights_.to(sky.scalar_type()) : w;
  const bool amplitude = noise_.kind == NoiseModel::Kind::amplitude;
  const auto x = amplitude ? (v.abs() - d.abs()).square() * w
                           : (at::view_as_real(v - d).square() * at::stack({w, imaginary_w}, -1)).sum({-1});
  return deviances(noise_, x).sum({-1}, false, torch::kFloat64).sum({-1}).to(sky.scalar_type());
}

Tensor NoiseLikelihoodImpl::value_and_gradient(const Tensor& sky, Tensor& gradient, Accumulate accumulate) {
  check(sky);
  losses::detail::check_gradient(sky, gradient);
  const torch::NoGradGuard no_grad;
  auto v = model(sky);
  const auto values = weigh(sky, v);
  if (accumulate == Accumulate::overwrite) gradient.zero_();
  channels_->add(nufft_->adjoint(v), gradient);
  return values;
}

std::map<std::string, std::string> NoiseLikelihoodImpl::state_labels() const {
  auto labels = Likelihood::state_labels();
  labels["baselines"] = nufft_->baselines().digest();
  return labels;
}

void NoiseLikelihoodImpl::prepare(torch::Dtype dtype) { nufft_plans(*nufft_).prepare(data_.device(), dtype); }

void NoiseLikelihoodImpl::keep_for(c10::Stream stream) const {
  nufft_plans(*nufft_).keep_for(stream);
  for (const auto& tensor : {data_, weights_, imaginary_weights_}) {
    if (tensor.defined()) tensor.record_stream(stream);
  }
}

std::int64_t NoiseLikelihoodImpl::memory_bytes() const {
  const auto imaginary = imaginary_weights_.defined() ? imaginary_weights_.nbytes() : 0;
  return nufft_->memory_bytes() + static_cast<std::int64_t>(data_.nbytes() + weights_.nbytes() + imaginary);
}

}  // namespace mpol
