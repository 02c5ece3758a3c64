#include <mpol_cpp/sparse_coding/tv_restoration.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <ATen/ops/addcmul.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/proximal/linear_map.h>
#include <mpol_cpp/sparse_coding/circular_convolution.h>

namespace mpol {
namespace {

using Fidelity = TvRestorationOptions::Fidelity;

/// A = D, with f(x) = |x - s|^2 / 2, or A = (D, 1), with f = 0 and |x - s|_1 as a part of g. Instead of the minimum of
/// f(x) + rho |A x - v|^2 / 2 some Jacobi steps from the last x.
class DenoisingModel : public AdmmModel {
 public:
  DenoisingModel(const Tensor& image, Fidelity fidelity, std::int64_t sweeps)
      : image_(image), fidelity_(fidelity), sweeps_(sweeps), differences_(std::make_shared<ImageDifferences>()) {
    const auto channels = image.size(-3);
    if (fidelity == Fidelity::absolute) {
      stacked_ = std::make_shared<StackedMap>(
          std::vector<std::shared_ptr<const LinearMap>>{differences_, std::make_shared<IdentityMap>()},
          std::vector<std::int64_t>{2 * channels, channels});
    }
    neighbors_ = at::full({image.size(-2), image.size(-1)}, 4, image.options());
    for (const std::int64_t dim : {0, 1}) {
      neighbors_.select(dim, 0).sub_(1);
      neighbors_.select(dim, neighbors_.size(dim) - 1).sub_(1);
    }
  }

  Tensor minimize(const Tensor& v, const Tensor& rho, const Tensor& x) override {
    const auto channels = image_.size(-3);
    // (weight + rho neighbors) x = weight s + rho (neighbors of x + D* v)
    const bool squared = fidelity_ == Fidelity::squared;
    const auto split = differences_->adjoint(v.narrow(-3, 0, 2 * channels));
    const auto known = squared ? image_ + rho * split : v.narrow(-3, 2 * channels, channels) + split;
    const auto factor = (squared ? 1 + rho * neighbors_ : 1 + neighbors_).reciprocal();
    const auto of_neighbors = squared ? rho * factor : factor;
    const auto start = known * factor;
    auto next = x;
    for (std::int64_t sweep = 0; sweep < sweeps_; ++sweep) next = at::addcmul(start, sum_of_neighbors(next), of_neighbors);
    return next;
  }
  Tensor value(const Tensor& x) override {
    return fidelity_ == Fidelity::squared ? problem_sums((x - image_).square()) / 2 : problem_sums(x) * 0;
  }
  const LinearMap& map() const override {
    if (stacked_) return *stacked_;
    return *differences_;
  }

 private:
  static Tensor sum_of_neighbors(const Tensor& x) {
    auto sum = at::zeros_like(x);
    for (const std::int64_t dim : {-2, -1}) {
      const auto most = x.size(dim) - 1;
      sum.narrow(dim, 1, most).add_(x.narrow(dim, 0, most));
      sum.narrow(dim, 0, most).add_(x.narrow(dim, 1, most));
    }
    return sum;
  }

  Tensor image_;
  Fidelity fidelity_;
  std::int64_t sweeps_;
  std::shared_ptr<ImageDifferences> differences_;
  std::shared_ptr<StackedMap> stacked_;
  Tensor neighbors_;
};

/// The same with a periodic blur K and periodic differences: A = D, with f(x) = |K x - s|^2 / 2, or A = (D, K), with f = 0.
/// Solved exactly, frequency by frequency.
class DeconvolutionModel : public AdmmModel {
 public:
  DeconvolutionModel(const Tensor& kernel, const Tensor& image, Fidelity fidelity)
      : image_(image),
        fidelity_(fidelity),
        differences_(std::make_shared<ImageDifferences>(Boundary::periodic)),
        blur_(std::make_shared<CircularConvolution>(kernel, image.size(-2), image.size(-1))) {
    const auto channels = image.size(-3);
    if (fidelity == Fidelity::absolute) {
      stacked_ = std::make_shared<StackedMap>(std::vector<std::shared_ptr<const LinearMap>>{differences_, blur_},
                                              std::vector<std::int64_t>{2 * channels, channels});
    }
    const auto& spectrum = blur_->spectrum();
    power_ = spectrum.abs().square();
    slopes_ = squared_differences(image.size(-2), image.size(-1), image.options());
    gathered_ = at::fft_rfft2(image) * spectrum.conj();
  }

  Tensor minimize(const Tensor& v, const Tensor& rho, const Tensor& /*x*/) override {
    const auto channels = image_.size(-3);
    const auto split = at::fft_rfft2(differences_->adjoint(v.narrow(-3, 0, 2 * channels)));
    const std::array<std::int64_t, 2> size = {image_.size(-2), image_.size(-1)};
    if (fidelity_ == Fidelity::squared) return at::fft_irfft2((gathered_ + rho * split) / (power_ + rho * slopes_), size);
    const auto blurred = at::fft_rfft2(v.narrow(-3, 2 * channels, channels)) * blur_->spectrum().conj();
    return at::fft_irfft2((blurred + split) / (power_ + slopes_), size);
  }
  Tensor value(const Tensor& x) override {
    return fidelity_ == Fidelity::squared ? problem_sums((blur_->apply(x) - image_).square()) / 2 : problem_sums(x) * 0;
  }
  const LinearMap& map() const override {
    if (stacked_) return *stacked_;
    return *differences_;
  }

 private:
  Tensor image_;
  Fidelity fidelity_;
  std::shared_ptr<ImageDifferences> differences_;
  std::shared_ptr<CircularConvolution> blur_;
  std::shared_ptr<StackedMap> stacked_;
  Tensor power_, slopes_, gathered_;
};

void check_image(const Tensor& image) {
  if (image.dim() < 3 || image.size(-2) < 2 || image.size(-1) < 2) {
    throw ShapeError(
        fmt::format("{} are no images: give (…, channels, rows, columns) of at least 2 x 2 pixels", image.sizes().vec()));
  }
}

std::unique_ptr<Admm> restorer(std::shared_ptr<AdmmModel> model, const Tensor& image, const Tensor& first,
                               TvRestorationOptions options) {
  const auto channels = image.size(-3);
  const auto variation = std::make_shared<DifferenceNorm>(options.tv_weight, options.variation);
  const auto start = at::zeros_like(model->map().apply(image));
  if (options.fidelity == Fidelity::squared) return std::make_unique<Admm>(std::move(model), variation, start, options, first);
  const auto both =
      std::make_shared<StackedProximal>(std::vector<std::shared_ptr<ProximalMap>>{variation, std::make_shared<L1Norm>()},
                                        std::vector<std::int64_t>{2 * channels, channels});
  options.dual_residual = AdmmOptions::DualResidual::multiplier;
  auto constant = at::zeros_like(start);
  constant.narrow(-3, 2 * channels, channels).copy_(image);
  return std::make_unique<Admm>(std::move(model), both, start, options, first, constant);
}

}  // namespace

TvRestorationOptions::TvRestorationOptions(double lambda) : tv_weight(lambda) {
  if (!(lambda > 0) || !std::isfinite(lambda)) {
    throw ValueError(fmt::format("total variation: lambda is {}; it must be finite and above 0", lambda));
  }
  rho = 2 * lambda + 0.1;
  balance.period = 1;
}

std::unique_ptr<Admm> tv_denoiser(const Tensor& image, const TvRestorationOptions& options) {
  check_image(image);
  if (options.sweeps < 1) throw ValueError(fmt::format("tv_denoiser: sweeps is {}; it must be 1 or more", options.sweeps));
  const torch::NoGradGuard no_grad;
  return restorer(std::make_shared<DenoisingModel>(image, options.fidelity, options.sweeps), image, image, options);
}

std::unique_ptr<Admm> tv_deconvolver(const Tensor& kernel, const Tensor& image, const TvRestorationOptions& options) {
  check_image(image);
  const torch::NoGradGuard no_grad;
  return restorer(std::make_shared<DeconvolutionModel>(kernel, image, options.fidelity), image, at::zeros_like(image), options);
}

}  // namespace mpol
