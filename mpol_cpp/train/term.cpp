#include <mpol_cpp/train/term.h>

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

}  // namespace

const Tensor& ModelOutput::visibilities() const {
  if (!visibilities_.defined()) visibilities_ = FourierCubeImpl(coords_).forward(sky);
  return visibilities_;
}

Term::Term(std::string name, double weight, Function function)
    : name_(std::move(name)), weight_(weight), function_(std::move(function)) {
  if (!usable_name(name_)) {
    throw ValueError(fmt::format("a term is named '{}'; use letters, digits and _, but not total or nll", name_));
  }
  if (!(weight_ >= 0) || !std::isfinite(weight_)) {
    throw ValueError(fmt::format("the weight of term {} is {}; it must be finite and >= 0", name_, weight_));
  }
  if (!function_) throw ValueError(fmt::format("term {} has no function", name_));
}

Term Term::known(TermKind kind, std::string name, double weight, std::vector<double> settings, Function function) {
  Term term(std::move(name), weight, std::move(function));
  term.kind_ = kind;
  term.settings_ = std::move(settings);
  return term;
}

}  // namespace mpol
