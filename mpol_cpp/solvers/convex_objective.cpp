#include <mpol_cpp/solvers/convex_objective.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/objective/trained_parameters.h>
#include <mpol_cpp/ops/hann/hann.h>
#include <mpol_cpp/ops/proximal/image_vectors.h>
#include <mpol_cpp/ops/wavelet/sara_bases.h>

namespace mpol {
namespace {

constexpr int power_steps = 30;           // at most
constexpr double growth_of_power = 1e-3;  // below which a step is the last: solvers raise what is too small
constexpr double outward = 1e3;
constexpr double margin_of_power = 1.02;  // power steps find less than the largest eigenvalue

/// Those whose value is a quadratic form of the image; sparsity is linear where no pixel is negative.
bool is_quadratic(TermKind kind) { return kind != TermKind::custom && regularizer_of(kind).convexity == Convexity::quadratic; }
bool is_known(TermKind kind) { return kind != TermKind::custom && regularizer_of(kind).convexity != Convexity::unknown; }

/// The dual point is sought by the proximal map of a step of 1e5 times the inverse curvature: the longer it is, the less the
/// images' own pixels weigh beside the slopes that the point has to balance.
constexpr double step_of_dual_point = 1e5;
constexpr std::int64_t passes_of_dual_point = 600;

/// How far rounding moves chi^2, beside itself.
constexpr double rounding_of_floats = 2e-6, rounding_of_doubles = 1e-13;

constexpr double largest_epsilon = 1e-8;  // Jy^2/arcsec^4: the map takes lengths without it
/// The terms of g; sparsity is linear, and one of them in name only.
constexpr std::array lengths = {TermKind::tv_image, TermKind::tv_channel, TermKind::group_sparsity, TermKind::tv_slope,
                                TermKind::wavelets};

std::vector<double> values_of(const Tensor& tensor) {
  const auto own = tensor.to(torch::kCPU, torch::kFloat64).contiguous();
  return {own.const_data_ptr<double>(), own.const_data_ptr<double>() + own.numel()};
}

bool has_either_sign(const GriddedNetImpl& model) {
  return model.options().pixel_mapping().name.starts_with(either_sign_mapping().name);
}

bool has_hann(const GriddedNetImpl& model) { return model.smoothing() == Smoothing::hann; }

/// Why terms that weigh channels cannot be minimized; what joins channels would need a bound of all their weights.
std::string obstacle_of_channels(const std::vector<Term>& terms, std::int64_t nchan) {
  const auto weighs = std::find_if(terms.begin(), terms.end(), [](const Term& term) { return !term.channel_factors().empty(); });
  if (weighs == terms.end()) return {};
  for (const auto& term : terms) {
    if (!term.is_off() && term.joins_channels())
      return fmt::format("the term {} has weights of channels, which {} joins", weighs->name(), term.name());
    if (const auto own = std::ssize(term.channel_factors()); own > 0 && own != nchan)
      return fmt::format("the term {} has weights of {} channels, the model {}", term.name(), own, nchan);
  }
  return {};
}

Tensor norms(const Tensor& images) { return images.square().sum({-2, -1}, /*keepdim=*/true, torch::kFloat64).sqrt(); }

}  // namespace

bool ConvexObjective::is_length(TermKind kind) { return std::find(lengths.begin(), lengths.end(), kind) != lengths.end(); }

bool ConvexObjective::is_simple(TermKind kind) const { return is_length(kind) || (either_sign_ && kind == TermKind::sparsity); }

std::string ConvexObjective::obstacle(ImageModel& model, const Objective& objective) {
  const auto* net = dynamic_cast<const GriddedNetImpl*>(&model);
  if (net == nullptr) return "the model is not a GriddedNet";
  const auto& mapping = net->options().pixel_mapping();
  if (!mapping.name.starts_with(nonnegative_mapping().name) && !has_either_sign(*net)) {
    return fmt::format(
        "the pixel mapping is {}: the image must be a convex function of its base pixels (nonnegative_mapping(), "
        "either_sign_mapping())",
        mapping.name);
  }
  auto& likelihood = objective.likelihood();
  if (!likelihood.is_quadratic())
    return fmt::format("the {} likelihood is no quadratic function of the image", likelihood.name());
  if (trained_parameters(model, objective).size() != 1) return "the likelihood has parameters of its own to train";
  if (const auto why = obstacle_of_channels(objective.terms(), model.base().size(-3)); !why.empty()) return why;
  for (const auto& term : objective.terms()) {
    if (term.is_off()) continue;
    if (!is_known(term.kind())) return fmt::format("the term {} has no known proximal map", term.name());
    if (has_either_sign(*net) && regularizer_of(term.kind()).needs_positive_pixels)
      return fmt::format("the term {} has no known proximal map for pixels of either sign", term.name());
    if (is_length(term.kind()) && !term.settings().empty() && term.settings().front() > largest_epsilon) {
      return fmt::format("the epsilon of {} is {:g}, above {:g}", term.name(), term.settings().at(0), largest_epsilon);
    }
  }
  return {};
}

ConvexObjective::ConvexObjective(const std::shared_ptr<ImageModel>& model, Objective objective, CubeProximal::By by, Parts parts)
    : model_(std::dynamic_pointer_cast<GriddedNetImpl>(model)), objective_(std::move(objective)), by_(by) {
  if (auto why = obstacle(*model, objective_); !why.empty()) throw ValueError(why);
  const torch::NoGradGuard no_grad;
  either_sign_ = has_either_sign(*model_);
  channels_ = model_->base().size(-3);
  images_apart_ = parts == Parts::images && objective_.likelihood().tells_channels() &&
                  std::none_of(objective_.terms().begin(), objective_.terms().end(),
                               [](const Term& term) { return !term.is_off() && term.joins_channels(); });
  const auto own = images().detach();
  const auto shining = model_->bcube->options().pixel_mapping().forward(at::ones_like(shaped_like_model(own))).view_as(own);
  if (shining.min().item<double>() < 1) mask_ = shining;
  if (!either_sign_) own.clamp_min_(0);
  own.mul_(shining);
  std::vector<Tensor> weights, simple;
  for (const auto& term : objective_.terms()) {
    weighs_channels_ = weighs_channels_ || !term.channel_factors().empty();
    device_factors_.push_back(
        term.channel_factors().empty() ? Tensor() : at::tensor(term.channel_factors(), torch::kFloat64).to(own.device()));
    device_weights_.push_back(at::tensor(term.weights(), torch::kFloat64).to(own.device()));
    const auto& of_problems = device_weights_.back();
    weights.push_back(of_problems.numel() == 1 ? of_problems.expand({own.size(0)})
                                               : of_problems.repeat_interleave(own.size(0) / of_problems.numel()));
    simple.push_back(at::full({1}, is_simple(term.kind()) ? 1.0 : 0.0, device_weights_.back().options()));
  }
  if (!weights.empty()) term_weights_ = at::stack(weights), simple_ = at::stack(simple);
  const auto linear = linear_weights();
  if (!either_sign_ && std::any_of(linear.begin(), linear.end(), [](double weight) { return weight != 0; }))
    linear_ = beside_images(linear).to(own.scalar_type());
  map_ = new_map();
  sky_ = at::empty_like(own);
  slopes_ = at::empty_like(own);
}

Tensor ConvexObjective::images() const {
  const auto base = model_->base();
  return base.detach().view({-1, images_apart_ ? 1 : base.size(-3), base.size(-2), base.size(-1)});
}

Tensor ConvexObjective::of_problems(const Tensor& of_parts) const {
  return images_apart_ ? of_parts.unflatten(-1, {-1, channels_}).sum(-1) : of_parts;
}

std::size_t ConvexObjective::problem_of(std::size_t part) const {
  return images_apart_ ? part / static_cast<std::size_t>(channels_) : part;
}

std::size_t ConvexObjective::channel_of(std::size_t image) const { return image % static_cast<std::size_t>(channels_); }

bool ConvexObjective::waits_for_device() const {
  const auto& terms = objective_.terms();
  return std::any_of(terms.begin(), terms.end(), [this](const Term& term) {
    return !term.is_off() && !term.channel_factors().empty() && !(pixel_sum_of(term.kind()) && has_first_epsilon(term));
  });
}

std::unique_ptr<CubeProximal> ConvexObjective::new_map() const {
  CubeProximal::Weights weights{weights_of(TermKind::tv_image), weights_of(TermKind::tv_channel),
                                weights_of(TermKind::group_sparsity), weights_of(TermKind::tv_slope), weights_in_bases()};
  if (either_sign_) weights.magnitude = linear_weights();
  return std::make_unique<CubeProximal>(images(), has_hann(*model_), mask_, std::move(weights), by_, objective_.neighbors());
}

std::vector<double> ConvexObjective::weights_in_bases() const {
  auto weights = weights_of(TermKind::wavelets);
  for (auto& weight : weights) weight *= ops::SaraBases::share;
  return weights;
}

std::vector<double> ConvexObjective::linear_weights() const {
  auto weights = weights_of(TermKind::sparsity);
  const auto of_dirac = weights_in_bases();
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += of_dirac[i];
  return weights;
}

double ConvexObjective::share_of_sum(TermKind kind) { return kind == TermKind::wavelets ? ops::SaraBases::share : 0; }

void ConvexObjective::add_simple(const Term& term, const std::vector<double>& values, const Tensor& sky,
                                 std::vector<double>& simple) const {
  if (term.is_off() || !is_simple(term.kind())) return;
  for (std::size_t i = 0; i < simple.size(); ++i) simple[i] += values[i];
  const auto share = share_of_sum(term.kind());
  if (share == 0) return;
  const auto sums = ops::pixel_sums(sky, {});
  const auto nchan = static_cast<std::size_t>(sky.size(1));
  for (std::size_t i = 0; i < sums.size(); ++i)
    simple[i / nchan] -= share * term.weight(problem_of(i / nchan), channel_of(i)) * sums[i].pixels;
}

bool ConvexObjective::mixes_images() const {
  const auto& terms = objective_.terms();
  return std::any_of(terms.begin(), terms.end(),
                     [](const Term& term) { return !term.is_off() && is_quadratic(term.kind()) && term.joins_channels(); });
}

void ConvexObjective::smooth_into(const Tensor& images, Tensor& out) const {
  if (has_hann(*model_)) ops::hann_out(images, out);
  else out.copy_(images);
}

std::vector<double> ConvexObjective::weights_of(TermKind kind) const {
  const auto shape = images().sizes();
  const auto nchan = static_cast<std::size_t>(weighs_channels_ ? shape[1] : 1);
  std::vector<double> weights(static_cast<std::size_t>(shape[0]) * nchan, 0.0);
  for (const auto& term : objective_.terms()) {
    if (term.kind() != kind) continue;
    for (std::size_t i = 0; i < weights.size(); ++i)
      weights[i] += weighs_channels_ ? term.weight(problem_of(i / nchan), channel_of(i)) : term.weight(problem_of(i));
  }
  return weights;
}

Tensor ConvexObjective::beside_images(const std::vector<double>& weights) const {
  const auto own = images();
  return at::tensor(weights, torch::kFloat64).to(own.device()).view({own.size(0), -1, 1, 1});
}

Tensor ConvexObjective::slopes_at(const Tensor& sky, Tensor& gradient, Linear linear) const {
  auto& likelihood = objective_.likelihood();
  auto chi_squared = images_apart_ ? likelihood.channel_values_and_gradient(sky, gradient, Accumulate::overwrite)
                                   : likelihood.value_and_gradient(sky, gradient, Accumulate::overwrite);
  auto own = gradient.view(sky_.sizes());
  normalize(own, linear);
  add_slopes(sky, Quadratic::of_images, gradient);
  add_slopes(sky, Quadratic::joining, gradient);
  return chi_squared;
}

void ConvexObjective::normalize(Tensor& gradient, Linear linear) const {
  const bool is_shifted = linear == Linear::added && linear_.defined();
  if (!gradient.is_cpu()) {
    const auto factors = objective_.normalizers();
    if (is_shifted && factors.size() == 1) {
      at::add_out(gradient, linear_, gradient, 1 / (2 * factors.front()));
      return;
    }
    auto of_model = shaped_like_model(gradient);
    objective_.normalize_gradient(of_model);
    if (is_shifted) gradient.add_(linear_);
    return;
  }
  const auto normalizers = objective_.normalizers();
  const auto weights = linear_weights();
  std::vector<double> factors, shifts;
  const auto nchan = static_cast<std::size_t>(gradient.size(1));
  for (std::size_t image = 0; image < static_cast<std::size_t>(gradient.size(0)) * nchan; ++image) {
    const auto problem = image / nchan;
    factors.push_back(1 / (2 * normalizers[normalizers.size() == 1 ? 0 : problem_of(problem)]));
    shifts.push_back(is_shifted ? weights[weighs_channels_ ? image : problem] : 0);
  }
  ops::scale_and_shift(gradient, factors, shifts);
}

void ConvexObjective::add_slopes(const Tensor& sky, Quadratic which, Tensor& gradient) const {
  for (const auto& term : objective_.terms()) {
    if (term.is_off() || !is_quadratic(term.kind()) || term.joins_channels() != (which == Quadratic::joining)) continue;
    const at::AutoGradMode with_graph(true);
    auto leaf = sky.detach().requires_grad_();
    auto value = term.evaluate(ModelOutput(model_->coords(), {}, leaf));
    const auto& weights = device_weights(term);
    const auto total = (value * weights.view(weights.numel() == 1 ? at::IntArrayRef{} : value.sizes())).sum();
    gradient.add_(torch::autograd::grad({total}, {leaf}).front());
  }
}

void ConvexObjective::prepare_bend() {
  const at::AutoGradMode with_graph(true);
  origin_ = at::zeros_like(model_->base().detach()).requires_grad_();
  auto total = objective_.nll(objective_.likelihood().chi_squared(origin_)).sum();
  for (const auto& term : objective_.terms()) {
    if (term.is_off() || !is_quadratic(term.kind())) continue;
    const auto value = term.evaluate(ModelOutput(model_->coords(), {}, origin_));
    const auto weights = at::tensor(term.weights(), value.options());
    total = total + (value * weights.view(weights.numel() == 1 ? at::IntArrayRef{} : value.sizes())).sum();
  }
  slope_at_origin_ = torch::autograd::grad({total}, {origin_}, {}, /*retain_graph=*/true, /*create_graph=*/true).front();
}

Tensor ConvexObjective::bend(const Tensor& images) const {
  if (!slope_at_origin_.defined()) throw ValueError("the objective was not prepared: call prepare_bend() first");
  const auto sky = model_->smoothed(images.view(origin_.sizes()));
  const auto bent = torch::autograd::grad({slope_at_origin_}, {origin_}, {sky}, /*retain_graph=*/true).front();
  return model_->smoothed(bent).view(images.sizes());
}

std::vector<double> ConvexObjective::curvatures() {
  if (!curvatures_.empty()) return curvatures_;
  const torch::NoGradGuard no_grad;
  curvatures_ = curvatures_of_images();
  if (!mixes_images()) return curvatures_;
  const auto between = curvatures_between_images();
  for (std::size_t i = 0; i < curvatures_.size(); ++i) curvatures_[i] += between[i * between.size() / curvatures_.size()];
  return curvatures_;
}

std::vector<double> ConvexObjective::curvatures_between_images() const {
  const auto& neighbors = objective_.neighbors();
  auto direction = at::ones_like(images());
  const auto first = neighbors ? neighbors->channels_before(direction.size(1)) : 0;
  for (auto c = 1 - first % 2; c < direction.size(1); c += 2) direction.select(1, c).neg_();  // near the largest of differences
  const auto lengths_of = [&](const Tensor& cubes) {
    auto squares = cubes.square().sum({-3, -2, -1}, /*keepdim=*/true, torch::kFloat64);
    if (neighbors) neighbors->sum(squares);
    return squares.sqrt();
  };
  std::vector<double> found;
  for (int step = 0; step < power_steps; ++step) {
    const auto lengths = lengths_of(direction).clamp_min(1e-30);
    direction = model_->smoothed(shaped_like_model(direction / lengths.to(direction.scalar_type())));
    auto slopes = at::zeros_like(direction);
    add_slopes(direction, Quadratic::joining, slopes);
    direction = model_->smoothed(slopes).view_as(images());
    if (mask_.defined()) direction = direction * mask_;
    found = values_of(lengths_of(direction).flatten());
  }
  for (auto& value : found) value *= margin_of_power;
  return found;
}

std::vector<double> ConvexObjective::curvatures_of_images() const {
  const auto shape = model_->base().sizes();
  const auto zero = at::zeros_like(model_->base().detach());
  const auto mask = mask_.defined() ? mask_.view(shape) : Tensor();
  const auto held = [&](const Tensor& images) { return mask.defined() ? images * mask : images; };
  auto slopes = at::empty_like(zero);
  const auto gradient_of = [&](const Tensor& images) {
    const auto sky = model_->smoothed(images);
    objective_.likelihood().value_and_gradient(sky, slopes, Accumulate::overwrite);
    objective_.normalize_gradient(slopes);
    add_slopes(sky, Quadratic::of_images, slopes);
    return held(model_->smoothed(slopes));
  };
  const auto constant = gradient_of(zero);
  const auto largest_slope = norms(constant);
  auto direction = constant.clone();
  // Its sign makes data and their opposite begin at opposite images.
  const auto is_negative = constant.amax({-2, -1}) > -constant.amin({-2, -1});
  const auto start_of_middle = largest_slope.squeeze(-1).squeeze(-1) + 1e-30;
  direction.select(-1, shape.back() / 2)
      .select(-1, shape.back() / 2)
      .add_(at::where(is_negative, -start_of_middle, start_of_middle));
  // Points so far out that the gradient there is far larger than the constant, whose digits float32 would lose else.
  auto curvature = at::zeros_like(largest_slope);
  auto distance = at::ones_like(largest_slope);
  auto has_settled =
      at::zeros_like(largest_slope, torch::kBool);  // each image by itself: others do not change what is found of it
  for (int step = 0; step < power_steps && !has_settled.all().item<bool>(); ++step) {
    direction = held(direction);
    direction = direction / norms(direction).clamp_min(1e-30).to(direction.scalar_type());
    const auto reach = distance.to(direction.scalar_type());
    direction = (gradient_of(direction * reach) - constant) / reach;
    const auto length = norms(direction);
    const auto before = std::exchange(curvature, at::where(has_settled, curvature, length));
    has_settled.logical_or_(length <= (1 + growth_of_power) * before);
    distance = (outward * largest_slope / curvature.clamp_min(1e-30)).clamp(1e-10, 1e10);
  }
  auto found = values_of(curvature.flatten());
  const double largest = *std::max_element(found.begin(), found.end());
  for (auto& value : found) value = margin_of_power * std::max(value, 1e-12 * (largest > 0 ? largest : 1));
  return found;
}

Tensor ConvexObjective::gradient_into(const Tensor& images, Tensor& gradient) {
  smooth_into(images, sky_);
  auto slopes = shaped_like_model(slopes_);
  auto chi_squared = slopes_at(shaped_like_model(sky_), slopes, Linear::added);
  smooth_into(slopes_, gradient);
  return chi_squared;
}

std::vector<double> ConvexObjective::evaluate(const Tensor& images, Tensor& gradient) {
  const auto problems = static_cast<std::size_t>(images.size(0));
  const auto nll = values_of(objective_.nll(gradient_into(images, gradient)));
  auto total = nll;
  std::vector<double> terms, simple(problems, 0.0);
  std::vector<ops::PixelSums> known;
  if (sums_pixels()) known = ops::pixel_sums(sky_, used_epsilons());
  for (const auto& term : objective_.terms()) {
    const auto values = term.is_off() ? std::vector<double>(problems, 0.0) : weighted(term, images, sky_, &known);
    for (std::size_t i = 0; i < problems; ++i) total[i] += values[i];
    add_simple(term, values, sky_, simple);
    terms.insert(terms.end(), values.begin(), values.end());
  }
  losses_ = std::move(total);
  losses_.insert(losses_.end(), nll.begin(), nll.end());
  losses_.insert(losses_.end(), terms.begin(), terms.end());
  return simple;
}

std::vector<double> ConvexObjective::gaps() {
  const torch::NoGradGuard no_grad;
  const auto linear = linear_weights();
  if (std::any_of(linear.begin(), linear.end(), [](double weight) { return weight <= 0; })) return {};
  const auto base = images();
  const auto problems = base.size(0);
  const auto of_problem = [&](const std::vector<double>& values) {
    return at::tensor(values, torch::kFloat64).to(base.device()).view({problems});
  };
  const auto factor = [&](const Tensor& numbers) { return numbers.to(base.scalar_type()).view({problems, -1, 1, 1}); };
  const auto sum = [](const Tensor& images) { return images.sum({-3, -2, -1}, false, torch::kFloat64); };
  const auto smooth_part = [&](const Tensor& images, const Tensor& sky, Tensor& slopes) {  // f
    auto own = shaped_like_model(slopes);
    auto value = objective_.nll(slopes_at(shaped_like_model(sky), own, Linear::left_out)).view({problems});
    for (const auto& term : objective_.terms()) {
      if (!term.is_off() && is_quadratic(term.kind())) value = value + of_problem(weighted(term, images, sky));
    }
    return value;
  };
  const auto sky = model_->smoothed(base);
  auto slopes = at::empty_like(sky);
  const auto constant = smooth_part(at::zeros_like(base), at::zeros_like(sky), slopes);  // c
  const auto value = smooth_part(base, sky, slopes);
  const auto along = sum(slopes * sky);               // x.Ax - b.x
  const auto bends = 2 * (along - value + constant);  // x.Ax
  const auto data = bends - along;                    // b.x
  const auto slope = model_->smoothed(slopes);        // S(Ax - b)
  const auto ones = at::ones_like(base);
  const auto of_pixels = beside_images(linear);
  const auto allowance = (either_sign_ ? ones : model_->smoothed(ones)) * of_pixels.to(base.scalar_type());
  const auto beside = either_sign_ ? slope : slope + allowance;  // the gradient of what is not in the map

  std::vector<double> steps;
  for (const double curvature : curvatures()) steps.push_back(step_of_dual_point / curvature);
  const std::vector<std::int64_t> passes(static_cast<std::size_t>(problems), passes_of_dual_point);
  const std::vector<double> epsilons = {epsilon_of(TermKind::tv_image), epsilon_of(TermKind::tv_channel),
                                        epsilon_of(TermKind::group_sparsity), epsilon_of(TermKind::tv_slope)};
  const auto& neighbors = objective_.neighbors();
  const auto least_of = [&](std::vector<double> values) {  // in all ranks: they share one dual point
    if (!neighbors) return values;
    for (auto& each : values) each = -each;
    values = neighbors->largest(values);
    for (auto& each : values) each = -each;
    return values;
  };
  const auto map = new_map();
  map->set_dual(map_->dual());
  auto x = at::empty_like(base);
  map->apply(base - beside * factor(at::tensor(steps, torch::kFloat64).to(base.device())), steps, passes, x);
  auto excess = -slope - map->slope();
  if (either_sign_) excess = excess.abs();
  auto feasible = at::where(excess > allowance, allowance / excess, 1);
  if (mask_.defined()) feasible = at::where(mask_ > 0, feasible, 1);
  const auto t = of_problem(least_of(values_of(feasible.amin({-3, -2, -1}))));
  auto bound = (constant - ((1 - t).square() * 2 * constant + 2 * t * (1 - t) * data + t.square() * bends) / 2 +
                map->smoothing(epsilons, t))
                   .contiguous();
  if (neighbors) neighbors->sum(bound);
  std::vector<double> simple(static_cast<std::size_t>(problems), 0.0);
  for (const auto& term : objective_.terms()) {
    if (!term.is_off() && is_simple(term.kind())) add_simple(term, weighted(term, base, sky), sky, simple);
  }
  const auto of_channels = sky.sum({-2, -1}, false, torch::kFloat64) * of_pixels.flatten(1);
  const auto without_simple = either_sign_ ? value : value + of_channels.sum(1);
  auto total = (without_simple + of_problem(simple)).contiguous();
  if (neighbors) neighbors->sum(total);
  const double rounding = base.scalar_type() == torch::kFloat64 ? rounding_of_doubles : rounding_of_floats;
  return values_of((total - bound + rounding * total.abs()) / static_cast<double>(neighbors ? neighbors->ranks() : 1));
}

bool ConvexObjective::is_used(TermKind kind) const {
  const auto& terms = objective_.terms();
  return std::any_of(terms.begin(), terms.end(), [&](const Term& term) { return !term.is_off() && term.kind() == kind; });
}

double ConvexObjective::epsilon_of(TermKind kind) const {
  for (const auto& term : objective_.terms()) {
    if (!term.is_off() && term.kind() == kind) return term.settings().at(0);
  }
  return 0;
}

std::optional<double> ConvexObjective::used_epsilon(TermKind kind) const {
  return is_used(kind) ? std::optional(epsilon_of(kind)) : std::nullopt;
}

ops::LengthEpsilons ConvexObjective::used_epsilons() const {
  return {used_epsilon(TermKind::tv_image), used_epsilon(TermKind::tv_slope)};
}

bool ConvexObjective::sums_pixels() const {
  return (!either_sign_ && is_used(TermKind::sparsity)) || is_used(TermKind::tv_image) || is_used(TermKind::tv_slope);
}

std::optional<ConvexObjective::PixelSum> ConvexObjective::pixel_sum_of(TermKind kind) const {
  if (kind == TermKind::sparsity && !either_sign_) return PixelSum::pixels;  // no pixel is negative
  if (kind == TermKind::tv_image) return PixelSum::variation;
  if (kind == TermKind::tv_slope) return PixelSum::curvature;
  return std::nullopt;
}

bool ConvexObjective::has_first_epsilon(const Term& term) const {
  return term.kind() == TermKind::sparsity || term.settings().at(0) == epsilon_of(term.kind());
}

ModelOutput ConvexObjective::output_of(const Tensor& images, const Tensor& sky) const {
  return {model_->coords(), {}, shaped_like_model(sky), either_sign_ ? shaped_like_model(images) : Tensor()};
}

Tensor ConvexObjective::value_of(const Term& term, const Tensor& images, const Tensor& sky) const {
  return images_apart_ ? term.evaluate_channels(output_of(images, sky)) : term.evaluate(output_of(images, sky));
}

std::vector<double> ConvexObjective::weighted(const Term& term, const Tensor& images, const Tensor& sky,
                                              const std::vector<ops::PixelSums>* known) const {
  std::vector<double> values(static_cast<std::size_t>(sky.size(0)), 0.0);
  if (const auto sum = pixel_sum_of(term.kind())) {
    ops::LengthEpsilons own;
    if (*sum == PixelSum::variation) own.variation = term.settings().at(0);
    if (*sum == PixelSum::curvature) own.curvature = term.settings().at(0);
    const auto sums = known != nullptr && has_first_epsilon(term) ? *known : ops::pixel_sums(sky, own);
    const auto nchan = static_cast<std::size_t>(sky.size(1));
    const auto& factors = term.channel_factors();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double of_image = *sum == PixelSum::pixels      ? sums[i].pixels
                              : *sum == PixelSum::variation ? sums[i].variation
                                                            : sums[i].curvature;
      values[i / nchan] += factors.empty() ? of_image : factors[channel_of(i)] * of_image;
    }
  } else {
    values = values_of(value_of(term, images, sky));
  }
  for (std::size_t i = 0; i < values.size(); ++i) values[i] *= term.weight(problem_of(i));
  return values;
}

std::vector<double> ConvexObjective::scales(const std::vector<double>& losses) const {
  std::vector<double> scales(static_cast<std::size_t>(sky_.size(0)));
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const double total = losses[i], nll = losses[scales.size() + i];
    scales[i] = total > nll ? std::max(total - nll, images_apart_ ? least_share_of_images * nll : 0.0) : nll;
  }
  return scales;
}

void ConvexObjective::proximal(const Tensor& q, const std::vector<double>& steps, const std::vector<std::int64_t>& passes,
                               Tensor& x) {
  map_->apply(q, steps, passes, x);
}

}  // namespace mpol
