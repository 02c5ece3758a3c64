#include <mpol_cpp/solvers/objective_admm.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/ops/proximal/image_vectors.h>

namespace mpol {
namespace {

constexpr std::int64_t fewest_iterations_of_admm = 32;
constexpr double least_rho = 1e-4;  // beside the curvature: float32 and conjugate gradients solve no x-step of a smaller one
constexpr const char *gradient_name = "gradient", *regularizers_name = "regularizers", *decreases_name = "decreases";

/// g of a ConvexObjective, which keeps the dual image that its map begins with.
class ObjectivePrior : public ProximalMap {
 public:
  ObjectivePrior(ConvexObjective& function, std::int64_t passes) : function_(function), passes_(passes) {}
  using ProximalMap::apply;

  Tensor value(const Tensor& x) const override {
    auto gradient = at::empty_like(x);
    return at::tensor(function_.evaluate(x, gradient), torch::kFloat64).to(x.device());
  }

  Tensor apply(const Tensor& q, const Tensor& step) override {
    const auto images = static_cast<std::size_t>(q.size(0) * q.size(1)), nchan = static_cast<std::size_t>(q.size(1));
    const auto of_problems = on_host(step.flatten());
    std::vector<double> steps(images);
    for (std::size_t image = 0; image < images; ++image) steps[image] = of_problems[of_problems.size() == 1 ? 0 : image / nchan];
    auto x = at::empty_like(q);
    function_.proximal(q, steps, std::vector<std::int64_t>(static_cast<std::size_t>(q.size(0)), passes_), x);
    return x;
  }

 private:
  ConvexObjective& function_;
  std::int64_t passes_;
};

/// A tensor of a saved state. @throws FileError unless it is like another one
const Tensor& kept(const NamedTensors& state, const char* name, const Tensor& like) {
  const auto found = state.find(name);
  if (found == state.end() || found->second.sizes() != like.sizes() || found->second.scalar_type() != like.scalar_type()) {
    throw FileError(fmt::format("the saved state of admm has no {} that fits these images", name));
  }
  return found->second;
}

/// Numbers of a saved state. @throws FileError unless there are a multiple of `columns`
std::vector<double> kept_numbers(const NamedTensors& state, const char* name, std::int64_t columns) {
  const auto found = state.find(name);
  if (found == state.end() || found->second.scalar_type() != torch::kFloat64 || found->second.numel() % columns != 0) {
    throw FileError(fmt::format("the saved state of admm has no {} that fit these images", name));
  }
  return on_host(found->second.flatten());
}

}  // namespace

ObjectiveAdmm::ObjectiveAdmm(ConvexObjective& function, Tensor start, const Options& options)
    : function_(function), images_(std::move(start)), gradient_(at::empty_like(images_)) {
  if (options.passes < 1)
    throw ValueError(fmt::format("admm: a proximal map of {} passes; it must be 1 or more", options.passes));
  const torch::NoGradGuard no_grad;
  model_ = std::make_shared<ObjectiveModel>(function_, images_, gradient_, options.model);
  AdmmOptions own;
  own.rho = options.rho * (model_->curvature() > 0 ? model_->curvature() : 1);
  own.relaxation = options.relaxation;
  own.balance.least_rho = least_rho * own.rho / options.rho;
  admm_ = std::make_unique<Admm>(model_, std::make_shared<ObjectivePrior>(function_, options.passes), images_, own);
}

void ObjectiveAdmm::prepare() {
  const torch::NoGradGuard no_grad;
  if (regularizers_.empty()) regularizers_ = function_.evaluate(images_, gradient_);
}

void ObjectiveAdmm::iterate() {
  const torch::NoGradGuard no_grad;
  prepare();
  const auto images_before = images_.clone(), gradient_before = gradient_.clone();
  admm_->take();
  images_.copy_(admm_->auxiliary());
  auto regularizers = function_.evaluate(images_, gradient_);
  // F itself has too few digits in float32: f is quadratic, its difference that of the gradients' mean.
  const auto sums = ops::compare_points(images_before, gradient_before, images_, gradient_);
  const auto nchan = static_cast<std::size_t>(images_.size(1));
  std::vector<double> decreases(regularizers.size());
  for (std::size_t i = 0; i < decreases.size(); ++i) {
    decreases[i] = regularizers_[i] - regularizers[i];
    for (auto image = i * nchan; image < (i + 1) * nchan; ++image) decreases[i] -= sums[image].along / 2;
  }
  regularizers_ = std::move(regularizers);
  decreases_.push_back(std::move(decreases));
}

bool ObjectiveAdmm::has_converged(double tolerance, const std::vector<double>& scales) const {
  if (iterations() < fewest_iterations_of_admm) return false;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    double above = 0;  // F then, beside now
    for (auto k = decreases_.size(); k-- > decreases_.size() / 2;) {
      above += decreases_[k][i];
      if (!(std::abs(above) <= tolerance * scales[i])) return false;
    }
  }
  return true;
}

NamedTensors ObjectiveAdmm::state() const {
  auto state = admm_->state();
  auto decreases = at::empty({iterations(), images_.size(0)}, torch::kFloat64);
  auto* decrease = decreases.mutable_data_ptr<double>();
  for (const auto& row : decreases_) decrease = std::copy(row.begin(), row.end(), decrease);
  state[decreases_name] = decreases;
  if (regularizers_.empty()) return state;
  state[gradient_name] = gradient_.clone();
  state[regularizers_name] = at::tensor(regularizers_, torch::kFloat64);
  return state;
}

void ObjectiveAdmm::load_state(const NamedTensors& state) {
  const auto problems = images_.size(0);
  const auto decreases = kept_numbers(state, decreases_name, problems);
  const bool is_prepared = state.contains(regularizers_name);
  auto regularizers = is_prepared ? kept_numbers(state, regularizers_name, problems) : std::vector<double>();
  const auto gradient = is_prepared ? kept(state, gradient_name, gradient_) : gradient_;
  admm_->load_state(state);
  if (is_prepared) gradient_.copy_(gradient);
  regularizers_ = std::move(regularizers);
  decreases_.clear();
  for (auto row = decreases.begin(); row != decreases.end(); row += problems) decreases_.emplace_back(row, row + problems);
}

}  // namespace mpol
