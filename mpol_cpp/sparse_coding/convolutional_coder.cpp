#include <mpol_cpp/sparse_coding/convolutional_coder.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/fft_irfft2.h>
#include <ATen/ops/fft_rfft2.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/proximal/norms.h>
#include <mpol_cpp/sparse_coding/circular_convolution.h>
#include <mpol_cpp/sparse_coding/coding_defaults.h>
#include <mpol_cpp/sparse_coding/panel_fit.h>

namespace mpol {
namespace {

using Sign = ConvolutionalCodingOptions::Sign;

/// A norm of absolute values on x >= 0: what is below 0 goes to 0 before anything is taken away from the rest.
class OnNonNegative : public ProximalMap {
 public:
  explicit OnNonNegative(std::shared_ptr<ProximalMap> norm) : norm_(std::move(norm)) {}
  using ProximalMap::apply;
  Tensor value(const Tensor& x) const override { return norm_->value(x); }
  Tensor apply(const Tensor& q, const Tensor& step) override { return norm_->apply(q.clamp_min(0), step); }

 private:
  std::shared_ptr<ProximalMap> norm_;
};

/// A number of each problem, or one for all, for each of the images (problems…, channels, rows, columns).
std::vector<double> of_each_image(const Tensor& values, const Tensor& images) {
  const auto own = on_host(values.flatten());
  const auto count = static_cast<std::size_t>(images.numel() / (images.size(-1) * images.size(-2)));
  std::vector<double> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = own[i * own.size() / count];
  return result;
}

/// f(x) = |D x - s|^2 / 2 + mu |G x|^2 / 2 with the periodic differences G, and A = 1 or (G, 1). Frequency by frequency
/// A* A and G* G are numbers, so that FilterBank::fit solves for x.
class CodingModel : public AdmmModel {
 public:
  CodingModel(std::shared_ptr<const FilterBank> bank, const Tensor& filters, const Tensor& image, double gradient_weight,
              bool splits_differences)
      : bank_(std::move(bank)), image_(image), spectrum_(at::fft_rfft2(image).contiguous()), gradient_weight_(gradient_weight) {
    if (gradient_weight > 0 || splits_differences)
      slopes_ = squared_differences(bank_->rows(), bank_->columns(), image.options());
    if (!slopes_.defined() && PanelFit::suits(filters, bank_->rows(), bank_->columns())) {
      panels_ = std::make_unique<PanelFit>(filters, bank_->rows());
    }
    if (!splits_differences) return;
    differences_ = std::make_shared<ImageDifferences>(Boundary::periodic);
    const auto maps = bank_->filters_count();
    stacked_ =
        std::make_shared<StackedMap>(std::vector<std::shared_ptr<const LinearMap>>{differences_, std::make_shared<IdentityMap>()},
                                     std::vector<std::int64_t>{2 * maps, maps});
  }

  Tensor minimize(const Tensor& v, const Tensor& rho, const Tensor& /*x*/) override {
    if (panels_) return panels_->fit(v, image_, of_each_image(rho, image_));
    const auto penalty = rho.dim() > 0 ? rho.squeeze(-3) : rho;  // (…, 1, 1, 1) beside images, which have no maps
    auto delta = stacked_ ? penalty * (1 + slopes_) : penalty;
    if (gradient_weight_ > 0) delta = delta + gradient_weight_ * slopes_;
    auto w = at::fft_rfft2(stacked_ ? stacked_->adjoint(v) : v).contiguous();
    if (slopes_.defined()) {
      const auto part = penalty / delta;
      w.mul_(part.dim() > 2 ? part.unsqueeze(-3) : part);
    }
    bank_->fit(w, spectrum_, delta);
    return at::fft_irfft2(w, at::IntArrayRef{bank_->rows(), bank_->columns()});
  }
  Tensor value(const Tensor& x) override {
    const auto value = problem_sums((bank_->apply(x) - image_).square()) / 2;
    if (gradient_weight_ == 0) return value;
    return value + problem_sums(ImageDifferences(Boundary::periodic).apply(x).square()).sum(-1) * (gradient_weight_ / 2);
  }
  const LinearMap& map() const override {
    if (stacked_) return *stacked_;
    return AdmmModel::map();
  }

 private:
  std::shared_ptr<const FilterBank> bank_;
  Tensor image_, spectrum_;
  double gradient_weight_;
  Tensor slopes_;
  std::unique_ptr<PanelFit> panels_;  // where the penalty alone weighs frequencies
  std::shared_ptr<ImageDifferences> differences_;
  std::shared_ptr<StackedMap> stacked_;
};

/// f = 0 and A = (D, 1).
class MaskedModel : public AdmmModel {
 public:
  MaskedModel(std::shared_ptr<const FilterBank> bank, const Tensor& filters, std::int64_t image_maps)
      : bank_(std::move(bank)), image_maps_(image_maps) {
    if (PanelFit::suits(filters, bank_->rows(), bank_->columns())) panels_ = std::make_shared<PanelFit>(filters, bank_->rows());
    const auto as_maps = std::make_shared<LinearFunctions>(
        [own = bank_, panels = panels_](const Tensor& x) { return own->as_maps(panels ? panels->apply(x) : own->apply(x)); },
        [own = bank_, panels = panels_](const Tensor& y) {
          const auto image = y.squeeze(own->channels() > 1 ? -4 : -3);
          return panels ? panels->adjoint(image) : own->adjoint(image);
        });
    stacked_ =
        std::make_shared<StackedMap>(std::vector<std::shared_ptr<const LinearMap>>{as_maps, std::make_shared<IdentityMap>()},
                                     std::vector<std::int64_t>{image_maps_, bank_->filters_count()});
  }

  Tensor minimize(const Tensor& v, const Tensor& /*rho*/, const Tensor& /*x*/) override {
    const auto image = v.narrow(-3, 0, image_maps_).squeeze(bank_->channels() > 1 ? -4 : -3);
    if (panels_) {
      const std::vector<double> ones(static_cast<std::size_t>(image.numel() / (image.size(-1) * image.size(-2))), 1.0);
      return panels_->fit(v.narrow(-3, image_maps_, bank_->filters_count()), image, ones, &product_);
    }
    auto w = at::fft_rfft2(v.narrow(-3, image_maps_, bank_->filters_count())).contiguous();
    const auto s = at::fft_rfft2(image).contiguous();
    bank_->fit(w, s, at::ones({}, v.options()));
    return at::fft_irfft2(w, at::IntArrayRef{bank_->rows(), bank_->columns()});
  }
  Tensor mapped(const Tensor& x) override { return panels_ ? at::cat({bank_->as_maps(product_), x}, -3) : stacked_->apply(x); }
  Tensor value(const Tensor& x) override { return problem_sums(x, 4) * 0; }
  const LinearMap& map() const override { return *stacked_; }

 private:
  std::shared_ptr<const FilterBank> bank_;
  std::int64_t image_maps_;
  std::shared_ptr<PanelFit> panels_;
  Tensor product_;  // D x of the last minimum, by panels
  std::shared_ptr<StackedMap> stacked_;
};

void check(const ConvolutionalCodingOptions& options, const FilterBank& bank, const Tensor& image) {
  const auto refuse = [](const std::string& what) { throw ValueError("convolutional coding: " + what); };
  const auto is_weight = [](double weight) { return weight >= 0 && std::isfinite(weight); };
  if (image.dim() < 3 || (bank.channels() > 1 && bank.channels() != image.size(-3))) {
    throw ShapeError(fmt::format("an image {} does not suit filters of {} channels: give (…, channels, rows, columns)",
                                 image.sizes().vec(), bank.channels()));
  }
  if (options.problem_dims != 4) refuse(fmt::format("problem_dims is {}; coefficients have 4 dimensions", options.problem_dims));
  if (!is_weight(options.l21_weight)) refuse(fmt::format("l21_weight is {}; it must be finite, 0 or more", options.l21_weight));
  if (!is_weight(options.gradient_weight))
    refuse(fmt::format("gradient_weight is {}; it must be finite, 0 or more", options.gradient_weight));
  if (!is_weight(options.tv_weight)) refuse(fmt::format("tv_weight is {}; it must be finite, 0 or more", options.tv_weight));
  if (options.mask.defined() && (options.gradient_weight > 0 || options.tv_weight > 0)) {
    refuse("a mask does not go with gradient_weight or tv_weight: leave one of them out");
  }
  if (options.l1_weights.defined()) {
    if (options.l21_weight > 0) refuse("l1_weights do not go with l21_weight: leave one of them out");
    if (options.l1_weights.dim() != 1 || options.l1_weights.size(0) != bank.filters_count()) {
      throw ShapeError(fmt::format("there are l1_weights {} for {} filters: give one for each", options.l1_weights.sizes().vec(),
                                   bank.filters_count()));
    }
  }
}

std::shared_ptr<ProximalMap> sparsity(const ConvolutionalCodingOptions& options, const Tensor& image) {
  std::shared_ptr<ProximalMap> norm;
  if (options.l1_weights.defined()) {
    norm = std::make_shared<L1Norm>(options.l1_weights.to(image).view({-1, 1, 1}) * options.l1_weight);
  } else if (options.l21_weight > 0) {
    norm = std::make_shared<JointSparsity>(options.l1_weight, options.l21_weight, -4);
  } else {
    norm = std::make_shared<L1Norm>(options.l1_weight);
  }
  if (options.sign == Sign::nonnegative) norm = std::make_shared<OnNonNegative>(norm);
  return norm;
}

}  // namespace

ConvolutionalCodingOptions::ConvolutionalCodingOptions(double lambda) : l1_weight(lambda) {
  choose_penalty(*this, lambda);
  balance.period = 1;
  objective_at = ObjectiveAt::primal;
  problem_dims = 4;
}

ConvolutionalCoder::ConvolutionalCoder(const Tensor& filters, const Tensor& image, const ConvolutionalCodingOptions& options)
    : bank_(std::make_shared<FilterBank>(filters, image.size(-2), image.size(-1))) {
  const torch::NoGradGuard no_grad;
  check(options, *bank_, image);
  auto shape = image.sizes().vec();
  if (bank_->channels() > 1) shape[shape.size() - 3] = 1;
  shape.insert(shape.end() - 2, bank_->filters_count());
  const auto start = at::zeros(shape, image.options());
  const auto norm = sparsity(options, image);
  const auto maps = bank_->filters_count();
  const auto stacked = [&](std::shared_ptr<ProximalMap> first, std::int64_t channels) {
    return std::make_shared<StackedProximal>(std::vector<std::shared_ptr<ProximalMap>>{std::move(first), norm},
                                             std::vector<std::int64_t>{channels, maps});
  };
  if (options.mask.defined()) {
    const auto of_image = bank_->as_maps(image);
    const auto model = std::make_shared<MaskedModel>(bank_, filters, of_image.size(-3));
    auto own = options;
    own.dual_residual = AdmmOptions::DualResidual::multiplier;
    const auto weights = bank_->as_maps(options.mask.to(image).square().expand_as(image));
    auto constant = at::zeros_like(model->map().apply(start));
    constant.narrow(-3, 0, of_image.size(-3)).copy_(of_image);
    solver_ = std::make_unique<Admm>(model, stacked(std::make_shared<SquaredL2Norm>(weights), of_image.size(-3)),
                                     at::zeros_like(constant), own, start, constant);
    return;
  }
  const bool splits = options.tv_weight > 0;
  const auto model = std::make_shared<CodingModel>(bank_, filters, image, options.gradient_weight, splits);
  if (splits) {
    const auto variation = stacked(std::make_shared<DifferenceNorm>(options.tv_weight), 2 * maps);
    solver_ = std::make_unique<Admm>(model, variation, at::zeros_like(model->map().apply(start)), options, start);
  } else {
    solver_ = std::make_unique<Admm>(model, norm, start, options, start);
  }
}

Tensor ConvolutionalCoder::coefficients() const {
  const auto& all = solver_->auxiliary();
  return all.narrow(-3, all.size(-3) - bank_->filters_count(), bank_->filters_count());
}

}  // namespace mpol
