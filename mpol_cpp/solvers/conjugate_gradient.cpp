#include <mpol_cpp/solvers/conjugate_gradient.h>

#include <cmath>
#include <utility>

#include <ATen/ops/tensor.h>

namespace mpol {

ConjugateGradient::ConjugateGradient(Operator symmetric, const Tensor& right_side, const Tensor& start, const Options& options)
    : IterativeSolver("conjugate gradients", options), symmetric_(std::move(symmetric)), b_(right_side), x_(start.clone()) {
  const torch::NoGradGuard no_grad;
  residual_ = b_ - symmetric_(x_);
  direction_ = residual_;
  squares_ = sums(residual_.square());
  for (const double square : sums(b_.square())) scales_.push_back(square > 0 ? std::sqrt(square) : 1);
}

void ConjugateGradient::iterate(IterationRecord& record, Objective objective) {
  Tensor product;
  {
    const Stage stage(*this, "operator");
    product = symmetric_(direction_);
    ++pairs_;
  }
  const Stage stage(*this, "vectors");
  auto lengths = sums(direction_ * product);
  std::vector<double> ratios(lengths.size());
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = lengths[i] > 0 ? squares_[i] / lengths[i] : 0;  // 0: it is solved
  const auto step = factor(lengths, x_);
  x_ = x_ + direction_ * step;
  residual_ = residual_ - product * step;
  const auto squares = sums(residual_.square());
  for (std::size_t i = 0; i < squares.size(); ++i) {
    ratios[i] = squares_[i] > 0 ? squares[i] / squares_[i] : 0;
    record.primal_residual.push_back(std::sqrt(squares[i]) / scales_[i]);
  }
  direction_ = residual_ + direction_ * factor(ratios, residual_);
  squares_ = squares;
  if (objective == Objective::take) record.objective = this->objective();
}

std::vector<double> ConjugateGradient::objective() {
  // H x = b - residual.
  auto values = sums(x_ * (b_ + residual_));
  for (auto& value : values) value /= -2;
  return values;
}

void ConjugateGradient::save(NamedTensors& state) const {
  state["x"] = x_.clone();
  state["residual"] = residual_.clone();
  state["direction"] = direction_.clone();
  state["squares"] = at::tensor(squares_, torch::kFloat64);
}

void ConjugateGradient::load(const NamedTensors& state) {
  auto x = saved(state, "x", x_), residual = saved(state, "residual", x_), direction = saved(state, "direction", x_);
  squares_ = saved_numbers(state, "squares", squares_.size());
  x_ = std::move(x);
  residual_ = std::move(residual);
  direction_ = std::move(direction);
}

}  // namespace mpol
