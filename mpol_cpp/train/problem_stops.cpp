#include <mpol_cpp/train/problem_stops.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>

namespace mpol::detail {

ProblemStops::ProblemStops(std::size_t problems, double relative, std::int64_t window)
    : relative_(relative), window_(static_cast<std::size_t>(window)), epochs_(problems, -1) {}

void ProblemStops::record(std::vector<double> totals) {
  if (totals.size() != epochs_.size()) {
    throw ShapeError(fmt::format("there are {} losses for {} problems: the model's image must keep its leading dimensions",
                                 totals.size(), epochs_.size()));
  }
  totals_.push_back(std::move(totals));
  if (totals_.size() > window_ + 1) totals_.pop_front();
}

void ProblemStops::decide(std::int64_t done) {
  for (std::size_t problem = 0; problem < epochs_.size(); ++problem) {
    if (epochs_[problem] < 0 && has_converged(problem)) epochs_[problem] = done;
  }
}

bool ProblemStops::has_converged(std::size_t problem) const {
  if (totals_.size() <= window_) return false;
  const double now = totals_.back()[problem];
  return std::all_of(totals_.begin(), totals_.end() - 1, [&](const std::vector<double>& before) {
    return std::abs(before[problem] - now) <= relative_ * std::abs(before[problem]);
  });
}

std::vector<bool> ProblemStops::stopped() const {
  std::vector<bool> flags;
  for (const auto epoch : epochs_) flags.push_back(epoch >= 0);
  return flags;
}

bool ProblemStops::all_stopped() const {
  return std::all_of(epochs_.begin(), epochs_.end(), [](std::int64_t epoch) { return epoch >= 0; });
}

NamedTensors ProblemStops::state() const {
  auto totals =
      at::empty({static_cast<std::int64_t>(totals_.size()), static_cast<std::int64_t>(epochs_.size())}, torch::kFloat64);
  auto* value = totals.mutable_data_ptr<double>();
  for (const auto& row : totals_) value = std::copy(row.begin(), row.end(), value);
  return {{"totals", totals}, {"epochs", at::tensor(epochs_, torch::kInt64)}};
}

void ProblemStops::load_state(const NamedTensors& state) {
  const auto totals = state.find("totals"), epochs = state.find("epochs");
  const auto problems = static_cast<std::int64_t>(epochs_.size());
  if (totals == state.end() || epochs == state.end() || epochs->second.numel() != problems || totals->second.dim() != 2 ||
      totals->second.size(1) != problems) {
    throw FileError(fmt::format("the saved state does not tell which of {} problems have converged", problems));
  }
  const auto rows = totals->second.to(torch::kCPU, torch::kFloat64).contiguous();
  const auto saved = epochs->second.to(torch::kCPU, torch::kInt64).contiguous();
  const auto* value = rows.const_data_ptr<double>();
  totals_.clear();
  for (std::int64_t row = 0; row < rows.size(0); ++row, value += problems) totals_.emplace_back(value, value + problems);
  std::copy_n(saved.const_data_ptr<std::int64_t>(), problems, epochs_.begin());
}

}  // namespace mpol::detail
