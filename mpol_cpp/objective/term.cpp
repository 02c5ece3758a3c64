#include <mpol_cpp/objective/term.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <mpol_cpp/core/error.h>
#include <mpol_cpp/core/format.h>
#include <mpol_cpp/fourier/fourier_cube.h>

namespace mpol {
namespace {

bool usable_name(const std::string& name) {
  const auto usable = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name != "total" && name != "nll" && std::all_of(name.begin(), name.end(), usable);
}

void check_weights(const std::string& name, const std::vector<double>& weights) {
  if (weights.empty()) throw ValueError(fmt::format("term {} has no weight: give one, or one for each problem", name));
  for (const double weight : weights) {
    if (weight >= 0 && std::isfinite(weight)) continue;
    throw ValueError(fmt::format("the weight of term {} is {}; it must be finite and >= 0", name, weight));
  }
}

}  // namespace

const Tensor& ModelOutput::visibilities() const {
  if (!visibilities_.defined()) visibilities_ = FourierCubeImpl(coords_).forward(sky);
  return visibilities_;
}

Term::Term(std::string name, double weight, Function function)
    : name_(std::move(name)), weights_{weight}, function_(std::move(function)) {
  if (!usable_name(name_)) {
    throw ValueError(fmt::format("a term is named '{}'; use letters, digits and _, but not total or nll", name_));
  }
  check_weights(name_, weights_);
  if (!function_) throw ValueError(fmt::format("term {} has no function", name_));
}

Term Term::with_weights(std::vector<double> weights) const {
  check_weights(name_, weights);
  Term term(*this);
  term.weights_ = std::move(weights);
  return term;
}

bool Term::is_off() const {
  return std::all_of(weights_.begin(), weights_.end(), [](double weight) { return weight == 0; });
}

}  // namespace mpol
